//! The facts about a post from which predicates decide.

use std::borrow::Cow;

use driftline_core::{
    names::acct::AcctKey,
    post::Counts,
    predicate::{Attachment, PostTrait},
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
        let outer = RawObject::parse(status).unwrap_or_default();
        let shown = searchable_text::shown(outer.clone());
        let account = outer.object("account");
        let card = shown.object("card");
        let is_boost = outer.object("reblog").get("id").is_some();
        let has_poll = shown.object("poll").get("options").is_some();
        let has_media = !shown.list("media_attachments").is_empty();
        let is_embedded = card.some_text("html").is_some();
        let attachments = [
            (Attachment::Media, has_media),
            (Attachment::Poll, has_poll),
            (Attachment::Link, card.some_text("url").is_some()),
            (Attachment::Embed, is_embedded),
            (Attachment::Cw, shown.some_text("spoiler_text").is_some()),
        ];
        let traits = [
            (PostTrait::Boost, is_boost),
            (PostTrait::Reply, shown.id("in_reply_to_id").is_some()),
            (PostTrait::Edited, shown.some_text("edited_at").is_some()),
            (PostTrait::Sensitive, shown.flag("sensitive")),
            (PostTrait::Bot, account.flag("bot")),
        ];
        let text = |object: &RawObject<'_>, name| object.some_text(name).map(Cow::into_owned);
        let acct = |object: &RawObject<'_>| {
            let key = AcctKey::new(&object.text("acct")?, origin)?;
            Some(key.as_str().to_owned())
        };
        let entries = searchable_text::own_text(&shown);
        StatedFacts {
            author: acct(&account).unwrap_or_default(),
            entries: entries.entries().map(str::to_owned).collect(),
            attachments: present(attachments),
            traits: present(traits),
            language: text(&shown, "language"),
            tags: shown
                .objects("tags")
                .filter_map(|tag| text(&tag, "name"))
                .collect(),
            mentions: shown
                .objects("mentions")
                .filter_map(|of| acct(&of))
                .collect(),
            counts: Counts {
                replies: shown.whole("replies_count"),
                boosts: shown.whole("reblogs_count"),
                favourites: shown.whole("favourites_count"),
                quotes: shown.whole("quotes_count"),
                views: None,
            },
        }
    }
}

fn present<T, const N: usize>(all: [(T, bool); N]) -> Vec<T> {
    let present = all.into_iter().filter(|(_, is_present)| *is_present);
    present.map(|(part, _)| part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
                PostTrait::Reply,
                PostTrait::Edited,
                PostTrait::Sensitive,
                PostTrait::Bot
            ]
        );
        assert_eq!(facts.tags, ["Cats"]);
        assert_eq!(facts.mentions, ["bob@a.example", "eve@e.example"]);
        assert_eq!(facts.language.as_deref(), Some("en"));
        assert_eq!(facts.counts.favourites, Some(3));
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
