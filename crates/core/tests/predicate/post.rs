//! A post with its own texts.

use driftline_core::{
    post::{Counts, Visibility},
    predicate::{Attachment, PostFacts, PostTrait},
};

#[derive(Debug, Clone)]
pub(crate) struct TestPost {
    pub(crate) id: u64,
    pub(crate) author: String,
    pub(crate) author_id: Option<u64>,
    pub(crate) nickname: Option<String>,
    pub(crate) entries: Vec<String>,
    pub(crate) via: Vec<String>,
    pub(crate) sources: Vec<String>,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) traits: Vec<PostTrait>,
    pub(crate) language: Option<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) mentions: Vec<String>,
    pub(crate) visibility: Visibility,
    pub(crate) created_at_ms: Option<i64>,
    pub(crate) counts: Counts,
}

impl TestPost {
    pub(crate) fn new(author: &str, entries: &[&str]) -> Self {
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

    pub(crate) fn with_facts<R>(&self, read: impl FnOnce(&PostFacts<'_>) -> R) -> R {
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
