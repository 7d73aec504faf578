named_enum! {
    /// The relation of one account to another. [`Relation::change_to`] is the only way to change it.
    /// Actions of users are sequences of such changes ([`super::RelationPair`]). Muting is not part of
    /// it.
    #[derive(Default)]
    pub enum Relation: "snake_case" {
        /// No relation.
        #[default]
        None,
        /// The account requests to follow the other.
        RequestingFollow,
        /// The account follows the other.
        Following,
        /// The account blocks the other.
        Blocking,
    }
}

/// A change that is not in [`Relation::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a relation that is {from} cannot become {to}")]
pub struct RelationChangeError {
    /// The present relation.
    pub from: Relation,
    /// The requested relation.
    pub to: Relation,
}

impl Relation {
    /// All permitted changes.
    pub const EDGES: [(Relation, Relation); 7] = [
        (Relation::None, Relation::RequestingFollow),
        (Relation::RequestingFollow, Relation::None),
        (Relation::RequestingFollow, Relation::Following),
        (Relation::Following, Relation::None),
        (Relation::Following, Relation::Blocking),
        (Relation::None, Relation::Blocking),
        (Relation::Blocking, Relation::None),
    ];

    /// The relation after this change.
    ///
    /// # Errors
    /// [`RelationChangeError`] if [`Relation::EDGES`] does not contain the change. No relation can
    /// change to itself.
    pub fn change_to(self, to: Relation) -> Result<Relation, RelationChangeError> {
        match Self::EDGES.contains(&(self, to)) {
            true => Ok(to),
            false => Err(RelationChangeError { from: self, to }),
        }
    }
}
