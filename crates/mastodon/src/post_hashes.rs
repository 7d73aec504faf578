//! Hashes that distinguish the versions of posts.
//!
//! They depend on the meaning of a post's JSON: on the decoded values of the members that are named
//! here, in a canonical form. A missing member, `null` and an empty list are equal. `1.0` equals
//! `1e0`, with all digits of any number. Texts are only decoded. The order of keys does not matter,
//! and of repeated keys the last counts. A post's content includes its tags, its language,
//! the fact of being a reply and the visibility of what it boosts. Its state also depends on
//! the other labels of its text: mentions and a preview, which a server may change without an edit. Hashes are stored, so
//! their computation must not change.
//! `tests/golden/post_hashes.txt` contains expected results.

use std::collections::BTreeMap;

use driftline_core::{
    post::{Post, PostHashes, Visibility},
    post_text::split,
};
use serde_json::value::RawValue;

use crate::{
    decimal::Decimal,
    raw_object::{RawObject, decoded, items},
};

/// The hashes of a post: of its times, visibility, counts and labels, and of its JSON.
pub fn post_hashes(post: &Post) -> PostHashes {
    of_status(post, RawObject::parse(&post.raw).ok().as_ref())
}

/// The hashes of a post whose JSON is already parsed; `None` if it is not an object.
pub(crate) fn of_status(post: &Post, status: Option<&RawObject<'_>>) -> PostHashes {
    let mut hash = Fnv::new();
    hash.number(post.edited_at_ms);
    hash.text(post.visibility.name().as_bytes());
    match status {
        Some(status) => hash.content(status, Boosts::Read),
        None => hash.text(post.raw.as_bytes()),
    }
    // Filters of replicas compare them, so they must not change without a new version.
    let is_content = |label: &&str| {
        label.starts_with("tag:") || label.starts_with("lang:") || *label == "is:reply"
    };
    for label in split(&post.text.labels).filter(is_content) {
        hash.text(label.as_bytes());
    }
    let content = hash.0.cast_signed();
    let mut hash = Fnv::new();
    hash.number(Some(content));
    hash.counts(post);
    if let Some(boosted) = &post.boost_of {
        hash.counts(boosted);
    }
    if let Some(poll) = status.and_then(|status| status.get("poll")) {
        hash.votes(&RawObject::from_value(poll).unwrap_or_default());
    }
    if !post.text.labels.is_empty() {
        hash.text(post.text.labels.as_bytes());
    }
    let state = hash.0.cast_signed();
    PostHashes { content, state }
}

/// The treatment of a post's boosted post. Mastodon has no boosts of boosts, so one level is
/// enough. A hostile answer could nest them without end.
#[derive(Clone, Copy)]
pub(crate) enum Boosts {
    Read,
    Leave,
}

/// FNV-1a. Each value begins with the byte of its kind, and its end is unambiguous.
struct Fnv(u64);

impl Fnv {
    const fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a text. It ends with a byte that no text contains.
    fn text(&mut self, text: &[u8]) {
        self.bytes(text);
        self.bytes(&[0xff]);
    }

    fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.bytes(&number.to_le_bytes()),
            None => self.bytes(&[NOTHING]),
        }
    }

    fn counts(&mut self, post: &Post) {
        let counts = post.counts;
        for count in [
            counts.replies,
            counts.boosts,
            counts.favourites,
            counts.quotes,
            counts.views,
        ] {
            self.number(count);
        }
    }

    /// Adds the members that an author can edit.
    fn content(&mut self, status: &RawObject<'_>, boosts: Boosts) {
        for name in ["content", "spoiler_text", "sensitive"] {
            self.value(status.get(name));
        }
        match status.time_ms("edited_at") {
            Some(at_ms) => self.number(Some(at_ms)),
            None => self.value(status.get("edited_at")),
        }
        self.each(status.get("media_attachments"), |hash, medium| {
            hash.value(medium.get("id"));
            hash.value(medium.get("description"));
        });
        let poll = status.object("poll");
        self.each(poll.get("options"), |hash, option| {
            hash.value(option.get("title"));
        });
        if let (Boosts::Read, Some(reblog)) = (boosts, status.get("reblog")) {
            match RawObject::from_value(reblog) {
                Some(boosted) => {
                    self.content(&boosted, Boosts::Leave);
                    self.narrowed(&boosted);
                }
                None => self.value(Some(reblog)),
            }
        }
    }

    /// Adds the visibility of a boosted post that not everybody may see: boosts do not show it.
    fn narrowed(&mut self, boosted: &RawObject<'_>) {
        let visibility = boosted.text("visibility");
        if let Some(name) = visibility.filter(|name| name != Visibility::Public.name()) {
            self.text(name.as_bytes());
        }
    }

    /// Adds the members of a poll that change by themselves.
    fn votes(&mut self, poll: &RawObject<'_>) {
        for name in ["expired", "votes_count", "voters_count"] {
            self.value(poll.get(name));
        }
        self.each(poll.get("options"), |hash, option| {
            hash.value(option.get("votes_count"));
        });
    }

    /// Adds a list of objects, with the hashes of their `members`.
    fn each(&mut self, list: Option<&RawValue>, members: fn(&mut Fnv, &RawObject<'_>)) {
        let Some(found) = list.and_then(items) else {
            return self.value(list);
        };
        if found.is_empty() {
            return self.bytes(&[NOTHING]);
        }
        self.bytes(&[LIST]);
        for item in found {
            match RawObject::from_value(item) {
                Some(object) => members(self, &object),
                None => self.value(Some(item)),
            }
        }
        self.bytes(&[END]);
    }

    fn value(&mut self, value: Option<&RawValue>) {
        self.nested(value, MAX_DEPTH);
    }

    /// Adds a value of any kind. Deeper values are hashed as written.
    fn nested(&mut self, value: Option<&RawValue>, depth: usize) {
        let json = value.map_or("null", RawValue::get);
        if let Some(text) = decoded(json) {
            self.bytes(&[TEXT]);
            return self.text(&text);
        }
        if let Some(number) = Decimal::parse(json) {
            self.bytes(&[NUMBER, u8::from(number.is_negative)]);
            self.number(Some(number.exponent));
            return self.text(number.digits.as_bytes());
        }
        let list = value.filter(|_| depth > 0).and_then(items);
        let object = value.filter(|_| depth > 0).and_then(RawObject::from_value);
        match (list, object) {
            _ if json == "null" => self.bytes(&[NOTHING]),
            (Some(items), _) => {
                self.bytes(&[LIST]);
                for item in items {
                    self.nested(Some(item), depth - 1);
                }
                self.bytes(&[END]);
            }
            (None, Some(object)) => {
                self.bytes(&[OBJECT]);
                // Of repeated members the last counts. If it is `null`, the member counts as
                // missing.
                let members: BTreeMap<&str, &RawValue> = object.members().collect();
                let members = members.into_iter();
                for (name, member) in members.filter(|(_, member)| member.get() != "null") {
                    self.text(name.as_bytes());
                    self.nested(Some(member), depth - 1);
                }
                self.bytes(&[END]);
            }
            (None, None) => self.text(json.as_bytes()),
        }
    }
}

/// The kinds of values, as bytes that begin no character of UTF-8.
const NOTHING: u8 = 0xfe;
const END: u8 = 0xfd;
const LIST: u8 = 0xfc;
const OBJECT: u8 = 0xfb;
const TEXT: u8 = 0xfa;
const NUMBER: u8 = 0xf9;
/// Deeper than any of the hashed members needs. Each level is parsed again.
const MAX_DEPTH: usize = 8;
