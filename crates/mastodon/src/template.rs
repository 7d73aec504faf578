use serde::Serialize;

use crate::{object_writer::ObjectWriter, overlay::ViewerOverlay, references::is_id};

/// JSON with holes for what only the store knows: the local IDs of the posts and accounts that it
/// names, and what it says of the account that views it.
#[derive(Debug, Clone, Default)]
pub struct Template {
    pub(crate) text: Vec<u8>,
    holes: Vec<Hole>,
}

/// What an ID of an upstream names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Referent {
    /// A post.
    Post,
    /// An account.
    Account,
}

/// What stands at a place of the text.
#[derive(Debug, Clone)]
struct Hole {
    at: usize,
    what: HoleKind,
}

#[derive(Debug, Clone)]
enum HoleKind {
    /// The local ID of what an upstream's ID names.
    Id(Referent, String),
    /// What a post says of its viewer, as further members of its object.
    Overlay(PostName),
}

/// The name of a post.
#[derive(Debug, Clone)]
pub(crate) enum PostName {
    Local(u64),
    Upstream(String),
}

impl Template {
    /// The upstream's IDs that it names, in its order.
    pub fn references(&self) -> impl Iterator<Item = (Referent, &str)> {
        self.holes.iter().filter_map(|hole| match &hole.what {
            HoleKind::Id(referent, id) => Some((*referent, id.as_str())),
            HoleKind::Overlay(_) => None,
        })
    }

    /// The upstream's IDs of the posts within it that say something of their viewer.
    pub fn nested_posts(&self) -> impl Iterator<Item = &str> {
        self.holes.iter().filter_map(|hole| match &hole.what {
            HoleKind::Overlay(PostName::Upstream(id)) => Some(id.as_str()),
            _ => None,
        })
    }

    /// The length of its text, in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether its text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Writes it with its holes filled: `local_id` finds the local ID of an upstream's, without which
    /// `null` is written, and `overlay` what the post of a local ID says of its viewer, if that has
    /// an account.
    pub fn fill(
        &self,
        out: &mut Vec<u8>,
        local_id: impl Fn(Referent, &str) -> Option<u64>,
        overlay: impl Fn(Option<u64>) -> Option<ViewerOverlay>,
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

    /// Adds a value as JSON: a text, a number, an option of these.
    pub(crate) fn value(&mut self, value: &(impl Serialize + ?Sized)) {
        let start = self.text.len();
        if serde_json::to_writer(&mut self.text, value).is_err() {
            self.text.truncate(start);
            self.json("null");
        }
    }

    /// Leaves room for the local ID of what an upstream's ID names; what can be no ID is `null`.
    pub(crate) fn id(&mut self, referent: Referent, upstream_id: &str) {
        match is_id(upstream_id) {
            true => self.hole(HoleKind::Id(referent, upstream_id.to_owned())),
            false => self.json("null"),
        }
    }

    /// Leaves room for what a post says of its viewer, after members of its object.
    pub(crate) fn overlay(&mut self, post: PostName) {
        self.hole(HoleKind::Overlay(post));
    }

    fn hole(&mut self, what: HoleKind) {
        let at = self.text.len();
        self.holes.push(Hole { at, what });
    }
}
