//! The feed of changes: what happens to the posts of all sources, as it is stored, for those who
//! follow it here. One task reads the store for all of them; who falls behind, or comes with an older
//! position, reads the store until it has caught up.

mod event;
mod hub;
mod reader;
mod record;

pub use event::FeedEvent;
pub use hub::Feed;
pub use reader::{FeedError, FeedReader, Selection, Start};
pub use record::PostRecord;
