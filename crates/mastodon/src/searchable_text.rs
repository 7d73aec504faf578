//! The readable parts of a post, as plain text.

use std::borrow::Cow;

use driftline_core::{
    post_text::PostText,
    predicate::{Condition, PostTrait},
};

use crate::{
    clean_html,
    post_facts::{by_bot, is_boost, labelled, mentions},
    raw_object::RawObject,
};

/// The version of the extraction that makes a [`PostText`]. It must be raised with every change of
/// its results, and of the terms that documents have: a server then makes stored texts and documents of
/// other versions again, and so does a replica. New stores begin with it (`index_state` in the schema).
pub const TEXT_EXTRACTION: i64 = 4;

/// The searchable text of a post as it is stored, JSON. Empty if that is not an object.
pub fn text_of_json(status: &str) -> PostText {
    let status = RawObject::parse(status).unwrap_or_default();
    match is_boost(&status) {
        true => text_of_boost(own_text(&status.object("reblog")), &status),
        false => own_text(&status),
    }
}

/// The searchable text of a post that is not a boost. Its entries depend on members alone that are part of
/// the content hash. Its labels also depend on others, such as a preview: a server may change these without an edit.
pub(crate) fn own_text(status: &RawObject<'_>) -> PostText {
    without_labels(status)
        .with_labels(labelled(status))
        .with_mentions(mentions(status))
}

/// The searchable text of a post that is not a boost, without its labels.
pub(crate) fn without_labels(status: &RawObject<'_>) -> PostText {
    let entries = entries(status);
    PostText::from_entries(TEXT_EXTRACTION, entries.iter().map(|entry| &**entry))
}

/// The searchable text of a boost, from that of the boosted post, all of whose labels it has.
pub(crate) fn text_of_boost(boosted: PostText, boost: &RawObject<'_>) -> PostText {
    let is_boost = Condition::Is(PostTrait::Boost);
    boosted.with_labels([is_boost].into_iter().chain(by_bot(boost)))
}

/// The searchable texts of a post, with empty lines between them: see [`PostText`].
pub fn searchable_text(status: &RawObject<'_>) -> String {
    entries(&shown(status.clone())).join("\n\n")
}

/// The post whose texts a post shows: for a boost, the boosted post.
pub(crate) fn shown(status: RawObject<'_>) -> RawObject<'_> {
    match is_boost(&status) {
        true => status.object("reblog"),
        false => status,
    }
}

/// The warning, the text, the options of the poll and the descriptions of the media.
fn entries<'j>(status: &RawObject<'j>) -> Vec<Cow<'j, str>> {
    let mut texts = Vec::new();
    texts.extend(status.some_text("spoiler_text"));
    let html = status.some_text("content");
    texts.extend(html.map(|html| Cow::Owned(plain_text(&html))));
    let poll = status.object("poll");
    texts.extend(
        poll.objects("options")
            .filter_map(|option| option.some_text("title")),
    );
    let media = status.objects("media_attachments");
    texts.extend(media.filter_map(|medium| medium.some_text("description")));
    texts
}

/// The text of a post's HTML, with line breaks where elements begin a line.
pub fn plain_text(html: &str) -> String {
    // Cleaned HTML is well formed, and has four entities.
    let html = clean_html(html);
    let mut out = String::with_capacity(html.len());
    let mut rest = &*html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        push_decoded(&mut out, &rest[..at]);
        let (tag, after) = tag_at(&rest[at..]);
        if breaks_line(tag) {
            out.push('\n');
        }
        rest = after;
    }
    push_decoded(&mut out, rest);
    out.truncate(out.trim_end().len());
    out.drain(..out.len() - out.trim_start().len());
    out
}

