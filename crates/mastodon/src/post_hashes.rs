//! Hashes that tell the versions of posts apart. They are stored, so their computation must never
//! change: `tests/golden/post_hashes.txt` holds what earlier versions made.

use driftline_core::post::{Post, PostHashes};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::raw_object::RawObject;

/// The hashes of a post whose JSON came as `json`. They take its times, visibility and counts from
/// `post`, and the rest from the JSON, which may hold more than [`Post::raw`] keeps.
pub fn post_hashes(post: &Post, json: &str) -> PostHashes {
    of_status(post, json, RawObject::parse(json).ok().as_ref())
}

/// The same for JSON that is parsed already; `None` if it is not an object.
pub(crate) fn of_status(post: &Post, json: &str, status: Option<&RawObject<'_>>) -> PostHashes {
    let status = status.and_then(hashed_members);
    let mut hash = Fnv::new();
    hash.number(post.edited_at_ms);
    hash.text(post.visibility.name());
    hash.status(json, status.as_ref(), Boosts::Read);
    let content = hash.0.cast_signed();
    let mut hash = Fnv::new();
    hash.number(Some(content));
    hash.counts(post);
    if let Some(boosted) = &post.boost_of {
        hash.counts(boosted);
    }
    hash.json(status.and_then(|status| status[POLL]));
    let state = hash.0.cast_signed();
    PostHashes { content, state }
}

/// Whether a post's boosted post is read. Mastodon boosts no boosts, so one level is enough; a
/// hostile answer could nest them without end.
#[derive(Clone, Copy)]
pub(crate) enum Boosts {
    Read,
    Leave,
}

/// The members of a status that are hashed, by the names in [`HASHED`]; `null` counts as missing.
type HashedStatus<'j> = [Option<&'j RawValue>; HASHED.len()];

const HASHED: [&str; 7] = [
    "content",
    "spoiler_text",
    "sensitive",
    "edited_at",
    "media_attachments",
    "poll",
    "reblog",
];
const POLL: usize = 5;

/// `None` if one of them is repeated: the whole text is hashed then.
fn hashed_members<'j>(status: &RawObject<'j>) -> Option<HashedStatus<'j>> {
    let mut found = [None; HASHED.len()];
    for (name, value) in status.members() {
        if let Some(at) = HASHED.iter().position(|hashed| *hashed == name)
            && found[at].replace(value).is_some()
        {
            return None;
        }
    }
    Some(found.map(|value| value.filter(|value| value.get() != "null")))
}

#[derive(Deserialize)]
struct Media<'j> {
    #[serde(borrow)]
    id: Option<&'j RawValue>,
    #[serde(borrow)]
    description: Option<&'j RawValue>,
}

#[derive(Deserialize)]
struct Poll<'j> {
    #[serde(borrow)]
    options: Vec<PollOption<'j>>,
}

#[derive(Deserialize)]
struct PollOption<'j> {
    #[serde(borrow)]
    title: Option<&'j RawValue>,
}

/// FNV-1a.
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

    /// Ends with a byte that no UTF-8 text contains, so that two texts do not run together.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.bytes(&number.to_le_bytes()),
            None => self.bytes(&[0xfe]),
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

    fn json(&mut self, json: Option<&RawValue>) {
        self.text(json.map_or("null", RawValue::get));
    }

    fn status(&mut self, json: &str, status: Option<&HashedStatus<'_>>, boosts: Boosts) {
        let Some([texts @ .., media, poll, reblog]) = status else {
            return self.text(json);
        };
        for text in texts {
            self.json(*text);
        }
        self.media(*media);
        self.poll(*poll);
        if let (Boosts::Read, Some(reblog)) = (boosts, *reblog) {
            let boosted = RawObject::of(reblog).as_ref().and_then(hashed_members);
            self.status(reblog.get(), boosted.as_ref(), Boosts::Leave);
        }
    }

    fn media(&mut self, json: Option<&RawValue>) {
        let Some(json) = json else {
            return self.json(None);
        };
        match serde_json::from_str::<Vec<Media<'_>>>(json.get()) {
            Ok(media) => {
                for item in media {
                    self.json(item.id);
                    self.json(item.description);
                }
                self.bytes(&[0xfd]);
            }
            Err(_) => self.json(Some(json)),
        }
    }

    fn poll(&mut self, json: Option<&RawValue>) {
        let Some(json) = json else {
            return self.json(None);
        };
        match serde_json::from_str::<Poll<'_>>(json.get()) {
            Ok(poll) => {
                for option in poll.options {
                    self.json(option.title);
                }
                self.bytes(&[0xfd]);
            }
            // With its votes, every reading would be another version.
            Err(_) => self.json(None),
        }
    }
}
