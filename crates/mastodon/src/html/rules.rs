//! What Mastodon lets through.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::{Builder, UrlRelative};
use url::Url;

/// The elements of posts and profiles.
pub(super) const ELEMENTS: [&str; 20] = [
    "p",
    "br",
    "span",
    "a",
    "del",
    "s",
    "pre",
    "blockquote",
    "code",
    "b",
    "strong",
    "u",
    "i",
    "em",
    "ul",
    "ol",
    "li",
    "ruby",
    "rt",
    "rp",
];

/// The schemes of links.
const SCHEMES: [&str; 11] = [
    "http", "https", "dat", "dweb", "ipfs", "ipns", "ssb", "gopher", "xmpp", "magnet", "gemini",
];

/// The attributes that are kept, in the order in which they are written.
pub(super) const ATTRIBUTES: [&str; 7] = [
    "href",
    "class",
    "translate",
    "lang",
    "start",
    "reversed",
    "value",
];

/// What each link has.
pub(super) const TARGET: &str = "_blank";
pub(super) const REL: &str = "nofollow noopener";

/// The value that an attribute has here; `None` if it is left out.
pub(super) fn attribute<'v>(element: &str, name: &str, value: &'v str) -> Option<Cow<'v, str>> {
    match (element, name) {
        ("a", "href") => is_link(value).then_some(Cow::Borrowed(value)),
        ("a" | "span" | "p", "class") => classes(value),
        ("a" | "span", "translate") => (value == "no").then_some(Cow::Borrowed(value)),
        (_, "lang") => is_language(value).then_some(Cow::Borrowed(value)),
        ("ol", "reversed") => Some(Cow::Borrowed("")),
        ("ol", "start") | ("li", "value") => is_number(value).then_some(Cow::Borrowed(value)),
        _ => None,
    }
}

/// Whether an address may be linked to.
pub(super) fn is_link(address: &str) -> bool {
    is_usual_link(address) || Url::parse(address).is_ok_and(|url| SCHEMES.contains(&url.scheme()))
}

/// Whether an address is one that can only be parsed as a link. Most are.
pub(super) fn is_usual_link(address: &str) -> bool {
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // No number, no name in Punycode, no port.
    let is_label = |label: &str| {
        label.starts_with(|first: char| first.is_ascii_lowercase())
            && !label.starts_with("xn--")
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    rest[..end].split('.').all(is_label)
}

/// The classes that clients know; `None` if there are none.
fn classes(value: &str) -> Option<Cow<'_, str>> {
    let all = || value.split(['\t', '\n', '\u{c}', '\r', ' ']);
    if all().all(is_known_class) {
        return Some(Cow::Borrowed(value));
    }
    let known: Vec<&str> = all().filter(|class| is_known_class(class)).collect();
    (!known.is_empty()).then(|| Cow::Owned(known.join(" ")))
}

fn is_known_class(class: &str) -> bool {
    // Microformats.
    ["h-", "p-", "u-", "dt-", "e-"]
        .iter()
        .any(|prefix| class.starts_with(prefix))
        || matches!(
            class,
            "mention" | "hashtag" | "ellipsis" | "invisible" | "quote-inline"
        )
}

fn is_language(value: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    !value.is_empty() && value.len() <= 35 && value.bytes().all(is_part)
}

fn is_number(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The deepest nesting: elements within are shown without their tags.
pub(super) const MAX_OPEN: usize = 32;

/// The judge of HTML of posts and profiles.
pub(super) fn content() -> &'static Builder<'static> {
    static BUILDER: LazyLock<Builder<'static>> = LazyLock::new(|| {
        let of = |names: &[&'static str]| HashSet::from_iter(names.iter().copied());
        let mut builder = Builder::empty();
        builder
            .tags(HashSet::from(ELEMENTS))
            .clean_content_tags(of(&["script", "style"]))
            .generic_attributes(of(&["lang"]))
            .tag_attributes(HashMap::from([
                ("a", of(&["href", "class", "translate", "target"])),
                ("span", of(&["class", "translate"])),
                ("p", of(&["class"])),
                ("ol", of(&["start", "reversed"])),
                ("li", of(&["value"])),
            ]))
            .set_tag_attribute_value("a", "target", TARGET)
            .link_rel(Some(REL))
            .url_schemes(HashSet::from(SCHEMES))
            .url_relative(UrlRelative::Deny)
            .attribute_filter(|element, name, value| match (element, name) {
                ("a", "target" | "rel") => Some(Cow::Borrowed(value)),
                _ => attribute(element, name, value),
            });
        builder
    });
    &BUILDER
}

/// Writes a text as HTML does.
pub(super) fn write_text(out: &mut String, text: &str) {
    write_escaped(out, text, false);
}

/// Writes an attribute with its value.
pub(super) fn write_attribute(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    write_escaped(out, value, true);
    out.push('"');
}

fn write_escaped(out: &mut String, text: &str, is_attribute: bool) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let (escaped, length) = match byte {
            b'&' => ("&amp;", 1),
            b'<' => ("&lt;", 1),
            b'>' => ("&gt;", 1),
            b'"' if is_attribute => ("&quot;", 1),
            // U+00A0.
            0xC2 if text.as_bytes().get(at + 1) == Some(&0xA0) => ("&nbsp;", 2),
            _ => continue,
        };
        out.push_str(&text[from..at]);
        out.push_str(escaped);
        from = at + length;
    }
    out.push_str(&text[from..]);
}