/// Adds text of cleaned HTML without its entities.
fn push_decoded(out: &mut String, mut text: &str) {
    while let Some(at) = memchr::memchr(b'&', text.as_bytes()) {
        let (before, rest) = text.split_at(at);
        let entity = ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity));
        let (entity, decoded) = entity.copied().unwrap_or(("&", "&"));
        out.push_str(before);
        out.push_str(decoded);
        text = &rest[entity.len()..];
    }
    out.push_str(text);
}

/// The tag at the beginning of a text, without its brackets, and the rest of the text.
fn tag_at(text: &str) -> (&str, &str) {
    let mut is_quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'>' if !is_quoted => return (&text[1..at], &text[at + 1..]),
            _ => {}
        }
    }
    (&text[1..], "")
}

fn breaks_line(tag: &str) -> bool {
    let name = tag.split(|of: char| of.is_whitespace()).next();
    let name = name.unwrap_or_default().trim_matches('/');
    matches!(name, "p" | "br" | "li" | "ul" | "ol" | "pre" | "blockquote")
}

/// The author of the post to which a post replies, unless both have the same author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyTo {
    /// An account, by its ID at the upstream.
    Account(String),
    /// An account that the upstream leaves out.
    Unknown,
}

/// The account to which a post, as JSON, replies; `None` if it is not a reply, or replies to its
/// own author.
pub fn reply_to(status: &str) -> Option<ReplyTo> {
    let status = RawObject::parse(status).ok()?;
    let author = status.object("account");
    match (
        status.id("in_reply_to_id"),
        status.id("in_reply_to_account_id"),
    ) {
        (None, None) => None,
        (Some(_), None) => Some(ReplyTo::Unknown),
        (_, Some(answered)) if author.id("id").as_ref() == Some(&answered) => None,
        (_, Some(answered)) => Some(ReplyTo::Account(answered.into_owned())),
    }
}

/// The entities of cleaned HTML.
const ENTITIES: [(&str, &str); 5] = [
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&nbsp;", "\u{a0}"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_the_text_that_people_read() {
        for (html, text) in [
            ("<p>a &amp; b</p><p>c<br>d</p>", "a & b\n\nc\nd"),
            ("<p>x<script>alert(1)</script>&lt;b&gt;</p>", "x<b>"),
            (
                r#"<p><a href="https://a.example/?q=%3E" rel="x"><span class="invisible">https://</span>a.example</a></p>"#,
                "https://a.example",
            ),
            ("&amp;lt;", "&lt;"),
            ("1 < 2", "1 < 2"),
            ("猫&nbsp;犬", "猫\u{a0}犬"),
        ] {
            let expected: Vec<&str> = text.split('\n').collect();
            let found = plain_text(html);
            assert_eq!(found.split('\n').collect::<Vec<_>>(), expected, "{html}");
        }
    }

    #[test]
    fn a_boost_is_searched_by_what_it_boosts() {
        let json = r#"{"id":"2","content":"","spoiler_text":"x","reblog":{"id":"1","content":"<p>cat</p>",
            "spoiler_text":"pets","poll":{"options":[{"title":"yes"}]},
            "media_attachments":[{"description":"a sofa"},{"description":null}]}}"#;
        let status = RawObject::parse(json).expect("an object");
        assert_eq!(searchable_text(&status), "pets\n\ncat\n\nyes\n\na sofa");
    }

    #[test]
    fn an_author_who_answers_themselves_answers_nobody() {
        let reply = |to: &str| reply_to(&format!(r#"{{"account":{{"id":"7"}},{to}}}"#));
        assert_eq!(reply(r#""in_reply_to_id":null"#), None);
        let own = r#""in_reply_to_id":"1","in_reply_to_account_id":"7""#;
        assert_eq!(reply(own), None);
        let other = r#""in_reply_to_id":"1","in_reply_to_account_id":"8""#;
        assert_eq!(reply(other), Some(ReplyTo::Account("8".to_owned())));
        assert_eq!(reply(r#""in_reply_to_id":"1""#), Some(ReplyTo::Unknown));
    }
}
