//! A post as an answer shows it.

use std::hash::{DefaultHasher, Hash, Hasher};

use driftline_core::{
    post::{Author, Counts, Post, PostHashes, References, Visibility},
    post_text::PostText,
    upstream_id::UpstreamId,
};

use crate::{rng::hash_text, wire};

/// A post in its state at the time of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its ID.
    pub id: UpstreamId,
    /// The ID that it had first, if an edit has changed it.
    pub first_id: Option<UpstreamId>,
    /// When it says that it was written, Unix ms.
    pub created_at_ms: i64,
    /// When it was last edited, Unix ms.
    pub edited_at_ms: Option<i64>,
    /// Who may see it.
    pub visibility: Visibility,
    /// Its text, HTML; empty for a boost.
    pub content: String,
    /// Who wrote it.
    pub author: SimAuthor,
    /// Replies so far.
    pub replies: i64,
    /// Boosts so far.
    pub boosts: i64,
    /// Favourites so far.
    pub favourites: i64,
    /// The post that this one boosts.
    pub boost_of: Option<Box<Status>>,
}

/// An account of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimAuthor {
    /// Its ID, a number.
    pub id: u64,
    /// Its name on its own server.
    pub name: String,
    /// Its own server, if that is another one.
    pub host: Option<String>,
}

impl Status {
    /// The Mastodon JSON of the post.
    pub fn to_json(&self) -> String {
        wire::status_json(self).to_string()
    }

    /// The post as a client that read the JSON would hold it.
    pub fn to_post(&self) -> Post {
        Post {
            id: self.id.clone(),
            uri: Some(self.uri()),
            url: Some(self.url()),
            created_at_ms: Some(self.created_at_ms),
            edited_at_ms: self.edited_at_ms,
            visibility: self.visibility,
            author: Author {
                id: UpstreamId::new(self.author.id.to_string()),
                acct: self.author.acct(),
                display_name: self.author.display_name(),
                url: Some(self.author.url()),
                uri: Some(self.author.uri()),
                raw: wire::account_json(&self.author).to_string(),
            },
            boost_of: self
                .boost_of
                .as_ref()
                .map(|boosted| Box::new(boosted.to_post())),
            reply_to: None,
            references: self.references(),
            counts: Counts {
                replies: Some(self.replies),
                boosts: Some(self.boosts),
                favourites: Some(self.favourites),
                ..Counts::default()
            },
            hashes: self.hashes(),
            text: self.text(),
            raw: self.to_json(),
            viewer: None,
        }
    }

    fn references(&self) -> References {
        let boosted = self.boost_of.iter();
        References {
            posts: boosted.clone().map(|boosted| boosted.id.clone()).collect(),
            accounts: boosted
                .map(|boosted| UpstreamId::new(boosted.author.id.to_string()))
                .collect(),
        }
    }

    /// The text as it was before it became HTML.
    fn text(&self) -> PostText {
        let shown = self.boost_of.as_deref().unwrap_or(self);
        let text = shown.content.trim_start_matches("<p>");
        PostText::from_entries(0, [text.trim_end_matches("</p>")])
    }

    /// Hashes of its own, which no other program's are compared with.
    fn hashes(&self) -> PostHashes {
        fn hashed(parts: impl Hash) -> i64 {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            hasher.finish().cast_signed()
        }
        let boosted = self.boost_of.as_ref().map(|boosted| boosted.hashes());
        let content = (
            &self.content,
            self.edited_at_ms,
            self.visibility,
            boosted.map(|hashes| hashes.content),
        );
        let counts = (self.replies, self.boosts, self.favourites);
        PostHashes {
            content: hashed(content),
            state: hashed((content, counts, boosted.map(|hashes| hashes.state))),
        }
    }

    /// The hash that [`crate::TruePost::content_hash`] compares with.
    pub fn content_hash(&self) -> u64 {
        hash_text(&self.content)
    }

    pub(crate) fn uri(&self) -> String {
        format!(
            "https://{}/users/{}/statuses/{}",
            self.author.host(),
            self.author.name,
            self.first_id()
        )
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/{}", self.author.url(), self.first_id())
    }

    /// The ID that it had first, by which its `uri` names it.
    pub fn first_id(&self) -> &UpstreamId {
        self.first_id.as_ref().unwrap_or(&self.id)
    }
}

impl SimAuthor {
    /// `name`, or `name@host` for an account of another server.
    pub fn acct(&self) -> String {
        match &self.host {
            Some(host) => format!("{}@{host}", self.name),
            None => self.name.clone(),
        }
    }

    /// The account's address for people.
    pub fn url(&self) -> String {
        format!("https://{}/@{}", self.host(), self.name)
    }

    /// The account's name across servers.
    pub fn uri(&self) -> String {
        format!("https://{}/users/{}", self.host(), self.name)
    }

    pub(crate) fn display_name(&self) -> String {
        self.name.replacen("drifter", "Drifter ", 1)
    }

    pub(crate) fn host(&self) -> &str {
        self.host.as_deref().unwrap_or(HOST)
    }
}

/// The simulated server's own name.
pub(crate) const HOST: &str = "sim.example";
