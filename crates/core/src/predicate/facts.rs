use super::{
    condition::{Attachment, Comparison, Condition, CountKind, PostTrait, date_contains},
    names::Tag,
    proposition::IdMask,
};
use crate::post::{Counts, Visibility};

/// The facts about one post as one viewer is shown it, from which predicates decide.
///
/// For a boost, the texts, the hashtags, the language, the attachments and the counts are those of
/// the boosted post; the author, the ID and the times are those of the boost.
#[derive(Debug, Clone, Copy)]
pub struct PostFacts<'a> {
    /// The ID of the post on this server.
    pub id: u64,
    /// The author, `name@host`.
    pub author: &'a str,
    /// The ID of the author on this server, if it is known.
    pub author_id: Option<u64>,
    /// The author's nickname, if the viewer may read the author's profile.
    pub nickname: Option<&'a str>,
    /// The natural-language entries of the post: the content warning, the text, each option of the
    /// poll, each description of a medium. A word matches within one entry.
    pub entries: &'a [&'a str],
    /// The hosts of the servers through which copies of the post were seen.
    pub via: &'a [&'a str],
    /// The names of the sources that contain the post and that the viewer may read.
    pub sources: &'a [&'a str],
    /// The attachments.
    pub attachments: &'a [Attachment],
    /// The traits.
    pub traits: &'a [PostTrait],
    /// The code of the stated language.
    pub language: Option<&'a str>,
    /// The hashtags, without their `#`.
    pub tags: &'a [&'a str],
    /// The mentioned accounts, each `name@host`.
    pub mentions: &'a [&'a str],
    /// The visibility.
    pub visibility: Visibility,
    /// The creation time in Unix ms, if it is known.
    pub created_at_ms: Option<i64>,
    /// The counts.
    pub counts: Counts,
}

impl<'a> PostFacts<'a> {
    /// Returns the facts about a public post without content.
    pub const fn bare(id: u64, author: &'a str) -> Self {
        Self {
            id,
            author,
            author_id: None,
            nickname: None,
            entries: &[],
            via: &[],
            sources: &[],
            attachments: &[],
            traits: &[],
            language: None,
            tags: &[],
            mentions: &[],
            visibility: Visibility::Public,
            created_at_ms: None,
            counts: Counts {
                replies: None,
                boosts: None,
                favourites: None,
                quotes: None,
                views: None,
            },
        }
    }

    /// Returns true if the post is a boost of another one.
    pub fn is_boost(&self) -> bool {
        self.traits.contains(&PostTrait::Boost)
    }

    /// Returns the entries in which words are searched.
    pub(super) fn searched_entries(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().copied().chain(self.nickname)
    }

    /// Returns the hashtags, folded by [`Tag::key_for`].
    pub(super) fn folded_tags(&self) -> Vec<String> {
        self.tags.iter().map(|tag| Tag::key_for(tag)).collect()
    }

    /// Returns the host of the author's instance.
    pub(super) fn instance(&self) -> &'a str {
        self.author.rsplit_once('@').map_or("", |(_, host)| host)
    }

    fn count(&self, kind: CountKind) -> Option<i64> {
        match kind {
            CountKind::Favourites => self.counts.favourites,
            CountKind::Boosts => self.counts.boosts,
            CountKind::Replies => self.counts.replies,
            CountKind::Quotes => self.counts.quotes,
            CountKind::Views => self.counts.views,
        }
    }
}

impl IdMask {
    pub(super) fn holds(&self, facts: &PostFacts<'_>) -> bool {
        let has_id = self.id.is_some() && self.id == facts.author_id;
        has_id || self.acct.as_str().eq_ignore_ascii_case(facts.author)
    }
}

impl Condition {
    /// Returns true if the post, with these folded hashtags, meets the condition.
    pub(super) fn holds(&self, facts: &PostFacts<'_>, folded_tags: &[String]) -> bool {
        let is_any =
            |text: &str, texts: &[&str]| texts.iter().any(|t| t.eq_ignore_ascii_case(text));
        let compares = |comparison: &Comparison, count: Option<i64>| {
            count.is_some_and(|count| comparison.holds(count))
        };
        let created = facts.created_at_ms;
        match self {
            Self::Via(host) => is_any(host.as_str(), facts.via),
            Self::Source(name) => facts.sources.contains(&name.as_str()),
            Self::Has(attachment) => facts.attachments.contains(attachment),
            Self::Is(post_trait) => facts.traits.contains(post_trait),
            Self::Language(code) => facts
                .language
                .is_some_and(|language| code.as_str().eq_ignore_ascii_case(language)),
            Self::Tag(tag) => folded_tags.contains(&tag.key()),
            Self::Mentions(acct) => is_any(acct.as_str(), facts.mentions),
            Self::Visibility(visibility) => *visibility == facts.visibility,
            Self::After(when) => created.is_some_and(|time_ms| when.is_before(time_ms)),
            Self::Before(when) => created.is_some_and(|time_ms| when.is_after(time_ms)),
            Self::During(date) => created.is_some_and(|time_ms| date_contains(*date, time_ms)),
            Self::Id(comparison) => comparison.holds(facts.id),
            Self::Count { kind, comparison } => compares(comparison, facts.count(*kind)),
        }
    }
}
