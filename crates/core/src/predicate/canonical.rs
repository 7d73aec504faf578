use super::{
    proposition::Proposition,
    tree::{Connective, Tree},
};

/// Returns the canonical form of a tree. It is equivalent, and no longer, deeper or wider.
///
/// Propositions with several terms become conjunctions. Nested operands of one connective are
/// joined and sorted by their text; And and Or lose repetitions. Double negations, and operands that
/// decide nothing, are removed. No other term is removed, because a tree with `is:boost` also
/// decides about boosts.
pub(super) fn canonical(tree: &Tree) -> Tree {
    let (connective, operands) = match tree {
        Tree::Atom(proposition) => {
            let terms = proposition.terms().into_iter();
            (Connective::And, terms.map(Tree::atom).collect())
        }
        Tree::Not(operand) => {
            return match canonical(operand) {
                Tree::Not(inner) => *inner,
                operand => operand.negated(),
            };
        }
        Tree::And(..) => (Connective::And, canonical_operands(tree)),
        Tree::Or(..) => (Connective::Or, canonical_operands(tree)),
        Tree::Xor(..) => (Connective::Xor, canonical_operands(tree)),
    };
    join_sorted(connective, operands)
}

/// The canonical operands of a tree's connective. Those that have the same connective are replaced
/// by their own operands.
fn canonical_operands(tree: &Tree) -> Vec<Tree> {
    let connective = tree.connective();
    let mut operands = Vec::new();
    for operand in tree.operands() {
        let operand = canonical(operand);
        if operand.connective() == connective {
            operands.extend(operand.operands().into_iter().cloned());
        } else {
            operands.push(operand);
        }
    }
    operands
}

fn join_sorted(connective: Connective, mut operands: Vec<Tree>) -> Tree {
    let everything = Tree::Atom(Proposition::default());
    let neutral = match connective {
        Connective::And => everything,
        Connective::Or | Connective::Xor => everything.negated(),
    };
    operands.retain(|operand| *operand != neutral);
    operands.sort_by_cached_key(ToString::to_string);
    if connective != Connective::Xor {
        operands.dedup();
    }
    connective.join_all(operands).unwrap_or(neutral)
}
