//! Hashes that tell the versions of posts apart.

use driftline_core::{answer::Page, post::Post};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The hashes of a post. They are stored, so their computation must never change between versions
/// of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostHashes {
    /// A hash of what an author can edit: counts and whatever else changes by itself stay out.
    pub(crate) content: i64,
    /// A hash of all that may differ from one refresh to the next: the content, the counts, and a
    /// poll's votes.
    pub(crate) state: i64,
}

/// The hashes of a page's posts, in page order. Parsing their JSON takes a good part of the time of a
/// commit, so it is done before, while no transaction is open.
#[derive(Clone, Debug, Default)]
pub struct PageHashes(Vec<PostHashes>);

impl PageHashes {
    /// The hashes of a page's posts.
    pub fn of(page: &Page) -> PageHashes {
        PageHashes(page.listed.iter().map(|listed| of(&listed.post)).collect())
    }

    /// The hashes, in page order.
    pub(crate) fn all(&self) -> &[PostHashes] {
        &self.0
    }
}

/// The hashes of a post.
pub(crate) fn of(post: &Post) -> PostHashes {
    let status = serde_json::from_str::<Status<'_>>(&post.raw).ok();
    let mut hash = Fnv::new();
    hash.number(post.edited_at_ms);
    hash.text(post.visibility.name());
    match &status {
        Some(status) => hash.parsed(status, Boosts::Read),
        None => hash.text(&post.raw),
    }
    let content = hash.0.cast_signed();
    let mut hash = Fnv::new();
    hash.number(Some(content));
    hash.counts(post);
    if let Some(boosted) = &post.boost_of {
        hash.counts(boosted);
    }
    hash.json(status.and_then(|status| status.poll));
    let state = hash.0.cast_signed();
    PostHashes { content, state }
}

#[derive(Clone, Copy)]
enum Boosts {
    Read,
    /// A boost of a boost does not exist; a hostile post could nest them without end.
    Leave,
}

#[derive(Deserialize)]
struct Status<'j> {
    #[serde(borrow)]
    content: Option<&'j RawValue>,
    #[serde(borrow)]
    spoiler_text: Option<&'j RawValue>,
    #[serde(borrow)]
    sensitive: Option<&'j RawValue>,
    #[serde(borrow)]
    media_attachments: Option<&'j RawValue>,
    #[serde(borrow)]
    poll: Option<&'j RawValue>,
    #[serde(borrow)]
    edited_at: Option<&'j RawValue>,
    #[serde(borrow)]
    reblog: Option<&'j RawValue>,
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

    fn status(&mut self, raw: &str, boosts: Boosts) {
        match serde_json::from_str::<Status<'_>>(raw) {
            Ok(status) => self.parsed(&status, boosts),
            Err(_) => self.text(raw),
        }
    }

    fn parsed(&mut self, status: &Status<'_>, boosts: Boosts) {
        self.json(status.content);
        self.json(status.spoiler_text);
        self.json(status.sensitive);
        self.json(status.edited_at);
        self.media(status.media_attachments);
        self.poll(status.poll);
        if let (Boosts::Read, Some(reblog)) = (boosts, status.reblog) {
            self.status(reblog.get(), Boosts::Leave);
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
