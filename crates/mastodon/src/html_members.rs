//! The members that contain HTML, and their cleaning. `docs/api.md` lists them.

use std::borrow::Cow;

use driftline_core::text::without_nul;
use serde_json::value::RawValue;

use crate::{
    html::{clean_embed, clean_html},
    raw_object::decoded,
    template::Template,
    viewer::Part,
};

/// The kinds of HTML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Markup {
    /// The HTML of posts and profiles.
    Content,
    /// The HTML that embeds a page in another one.
    Embed,
}

/// The kind of HTML in a text of a member called `name`, at any position; `None` for plain text.
pub(crate) fn markup(name: &str) -> Option<Markup> {
    let holds =
        matches!(name, "content" | "note" | "html" | "text/html") || name.ends_with("_html");
    holds.then_some(Markup::Content)
}

/// True if JSON without escapes may contain HTML that is not clean. False if no name in it suggests
/// HTML, or it lacks the characters of HTML. In a known part, any member may contain HTML.
pub(crate) fn may_hold_html(part: Option<Part>, json: &str) -> bool {
    let has = |name: &str| json.contains(name);
    let is_named = || has("content\"") || has("note\"") || has("html\"");
    (part.is_some() || is_named()) && json.contains(['<', '>', '&', '\u{a0}'])
}

/// Writes a text with cleaned HTML, unchanged if it was clean. Other values stay unchanged.
pub(crate) fn write_cleaned(out: &mut Template, markup: Markup, value: &RawValue) {
    let json = value.get();
    let Some(bytes) = decoded(json) else {
        return out.json(json);
    };
    // Half of a surrogate pair is not text.
    let text = String::from_utf8_lossy(&bytes);
    let text = without_nul(&text);
    let cleaned = match markup {
        Markup::Content => clean_html(&text),
        Markup::Embed => clean_embed(&text),
    };
    match cleaned {
        Cow::Borrowed(clean) if clean.len() == bytes.len() => out.json(json),
        cleaned => out.value(&cleaned),
    }
}
