//! HTML that is clean, or nearly: the short cut.

use std::borrow::Cow;

use super::rules::{ATTRIBUTES, MAX_OPEN, REL, TARGET, attribute, write_attribute, write_text};

/// What the balancer and ammonia make of HTML, if that can be seen at once: its elements are known,
/// well nested, where a parser leaves them, and written as programs write them. `None` for all else.
pub(super) fn canonical(html: &str) -> Option<String> {
    if html.starts_with('\u{feff}') || memchr::memchr2(0, b'\r', html.as_bytes()).is_some() {
        return None;
    }
    let mut out = String::with_capacity(html.len() + html.len() / 4);
    let mut open: Vec<&'static str> = Vec::new();
    let mut rest = html;
    while let Some(at) = memchr::memchr(b'<', rest.as_bytes()) {
        text(&mut out, &rest[..at])?;
        let (tag, after) = rest[at + 1..].split_at_checked(end_of_tag(&rest[at + 1..])?)?;
        rest = &after[1..];
        match tag.strip_prefix('/') {
            Some(name) => {
                if open.pop()? != name {
                    return None;
                }
                out.push_str("</");
                out.push_str(name);
                out.push('>');
            }
            None => start(&mut out, &mut open, tag)?,
        }
    }
    text(&mut out, rest)?;
    open.is_empty().then_some(out)
}

/// Where the `>` of a tag is. One in an attribute ends the short cut: the rest is no attribute.
fn end_of_tag(from: &str) -> Option<usize> {
    memchr::memchr(b'>', from.as_bytes())
}

fn start(out: &mut String, open: &mut Vec<&'static str>, tag: &str) -> Option<()> {
    let name_end = tag.find(' ').unwrap_or(tag.len());
    let (name, attributes) = tag.split_at(name_end);
    if matches!(tag, "br" | "br/" | "br /") {
        out.push_str("<br>");
        return Some(());
    }
    let name = *NESTING.iter().find(|known| **known == name)?;
    let is_open = |wanted: &str| open.contains(&wanted);
    let is_in_place = match name {
        "p" | "blockquote" | "ul" | "ol" => !is_open("p"),
        "li" => matches!(open.last(), Some(&("ul" | "ol"))),
        "a" => !is_open("a"),
        _ => true,
    };
    if !is_in_place || open.len() >= MAX_OPEN {
        return None;
    }
    let mut values: [Option<Cow<'_, str>>; ATTRIBUTES.len()] = Default::default();
    read_attributes(name, attributes, &mut values)?;
    if name == "a" && values[0].is_none() {
        return None;
    }
    out.push('<');
    out.push_str(name);
    for (name, value) in ATTRIBUTES.iter().zip(values) {
        if let Some(value) = value {
            write_attribute(out, name, &value);
        }
    }
    if name == "a" {
        write_attribute(out, "target", TARGET);
        write_attribute(out, "rel", REL);
    }
    out.push('>');
    open.push(name);
    Some(())
}

/// Attributes with values in double quotes, one space before each.
fn read_attributes<'h>(
    element: &str,
    mut rest: &'h str,
    values: &mut [Option<Cow<'h, str>>; ATTRIBUTES.len()],
) -> Option<()> {
    let mut seen = [false; ATTRIBUTES.len()];
    while !rest.is_empty() {
        let (name, after) = rest.strip_prefix(' ')?.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        rest = after;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
        if name.is_empty() || !name.bytes().all(is_name) {
            return None;
        }
        let value = unescaped(value)?;
        // The first of repeated attributes counts, whatever its value.
        let known = ATTRIBUTES.iter().position(|known| *known == name);
        let Some(at) = known.filter(|at| !seen[*at]) else {
            continue;
        };
        seen[at] = true;
        values[at] = match value {
            Cow::Borrowed(value) => attribute(element, name, value),
            Cow::Owned(value) => {
                attribute(element, name, &value).map(|value| Cow::Owned(value.into_owned()))
            }
        };
    }
    Some(())
}

/// An attribute's value.
fn unescaped(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains(['&', '<']) {
        return Some(Cow::Borrowed(value));
    }
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (letter, after) = reference(&rest[at..])?;
        out.push_str(letter);
        rest = after;
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Copies text, with its references to characters as HTML writes them.
fn text(out: &mut String, text: &str) -> Option<()> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'&', rest.as_bytes()) {
        write_text(out, &rest[..at]);
        let (letter, after) = reference(&rest[at..])?;
        write_text(out, letter);
        rest = after;
    }
    write_text(out, rest);
    Some(())
}

/// The letter of a reference that programs write, and what comes after it.
fn reference(text: &str) -> Option<(&'static str, &str)> {
    let end = memchr::memchr(b';', text.as_bytes().get(..8).unwrap_or(text.as_bytes()))? + 1;
    let letter = match &text[..end] {
        "&amp;" => "&",
        "&lt;" => "<",
        "&gt;" => ">",
        "&quot;" => "\"",
        "&#39;" | "&#x27;" | "&#039;" | "&apos;" => "'",
        "&nbsp;" => "\u{a0}",
        "&#34;" => "\"",
        _ => return None,
    };
    Some((letter, &text[end..]))
}

/// The elements that are taken here.
const NESTING: [&str; 15] = [
    "p",
    "a",
    "span",
    "strong",
    "b",
    "em",
    "i",
    "u",
    "s",
    "del",
    "code",
    "blockquote",
    "ul",
    "ol",
    "li",
];
