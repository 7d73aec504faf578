use serde::Serialize;
use serde_json::value::RawValue;

use crate::{object_writer::ObjectWriter, overlay::ViewerOverlay, references::is_id};

/// JSON with holes for data that only the store knows: local IDs of posts and accounts, members
/// that concern the viewing account, and accounts of this server.
#[derive(Debug, Clone, Default)]
pub struct Template {
    pub(crate) text: Vec<u8>,
    holes: Vec<Hole>,
}

/// The kind of entity to which an upstream's ID refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Referent {
    /// A post.
    Post,
    /// An account.
    Account,
}

/// An object that shows an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccountForm {
    /// The entity `Account`.
    Whole,
    /// The entity `Mention`.
    Mention,
}

/// A hole at a position of the text.
#[derive(Debug, Clone)]
struct Hole {
    at: usize,
    what: HoleKind,
}

#[derive(Debug, Clone)]
enum HoleKind {
    /// The local ID for an upstream's ID.
    Id(Referent, String),
    /// Further members of a post's object that concern its viewer.
    Overlay(PostName),
    /// The object of an account of this server, by its name.
    OwnAccount(AccountForm, String),
}

/// The name of a post.
#[derive(Debug, Clone)]
pub(crate) enum PostName {
    Local(u64),
    Upstream(String),
}

impl Template {
    /// The upstream's IDs that need local IDs, in the order of the text.
    pub fn references(&self) -> impl Iterator<Item = (Referent, &str)> {
        self.holes.iter().filter_map(|hole| match &hole.what {
            HoleKind::Id(referent, id) => Some((*referent, id.as_str())),
            HoleKind::Overlay(_) | HoleKind::OwnAccount(..) => None,
        })
    }

    /// The names of this server's accounts that the text shows.
    pub fn own_accounts(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().filter_map(|hole| match &hole.what {
            HoleKind::OwnAccount(_, name) => Some(name.as_str()),
            HoleKind::Id(..) | HoleKind::Overlay(_) => None,
        })
    }

    /// The upstream's IDs of the nested posts that need an overlay.
    pub fn nested_posts(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().filter_map(|hole| match &hole.what {
            HoleKind::Overlay(PostName::Upstream(id)) => Some(id.as_str()),
            _ => None,
        })
    }

    /// The length of the text in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// True if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes the text with its holes filled. `local_id` finds the local ID for an upstream's ID;
    /// without one, `null` is written. `overlay` returns the members that concern the viewer, for
    /// the local ID of a post, if there is a viewing account. `own_account` returns the JSON of an
    /// account of this server, by its name; without it, `null` is written.
    pub fn fill<'a>(
        &self,
        out: &mut Vec<u8>,
        local_id: impl Fn(Referent, &str) -> Option<u64>,
        overlay: impl Fn(Option<u64>) -> Option<ViewerOverlay>,
        own_account: impl Fn(AccountForm, &str) -> Option<&'a RawValue>,
    ) {
        let mut from = 0;
        for hole in &self.holes {
            out.extend_from_slice(&self.text[from..hole.at]);
            from = hole.at;
            match &hole.what {
                HoleKind::Id(referent, id) => match local_id(*referent, id) {
                    Some(id) => out.extend_from_slice(format!("\"{id}\"").as_bytes()),
                    None => out.extend_from_slice(b"null"),
                },
                HoleKind::OwnAccount(form, name) => {
                    let json = own_account(*form, name).map_or("null", RawValue::get);
                    out.extend_from_slice(json.as_bytes());
                }
                HoleKind::Overlay(post) => {
                    let id = match post {
                        PostName::Local(id) => Some(*id),
                        PostName::Upstream(id) => local_id(Referent::Post, id),
                    };
                    if let Some(overlay) = overlay(id) {
                        let mut members = Self::default();
                        overlay.write(&mut ObjectWriter::after_members(&mut members));
                        out.extend_from_slice(&members.text);
                    }
                }
            }
        }
        out.extend_from_slice(&self.text[from..]);
    }

    /// Adds JSON.
    pub(crate) fn json(&mut self, json: &str) {
        self.text.extend_from_slice(json.as_bytes());
    }

    /// Adds a value as JSON: a text, a number, or an option of these.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        let start = self.text.len();
        if serde_json::to_writer(&mut self.text, value).is_err() {
            self.text.truncate(start);
            self.json("null");
        }
    }

    /// Leaves room for the local ID of an upstream's ID. Writes `null` for a text that cannot be an
    /// ID.
    pub(crate) fn id(&mut self, referent: Referent, upstream_id: &str) {
        match is_id(upstream_id) {
            true => self.hole(HoleKind::Id(referent, upstream_id.to_owned())),
            false => self.json("null"),
        }
    }

    /// Leaves room for the overlay of a post, after members of its object.
    pub(crate) fn overlay(&mut self, post: PostName) {
        self.hole(HoleKind::Overlay(post));
    }

    /// Leaves room for the object of an account of this server.
    pub(crate) fn own_account(&mut self, form: AccountForm, name: &str) {
        self.hole(HoleKind::OwnAccount(form, name.to_owned()));
    }

    fn hole(&mut self, what: HoleKind) {
        let at = self.text.len();
        self.holes.push(Hole { at, what });
    }
}
