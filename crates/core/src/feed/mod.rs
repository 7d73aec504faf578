//! The feed of changes to the posts of sources. Each source's changes come in the order of its
//! reports. The feed can be resumed at any position.

mod kind;
mod position;

pub use kind::{ChangeKind, ChangeKinds, UnknownChangeKind};
pub use position::{FeedPosition, FeedPositionError};
