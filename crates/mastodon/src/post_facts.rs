//! The facts about a post from which predicates decide.

use std::borrow::Cow;

use driftline_core::{
    names::acct::AcctKey,
    post::Counts,
    predicate::{Attachment, Condition, Language, Matcher, NeededFacts, PostFacts, PostTrait, Tag},
};

use crate::{raw_object::RawObject, searchable_text};

/// The facts that a post's JSON states, owned. For a boost, all but the traits and the author are
/// those of the boosted post.
#[derive(Debug, Clone, Default)]
pub struct StatedFacts {
    /// The author, `name@host`, in lower case; empty if the server left the author out.
    pub author: String,
    /// The natural-language entries.
    pub entries: Vec<String>,
    /// The attachments.
    pub attachments: Vec<Attachment>,
    /// The traits.
    pub traits: Vec<PostTrait>,
    /// The code of the stated language.
    pub language: Option<String>,
    /// The hashtags, without `#`.
    pub tags: Vec<String>,
    /// The mentioned accounts, each `name@host`.
    pub mentions: Vec<String>,
    /// The counts.
    pub counts: Counts,
}

impl StatedFacts {
    /// Reads the facts from a post, JSON, as the server at `origin` showed it. A text that is not an
    /// object states nothing.
    pub fn read(status: &str, origin: &str) -> StatedFacts {
        Self::read_needed(status, origin, NeededFacts::ALL)
    }

    /// Reads the facts of these kinds from a post, JSON, as the server at `origin` showed it, and whether it is a boost.
    /// A text that is not an object states nothing.
    pub fn read_needed(status: &str, origin: &str, needed: NeededFacts) -> StatedFacts {
        let outer = RawObject::parse(status).unwrap_or_default();
        let boosted = is_boost(&outer).then(|| outer.object("reblog"));
        let shown = boosted.as_ref().unwrap_or(&outer);
        let acct = |acct: &str| {
            let key = AcctKey::new(acct, origin)?;
            Some(key.as_str().to_owned())
        };
        let mut facts = StatedFacts::default();
        let is_boost = boosted.is_some();
        facts.traits.extend(is_boost.then_some(PostTrait::Boost));
        if needed.author {
            let account = outer.object("account");
            let name = account.text("acct");
            facts.author = name.and_then(|name| acct(&name)).unwrap_or_default();
            let is_bot = account.flag("bot");
            facts.traits.extend(is_bot.then_some(PostTrait::Bot));
        }
        if needed.entries {
            let text = searchable_text::without_labels(shown);
            facts.entries = text.entries().map(str::to_owned).collect();
        }
        if needed.attachments {
            facts.attachments = attachments(shown);
        }
        if needed.names {
            facts.tags = tags(shown).collect();
            facts.mentions = mentions(shown).filter_map(|name| acct(&name)).collect();
        }
        if needed.others {
            facts.traits.extend(own_traits(shown));
            facts.language = language(shown);
            facts.counts = Counts {
                replies: shown.whole("replies_count"),
                boosts: shown.whole("reblogs_count"),
                favourites: shown.whole("favourites_count"),
                quotes: shown.whole("quotes_count"),
                views: None,
            };
        }
        facts
    }

    /// True if a matcher matches a post with these facts and `others`, of which those that a post states do not count.
    pub fn is_match(&self, matcher: &Matcher, others: PostFacts<'_>) -> bool {
        let [entries, tags, mentions] = [&self.entries, &self.tags, &self.mentions]
            .map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        matcher.matches(&PostFacts {
            author: &self.author,
            entries: &entries,
            attachments: &self.attachments,
            traits: &self.traits,
            language: self.language.as_deref(),
            tags: &tags,
            mentions: &mentions,
            counts: self.counts,
            ..others
        })
    }
}

/// The conditions with a label that a post that is not a boost meets, except for mentions.
pub(crate) fn labelled(status: &RawObject<'_>) -> Vec<Condition> {
    let mut conditions: Vec<Condition> = Vec::new();
    let tags = tags(status).filter_map(|tag| Tag::new(&tag));
    conditions.extend(tags.map(Condition::Tag));
    let language = language(status).and_then(|code| Language::new(&code));
    conditions.extend(language.map(Condition::Language));
    conditions.extend(attachments(status).into_iter().map(Condition::Has));
    conditions.extend(own_traits(status).into_iter().map(Condition::Is));
    conditions.extend(by_bot(status));
    conditions
}

