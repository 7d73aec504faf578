named_enum! {
    /// How one account stands to another one. [`Relation::change_to`] is the only way from one to another;
    /// what people do is composed of such changes ([`super::RelationPair`]). Muting is no part of it.
    #[derive(Default)]
    pub enum Relation: "snake_case" {
        /// There is none.
        #[default]
        None,
        /// It asks to follow.
        RequestingFollow,
        /// It follows.
        Following,
        /// It blocks.
        Blocking,
    }
}

/// A change that is not among [`Relation::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a relation that is {from} cannot become {to}")]
pub struct RelationChangeError {
    /// The relation that it is.
    pub from: Relation,
    /// The relation that it would have become.
    pub to: Relation,
}

impl Relation {
    /// Every change that there is.
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
    /// [`RelationChangeError`] if there is no such edge; no relation has one to itself.
    pub fn change_to(self, to: Relation) -> Result<Relation, RelationChangeError> {
        match Self::EDGES.contains(&(self, to)) {
            true => Ok(to),
            false => Err(RelationChangeError { from: self, to }),
        }
    }
}
