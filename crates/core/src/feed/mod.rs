//! The feed of changes: what happens to the posts of sources, in the order in which each source
//! reports it, resumable at any position.

mod kind;
mod position;

pub use kind::{ChangeKind, ChangeKinds, UnknownChangeKind};
pub use position::{FeedPosition, FeedPositionError};