/// The condition `is:bot`, if the author of a post or boost is a bot.
pub(crate) fn by_bot(status: &RawObject<'_>) -> Option<Condition> {
    let is_bot = status.object("account").flag("bot");
    is_bot.then_some(Condition::Is(PostTrait::Bot))
}

/// True if a post is a boost of another one.
pub(crate) fn is_boost(status: &RawObject<'_>) -> bool {
    status.object("reblog").get("id").is_some()
}

/// The attachments.
fn attachments(status: &RawObject<'_>) -> Vec<Attachment> {
    let has_poll = status.object("poll").get("options").is_some();
    let has_media = !status.list("media_attachments").is_empty();
    let card = status.object("card");
    present([
        (Attachment::Media, has_media),
        (Attachment::Poll, has_poll),
        (Attachment::Link, card.some_text("url").is_some()),
        (Attachment::Embed, card.some_text("html").is_some()),
        (Attachment::Cw, status.some_text("spoiler_text").is_some()),
    ])
}

/// The traits that are part of a version.
fn own_traits(status: &RawObject<'_>) -> Vec<PostTrait> {
    present([
        (PostTrait::Reply, is_reply(status)),
        (PostTrait::Edited, status.time_ms("edited_at").is_some()),
        (PostTrait::Sensitive, status.flag("sensitive")),
    ])
}

/// True if a post is a reply. When the post to which it replies is deleted, servers go on naming its author alone.
fn is_reply(status: &RawObject<'_>) -> bool {
    let mut names = ["in_reply_to_id", "in_reply_to_account_id"].into_iter();
    names.any(|name| status.id(name).is_some())
}

fn language(status: &RawObject<'_>) -> Option<String> {
    status.some_text("language").map(Cow::into_owned)
}

fn tags(status: &RawObject<'_>) -> impl Iterator<Item = String> {
    let tags = status.objects("tags");
    tags.filter_map(|tag| tag.some_text("name").map(Cow::into_owned))
        .take(MAX_NAMES)
}

/// The mentioned accounts, as the server names them.
pub(crate) fn mentions(status: &RawObject<'_>) -> impl Iterator<Item = String> {
    let accounts = status.objects("mentions");
    accounts
        .filter_map(|account| account.some_text("acct").map(Cow::into_owned))
        .take(MAX_NAMES)
}

/// The number of tags, and of mentions, of a post that count. A server may send any number.
const MAX_NAMES: usize = 100;

fn present<T, const N: usize>(all: [(T, bool); N]) -> Vec<T> {
    let present = all.into_iter().filter(|(_, is_present)| *is_present);
    present.map(|(part, _)| part).collect()
}

#[cfg(test)]
mod tests {
    use driftline_core::predicate::{Acct, NameContext, Predicate};

    use super::*;
    use crate::text_of_json;

