//! HTML of servers, cleaned.
//!
//! What Mastodon lets through is let through here: its elements, attributes, classes and schemes of
//! links. ammonia decides, and this module keeps its work small:
//!
//! - Most HTML is canonical already, or nearly. [`canonical`](canonical::canonical) recognises it and
//!   writes what ammonia would.
//! - All other HTML is balanced first ([`balanced`](balance::balanced)): a tree builder that follows the
//!   standard takes quadratic time and space for elements that are never closed.
//!
//! HTML that is too large, or one of whose tags is, becomes text.

mod balance;
mod canonical;
mod embed;
mod rules;

use std::borrow::Cow;

/// HTML as Mastodon would pass it on. What was clean is borrowed.
///
/// Elements are well nested, links have `rel="nofollow noopener"`, and nothing is left that could run
/// a script, load anything, or change how the page around it looks.
pub fn clean_html(html: &str) -> Cow<'_, str> {
    if is_plain(html) {
        return Cow::Borrowed(html);
    }
    let cleaned = match canonical::canonical(html) {
        Some(cleaned) => cleaned,
        None => strictly_cleaned(html),
    };
    match cleaned == html {
        true => Cow::Borrowed(html),
        false => Cow::Owned(cleaned),
    }
}

/// The HTML by which a page can be shown in another one (oEmbed), as Mastodon would pass it on: frames
/// in a sandbox, films and sounds by HTTP.
pub fn clean_embed(html: &str) -> Cow<'_, str> {
    match is_plain(html) {
        true => Cow::Borrowed(html),
        false => Cow::Owned(embed::clean(html)),
    }
}

/// Text as HTML.
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    rules::write_text(&mut out, text);
    out
}

/// Without the short cut of [`canonical`](canonical::canonical).
fn strictly_cleaned(html: &str) -> String {
    match balance::balanced(html) {
        Some(balanced) => rules::content().clean(&balanced).to_string(),
        None => escape_html(&html.replace('\0', "\u{fffd}")),
    }
}

/// Whether a text holds nothing that HTML writes in another way.
pub(crate) fn is_plain(text: &str) -> bool {
    let is_special = |byte: &u8| matches!(byte, b'<' | b'>' | b'&' | b'\r' | 0 | 0xC2 | 0xEF);
    // U+00A0 begins with C2, U+FEFF with EF, as many other characters do.
    !text.bytes().any(|byte| is_special(&byte))
        || !(text.contains(['<', '>', '&', '\r', '\0', '\u{a0}']) || text.starts_with('\u{feff}'))
}

#[cfg(test)]
mod tests;
