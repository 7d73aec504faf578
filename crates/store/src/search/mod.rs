//! Search: the documents of the index, and the timeline of the posts that match a query.
//!
//! The index follows the commits in the background ([`index_pending`]). A search also reads the
//! posts that the index has still to read, so it finds each post as soon as the post is stored.

mod documents;
mod features;
mod find;
mod groups;
mod nicknames;
mod readers;
mod sources;

pub use documents::{extraction, index_pending, root, set_extraction};
pub use features::{PostFeatures, features, new_posts};
pub use find::{Lookup, end, explain, find, lookup, pending};
pub use nicknames::nicknames;
pub use sources::sources;