    const STATUS: &str = r#"{"id":"1","content":"<p>a cat</p>","spoiler_text":"pets","sensitive":true,
        "language":"en","in_reply_to_id":"7","edited_at":"2026-01-01T00:00:00Z","favourites_count":3,
        "media_attachments":[{"id":"1","description":"a sofa"}],"poll":{"options":[{"title":"yes"}]},
        "card":{"url":"https://a.example/","html":"<iframe>"},"tags":[{"name":"Cats"}],
        "mentions":[{"acct":"Bob"},{"acct":"eve@E.example"}],"account":{"acct":"Ann","bot":true}}"#;

    #[test]
    fn all_parts_of_a_status_are_facts() {
        let facts = StatedFacts::read(STATUS, "https://A.example");
        assert_eq!(facts.author, "ann@a.example");
        assert_eq!(facts.entries, ["pets", "a cat", "yes", "a sofa"]);
        assert_eq!(facts.attachments.len(), 5);
        assert_eq!(
            facts.traits,
            [
                PostTrait::Bot,
                PostTrait::Reply,
                PostTrait::Edited,
                PostTrait::Sensitive
            ]
        );
        assert_eq!(facts.tags, ["Cats"]);
        assert_eq!(facts.mentions, ["bob@a.example", "eve@e.example"]);
        assert_eq!(facts.language.as_deref(), Some("en"));
        assert_eq!(facts.counts.favourites, Some(3));
    }

    /// The facts that a predicate does not compare do not change its decision.
    #[test]
    fn the_needed_facts_decide_as_all_do() {
        let names = NameContext {
            origin: "https://a.example",
            viewer: None,
        };
        let boost = format!(r#"{{"id":"2","account":{{"acct":"eve"}},"reblog":{STATUS}}}"#);
        for text in [
            "cat",
            "from:ann",
            "instance:a.example",
            "has:poll",
            "has:link",
            "#cats",
            "mentions:bob",
            "is:bot",
            "is:boost",
            "is:reply",
            "lang:en",
            "favourites:>2",
            "cat -is:boost",
        ] {
            let predicate = Predicate::parse(text, &names).expect(text);
            let matcher = Matcher::new(&predicate);
            let matches = |json: &str, needed| {
                let facts = StatedFacts::read_needed(json, "https://a.example", needed);
                facts.is_match(&matcher, PostFacts::bare(1, ""))
            };
            let needed = predicate.needed_facts();
            for json in [STATUS, &boost, "{}"] {
                let expected = matches(json, NeededFacts::ALL);
                assert_eq!(matches(json, needed), expected, "{text} {json}");
            }
            assert_eq!(matches(STATUS, needed), text != "is:boost", "{text}");
        }
        let facts = StatedFacts::read_needed(STATUS, "", NeededFacts::default());
        assert!(facts.entries.is_empty() && facts.traits.is_empty() && facts.tags.is_empty());
    }

    #[test]
    fn a_boost_has_the_facts_of_the_boosted_post_and_its_own_author() {
        let boost = format!(r#"{{"id":"2","account":{{"acct":"eve"}},"reblog":{STATUS}}}"#);
        let facts = StatedFacts::read(&boost, "https://a.example");
        assert_eq!(facts.author, "eve@a.example");
        assert_eq!(facts.entries[1], "a cat");
        assert_eq!(facts.traits[0], PostTrait::Boost);
        assert!(!facts.traits.contains(&PostTrait::Bot));
    }

    /// An index finds posts by these labels, so each condition that the facts meet has its label.
    #[test]
    fn the_labels_of_a_text_are_those_of_the_facts() {
        let boost =
            format!(r#"{{"id":"2","account":{{"acct":"eve","bot":true}},"reblog":{STATUS}}}"#);
        let own = "has:cw has:embed has:link has:media has:poll is:bot is:edited is:reply is:sensitive \
            lang:en mentions:bob mentions:eve@e.example tag:cats";
        let labels = |json: &str| text_of_json(json).labels.replace('\u{1f}', " ");
        assert_eq!(labels(STATUS), own);
        assert_eq!(labels(&boost), own.replace("is:bot", "is:boost is:bot"));
        for json in [STATUS, &boost] {
            let text = text_of_json(json);
            let facts = StatedFacts::read(json, "https://a.example");
            let traits = facts.traits.into_iter().map(Condition::Is);
            let attachments = facts.attachments.into_iter().map(Condition::Has);
            let mentions = facts.mentions.iter().filter_map(|acct| Acct::new(acct));
            let mentions = mentions.map(Condition::Mentions);
            let conditions = traits.chain(attachments).chain(mentions);
            for label in conditions.filter_map(|of| of.label()) {
                let mut own = text.labels_at("https://a.example");
                assert!(own.any(|own| own == label), "{label}");
            }
        }
    }

    #[test]
    fn what_is_no_status_states_nothing() {
        for text in [
            "",
            "[]",
            "7",
            r#"{"content":7,"tags":{},"poll":[],"card":null}"#,
        ] {
            let facts = StatedFacts::read(text, "https://a.example");
            assert!(
                facts.entries.is_empty() && facts.attachments.is_empty(),
                "{text}"
            );
        }
    }
}
