//! Which members hold HTML, and how they are passed on. `docs/api.md` lists them.

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
    /// Of posts and profiles.
    Content,
    /// By which a page is shown in another.
    Embed,
}

/// What a text of a member of that name holds, wherever it stands; `None` for plain text.
pub(crate) fn markup(name: &str) -> Option<Markup> {
    let holds =
        matches!(name, "content" | "note" | "html" | "text/html") || name.ends_with("_html");
    holds.then_some(Markup::Content)
}

/// Whether JSON without escapes may hold HTML that is not clean: not by the names in it, or as it has
/// none of the characters that HTML needs. In a known part any member may.
pub(crate) fn may_hold_html(part: Option<Part>, json: &str) -> bool {
    let has = |name: &str| json.contains(name);
    let is_named = || has("content\"") || has("note\"") || has("html\"");
    (part.is_some() || is_named()) && json.contains(['<', '>', '&', '\u{a0}'])
}

/// Writes a text with HTML, cleaned; as it was written if it was clean. Another value stays.
pub(crate) fn write_cleaned(out: &mut Template, markup: Markup, value: &RawValue) {
    let json = value.get();
    let Some(bytes) = decoded(json) else {
        return out.json(json);
    };
    // Half of a surrogate pair is no text.
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
