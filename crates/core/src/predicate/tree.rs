use super::proposition::Proposition;

/// A predicate as a tree of propositions.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tree {
    /// Selects what the proposition selects.
    Atom(Proposition),
    /// Selects what the operand does not select.
    Not(Box<Tree>),
    /// Selects what both operands select.
    And(Box<Tree>, Box<Tree>),
    /// Selects what one or both operands select.
    Or(Box<Tree>, Box<Tree>),
    /// Selects what exactly one operand selects.
    Xor(Box<Tree>, Box<Tree>),
}

/// A connective between two trees. One that comes earlier binds less tightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Connective {
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// And.
    And,
}

impl Connective {
    /// Joins two trees.
    pub fn join(self, left: Tree, right: Tree) -> Tree {
        let (left, right) = (Box::new(left), Box::new(right));
        match self {
            Self::Or => Tree::Or(left, right),
            Self::Xor => Tree::Xor(left, right),
            Self::And => Tree::And(left, right),
        }
    }

    /// Joins trees from left to right; `None` if there are none.
    pub fn join_all(self, trees: impl IntoIterator<Item = Tree>) -> Option<Tree> {
        trees
            .into_iter()
            .reduce(|left, right| self.join(left, right))
    }
}

impl Tree {
    /// Returns a tree with one proposition.
    pub fn atom(proposition: impl Into<Proposition>) -> Self {
        Self::Atom(proposition.into())
    }

    /// Returns the negation of the tree, with one more `Not`.
    #[must_use]
    pub fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// Returns the connective at the root; `None` for an atom or a negation.
    pub const fn connective(&self) -> Option<Connective> {
        match self {
            Self::Atom(_) | Self::Not(_) => None,
            Self::And(..) => Some(Connective::And),
            Self::Or(..) => Some(Connective::Or),
            Self::Xor(..) => Some(Connective::Xor),
        }
    }

    /// Returns the operands of the connective at the root, in the order of the text. A left operand
    /// with the same connective is replaced by its own operands, so [`Connective::join_all`]
    /// restores the tree. Empty for an atom or a negation.
    pub fn operands(&self) -> Vec<&Tree> {
        let mut operands = Vec::new();
        let mut tree = self;
        let connective = self.connective();
        while let Self::And(left, right) | Self::Or(left, right) | Self::Xor(left, right) = tree {
            if tree.connective() != connective {
                break;
            }
            operands.push(&**right);
            tree = left;
        }
        if !operands.is_empty() {
            operands.push(tree);
        }
        operands.reverse();
        operands
    }

    /// Returns the propositions, in the order of the text.
    pub fn propositions(&self) -> Vec<&Proposition> {
        let mut propositions = Vec::new();
        let mut pending = vec![self];
        while let Some(tree) = pending.pop() {
            match tree {
                Self::Atom(proposition) => propositions.push(proposition),
                Self::Not(operand) => pending.push(operand),
                Self::And(left, right) | Self::Or(left, right) | Self::Xor(left, right) => {
                    pending.extend([&**right, &**left]);
                }
            }
        }
        propositions
    }

    /// Calls a function with each proposition.
    pub(super) fn for_each_proposition_mut(&mut self, change: &mut impl FnMut(&mut Proposition)) {
        match self {
            Self::Atom(proposition) => change(proposition),
            Self::Not(operand) => operand.for_each_proposition_mut(change),
            Self::And(left, right) | Self::Or(left, right) | Self::Xor(left, right) => {
                left.for_each_proposition_mut(change);
                right.for_each_proposition_mut(change);
            }
        }
    }
}
