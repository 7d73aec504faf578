use serde_json::value::RawValue;

use crate::object_writer::ObjectWriter;

/// The members of a status that concern the viewing account. They are not part of the post, and
/// Mastodon omits them from answers to requests without a user.
#[derive(Debug, Clone, Default)]
pub struct ViewerOverlay {
    /// True if the account has favourited the post.
    pub favourited: bool,
    /// True if the account has boosted the post.
    pub reblogged: bool,
    /// True if the account has muted the conversation.
    pub muted: bool,
    /// True if the account has bookmarked the post.
    pub bookmarked: bool,
    /// True if the account has pinned the post to its profile; `None` for a post of another
    /// account.
    pub pinned: Option<bool>,
    /// The account's matching filters, each as a `FilterResult` in JSON.
    pub filtered: Vec<Box<RawValue>>,
}

impl ViewerOverlay {
    /// Writes the members into the status.
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
