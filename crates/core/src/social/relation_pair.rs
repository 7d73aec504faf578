use super::{Relation, RelationChangeError};
use Relation::{Blocking, Following, RequestingFollow};

/// The relations between two accounts, from the view of the acting account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RelationPair {
    /// The relation of the acting account to the other.
    pub outgoing: Relation,
    /// The relation of the other account to the acting one.
    pub incoming: Relation,
}

/// An action towards another account. Each can safely be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RelationMove {
    /// Follows the other account, or requests to.
    Follow {
        /// True if the other account accepts all followers.
        auto_accept: bool,
    },
    /// Stops following, or withdraws the request.
    Unfollow,
    /// Accepts the other account's request to follow.
    AcceptFollow,
    /// Rejects the other account's request to follow.
    RejectFollow,
    /// Removes the other account as a follower.
    RemoveFollower,
    /// Blocks the other account, from any relation. Afterwards neither follows the other.
    Block,
    /// Stops blocking the other account.
    Unblock,
}

/// One of the two relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The relation of the acting account to the other.
    Outgoing,
    /// The relation of the other account to the acting one.
    Incoming,
}

/// A change along one of [`Relation::EDGES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RelationStep {
    /// The relation that changes.
    pub direction: Direction,
    /// The relation before.
    pub from: Relation,
    /// The relation after.
    pub to: Relation,
}

/// The reason why an action is not possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RelationRefused {
    /// The acting account blocks the other.
    #[error("you block this account; unblock it first")]
    Blocking,
    /// The other account blocks it. The message must not reveal that.
    #[error("this account cannot be followed")]
    BlockedBy,
    /// The other account does not request to follow.
    #[error("this account does not ask to follow you")]
    NotRequested,
    /// A change without an edge.
    #[error(transparent)]
    NoEdge(#[from] RelationChangeError),
}

impl RelationPair {
    /// The changes of an action in their order, and the pair after them. They must be stored
    /// together. An action that has already happened has no changes.
    ///
    /// # Errors
    /// [`RelationRefused`] if the action is not possible.
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
