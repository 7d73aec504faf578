use super::{Relation, RelationChangeError};
use Relation::{Blocking, Following, RequestingFollow};

/// How two accounts stand to each other, seen from the one that acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RelationPair {
    /// How the one that acts stands to the other.
    pub outgoing: Relation,
    /// How the other stands to the one that acts.
    pub incoming: Relation,
}

/// What somebody does to another account. Each is safe to do again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelationMove {
    /// Follows it, or asks to.
    Follow {
        /// Whether the other one lets everybody follow it.
        auto_accept: bool,
    },
    /// Follows it no more, or takes the request back.
    Unfollow,
    /// Lets it follow, as it asked.
    AcceptFollow,
    /// Does not let it follow, as it asked.
    RejectFollow,
    /// Lets it follow no more.
    RemoveFollower,
    /// Blocks it, from whatever there was: neither follows the other any more.
    Block,
    /// Blocks it no more.
    Unblock,
}

/// Which of the two relations changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// How the one that acts stands to the other.
    Outgoing,
    /// How the other stands to the one that acts.
    Incoming,
}

/// One change along one of [`Relation::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RelationStep {
    /// Which relation changes.
    pub direction: Direction,
    /// What it was.
    pub from: Relation,
    /// What it becomes.
    pub to: Relation,
}

/// Why a move is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RelationRefused {
    /// The one that acts blocks the other.
    #[error("you block this account; unblock it first")]
    Blocking,
    /// The other one blocks it. What is said of it must not tell.
    #[error("this account cannot be followed")]
    BlockedBy,
    /// The other one does not ask to follow.
    #[error("this account does not ask to follow you")]
    NotRequested,
    /// A change without an edge.
    #[error(transparent)]
    NoEdge(#[from] RelationChangeError),
}

impl RelationPair {
    /// The changes that a move is composed of, in their order, and the pair after them. They are to be
    /// stored together or not at all. A move that was done already has none.
    ///
    /// # Errors
    /// [`RelationRefused`] if it is not possible.
    pub fn after(
        self,
        done: RelationMove,
    ) -> Result<(RelationPair, Vec<RelationStep>), RelationRefused> {
        let mut path = Path {
            pair: self,
            steps: Vec::new(),
        };
        let (out, back) = (Direction::Outgoing, Direction::Incoming);
        let RelationPair { outgoing, incoming } = self;
        match done {
            RelationMove::Follow { .. } if outgoing == Blocking => {
                return Err(RelationRefused::Blocking);
            }
            RelationMove::Follow { .. } if incoming == Blocking => {
                return Err(RelationRefused::BlockedBy);
            }
            RelationMove::Follow { auto_accept } => {
                if outgoing == Relation::None {
                    path.go(out, RequestingFollow)?;
                }
                if auto_accept && path.pair.outgoing == RequestingFollow {
                    path.go(out, Following)?;
                }
            }
            RelationMove::Unfollow => path.end_follow(out)?,
            RelationMove::AcceptFollow => match incoming {
                RequestingFollow => path.go(back, Following)?,
                Following => {}
                _ => return Err(RelationRefused::NotRequested),
            },
            RelationMove::RejectFollow => match incoming {
                RequestingFollow => path.go(back, Relation::None)?,
                _ => return Err(RelationRefused::NotRequested),
            },
            RelationMove::RemoveFollower => path.end_follow(back)?,
            RelationMove::Block => {
                // There is no edge from a request to a block.
                if outgoing == RequestingFollow {
                    path.go(out, Relation::None)?;
                }
                if outgoing != Blocking {
                    path.go(out, Blocking)?;
                }
                path.end_follow(back)?;
            }
            RelationMove::Unblock if outgoing == Blocking => path.go(out, Relation::None)?,
            RelationMove::Unblock => {}
        }
        Ok((path.pair, path.steps))
    }
}

struct Path {
    pair: RelationPair,
    steps: Vec<RelationStep>,
}

impl Path {
    fn go(&mut self, direction: Direction, to: Relation) -> Result<(), RelationChangeError> {
        let relation = match direction {
            Direction::Outgoing => &mut self.pair.outgoing,
            Direction::Incoming => &mut self.pair.incoming,
        };
        let from = *relation;
        *relation = from.change_to(to)?;
        self.steps.push(RelationStep {
            direction,
            from,
            to,
        });
        Ok(())
    }

    fn end_follow(&mut self, direction: Direction) -> Result<(), RelationChangeError> {
        let relation = match direction {
            Direction::Outgoing => self.pair.outgoing,
            Direction::Incoming => self.pair.incoming,
        };
        match relation {
            RequestingFollow | Following => self.go(direction, Relation::None),
            Relation::None | Blocking => Ok(()),
        }
    }
}
