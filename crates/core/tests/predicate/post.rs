//! A post with its own texts.

use driftline_core::{
    post::{Counts, Visibility},
    predicate::{Attachment, PostFacts, PostTrait},
};

#[derive(Debug, Clone)]
pub struct TestPost {
    pub id: u64,
    pub author: String,
    pub author_id: Option<u64>,
    pub nickname: Option<String>,
    pub entries: Vec<String>,
    pub via: Vec<String>,
    pub sources: Vec<String>,
    pub attachments: Vec<Attachment>,
    pub traits: Vec<PostTrait>,
    pub language: Option<String>,
    pub tags: Vec<String>,
    pub mentions: Vec<String>,
    pub visibility: Visibility,
    pub created_at_ms: Option<i64>,
    pub counts: Counts,
}

impl TestPost {
    pub fn new(author: &str, entries: &[&str]) -> Self {
        Self {
            id: 1,
            author: author.to_owned(),
            author_id: None,
            nickname: None,
            entries: entries.iter().map(|entry| (*entry).to_owned()).collect(),
            via: Vec::new(),
            sources: Vec::new(),
            attachments: Vec::new(),
            traits: Vec::new(),
            language: None,
            tags: Vec::new(),
            mentions: Vec::new(),
            visibility: Visibility::Public,
            created_at_ms: None,
            counts: Counts::default(),
        }
    }

    pub fn with_facts<R>(&self, read: impl FnOnce(&PostFacts<'_>) -> R) -> R {
        let entries = borrowed(&self.entries);
        let via = borrowed(&self.via);
        let sources = borrowed(&self.sources);
        let tags = borrowed(&self.tags);
        let mentions = borrowed(&self.mentions);
        read(&PostFacts {
            id: self.id,
            author: &self.author,
            author_id: self.author_id,
            nickname: self.nickname.as_deref(),
            entries: &entries,
            via: &via,
            sources: &sources,
            attachments: &self.attachments,
            traits: &self.traits,
            language: self.language.as_deref(),
            tags: &tags,
            mentions: &mentions,
            visibility: self.visibility,
            created_at_ms: self.created_at_ms,
            counts: self.counts,
        })
    }
}

fn borrowed(texts: &[String]) -> Vec<&str> {
    texts.iter().map(|text| &**text).collect()
}
