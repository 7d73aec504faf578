use serde_json::value::RawValue;

use crate::object_writer::ObjectWriter;

/// What a status says of the account that views it. It is no part of the post, and Mastodon leaves it
/// out of answers to requests without a user.
#[derive(Debug, Clone, Default)]
pub struct ViewerOverlay {
    /// Whether the account favourited the post.
    pub favourited: bool,
    /// Whether it boosted the post.
    pub reblogged: bool,
    /// Whether it muted the conversation.
    pub muted: bool,
    /// Whether it bookmarked the post.
    pub bookmarked: bool,
    /// Whether its profile shows the post at the top; `None` for a post of another account.
    pub pinned: Option<bool>,
    /// Those of its filters that match: each a `FilterResult`, JSON.
    pub filtered: Vec<Box<RawValue>>,
}

impl ViewerOverlay {
    /// Writes the members of the status.
    pub fn write(&self, status: &mut ObjectWriter<'_>) {
        status.value("favourited", &self.favourited);
        status.value("reblogged", &self.reblogged);
        status.value("muted", &self.muted);
        status.value("bookmarked", &self.bookmarked);
        if let Some(pinned) = self.pinned {
            status.value("pinned", &pinned);
        }
        status.value("filtered", &self.filtered);
    }
}
