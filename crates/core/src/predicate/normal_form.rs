use super::tree::{Connective, Tree};

impl Tree {
    /// Returns an equivalent tree in negation normal form: only atoms are negated. `Xor` stays a
    /// connective, and a negated one negates its left operand, so the tree has as many atoms as
    /// before.
    #[must_use]
    pub fn negation_normal_form(&self) -> Self {
        normal_form(self, true)
    }
}

/// The normal form of a tree, or of its negation.
fn normal_form(tree: &Tree, is_positive: bool) -> Tree {
    let (connective, left, right) = match tree {
        Tree::Atom(_) if is_positive => return tree.clone(),
        Tree::Atom(_) => return tree.clone().negated(),
        Tree::Not(operand) => return normal_form(operand, !is_positive),
        Tree::Xor(left, right) => {
            let left = normal_form(left, is_positive);
            return Connective::Xor.join(left, normal_form(right, true));
        }
        Tree::And(left, right) if is_positive => (Connective::And, left, right),
        Tree::Or(left, right) if is_positive => (Connective::Or, left, right),
        Tree::And(left, right) => (Connective::Or, left, right),
        Tree::Or(left, right) => (Connective::And, left, right),
    };
    connective.join(
        normal_form(left, is_positive),
        normal_form(right, is_positive),
    )
}
