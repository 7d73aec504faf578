//! A tweet's text as Mastodon writes content: HTML with links.

use std::{borrow::Cow, ops::Range};

/// A part of a text that leads somewhere.
#[derive(Debug, Clone)]
pub(crate) struct Link<'j> {
    /// Its range according to the API, in code points.
    pub(crate) range: Option<Range<usize>>,
    /// The text there: the address as it is written, or a name or hashtag
    /// without its sign.
    pub(crate) written: Cow<'j, str>,
    /// What becomes of it.
    pub(crate) target: Target<'j>,
}

/// What a link becomes.
#[derive(Debug, Clone)]
pub(crate) enum Target<'j> {
    /// A link to the address, showing another text.
    Page {
        /// The address that the shortened one stands for.
        href: Cow<'j, str>,
        /// What is shown of it.
        shown: Cow<'j, str>,
    },
    /// A link to an address of X, showing what is written.
    Own(String),
    /// Nothing: it leads to a picture or film that is shown next to the text.
    Nothing,
}

/// The text as HTML. `text` has its `&`, `<` and `>` escaped, as both APIs
/// send it; one that has not comes out as safe.
pub(crate) fn html(text: &str, links: &[Link<'_>]) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut end = 0;
    for (range, link) in placed(text, links) {
        push_text(&mut out, &text[end..range.start]);
        let written = &text[range.clone()];
        match &link.target {
            Target::Page { href, shown } => push_link(&mut out, href, shown, written),
            Target::Own(href) => push_link(&mut out, href, written, written),
            Target::Nothing => {}
        }
        end = range.end;
    }
    push_text(&mut out, &text[end..]);
    let paragraphs = out.trim().split("\n\n").map(str::trim);
    let mut html = String::with_capacity(out.len() + 16);
    for paragraph in paragraphs.filter(|paragraph| !paragraph.is_empty()) {
        html.push_str("<p>");
        html.push_str(&paragraph.replace('\n', "<br />"));
        html.push_str("</p>");
    }
    html
}

/// The links and their ranges in the text, in bytes: in order, without
/// overlaps, and only those that are there. The ranges of the APIs
/// are off in some texts with escapes, so an address is searched for then: it
/// occurs only once.
fn placed<'l, 'j>(text: &str, links: &'l [Link<'j>]) -> Vec<(Range<usize>, &'l Link<'j>)> {
    if links.is_empty() || text.len() > MAX_LINKED_BYTES {
        return Vec::new();
    }
    let mut offsets: Vec<_> = text.char_indices().map(|(offset, _)| offset).collect();
    offsets.push(text.len());
    let range_of = |link: &Link<'_>| {
        if link.written.is_empty() {
            return None;
        }
        let given = link.range.as_ref().and_then(|range| {
            let range = *offsets.get(range.start)?..*offsets.get(range.end)?;
            let there = text.get(range.clone())?;
            is_written(there, link).then_some(range)
        });
        given.or_else(|| {
            let is_address = !matches!(link.target, Target::Own(_));
            let start = text.find(&*link.written).filter(|_| is_address)?;
            Some(start..start + link.written.len())
        })
    };
    let mut placed: Vec<_> = links
        .iter()
        .take(MAX_LINKS)
        .filter_map(|link| Some((range_of(link)?, link)))
        .collect();
    placed.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    placed.retain(|(range, _)| {
        let is_free = range.start >= end && !range.is_empty();
        if is_free {
            end = range.end;
        }
        is_free
    });
    placed
}

/// Whether a link matches the text there: an address as it is, a name after one
/// sign.
fn is_written(there: &str, link: &Link<'_>) -> bool {
    match link.target {
        Target::Own(_) => {
            let mut chars = there.chars();
            chars.next().is_some() && chars.as_str().eq_ignore_ascii_case(&link.written)
        }
        Target::Page { .. } | Target::Nothing => *there == *link.written,
    }
}

fn push_link(out: &mut String, href: &str, shown: &str, written: &str) {
    if !is_web_address(href) {
        return push_text(out, written);
    }
    out.push_str("<a href=\"");
    push_escaped(out, href);
    out.push_str("\" rel=\"nofollow noopener\" target=\"_blank\">");
    push_text(out, &shown.replace(char::is_control, " "));
    out.push_str("</a>");
}

/// Whether a link may lead there: nothing but the web, and nothing that ends
/// an attribute.
pub(crate) fn is_web_address(address: &str) -> bool {
    (address.starts_with("https://") || address.starts_with("http://"))
        && !address.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn push_text(out: &mut String, text: &str) {
    if text.contains('&') {
        let plain = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&");
        push_escaped(out, &plain);
    } else {
        push_escaped(out, text);
    }
}

fn push_escaped(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => {
                // It means nothing in HTML.
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
}

/// The most bytes of a text in which links are looked for; X's longest text
/// has 25,000 characters.
const MAX_LINKED_BYTES: usize = 128 * 1024;
/// The most links of a text; more are some attack.
const MAX_LINKS: usize = 500;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page<'j>(range: Range<usize>, written: &'j str, href: &'j str, shown: &'j str) -> Link<'j> {
        Link {
            range: Some(range),
            written: written.into(),
            target: Target::Page {
                href: href.into(),
                shown: shown.into(),
            },
        }
    }

    #[test]
    fn text_is_escaped_once_and_broken_into_paragraphs() {
        for (text, expected) in [
            ("", ""),
            ("a", "<p>a</p>"),
            ("a &amp; b &lt;i&gt;", "<p>a &amp; b &lt;i&gt;</p>"),
            ("&amp;lt;", "<p>&amp;lt;</p>"),
            (
                "<script>\"'</script>",
                "<p>&lt;script&gt;&quot;&#39;&lt;/script&gt;</p>",
            ),
            ("a\nb\n\nc\n\n\nd", "<p>a<br />b</p><p>c</p><p>d</p>"),
            ("a\u{0}b", "<p>a\u{fffd}b</p>"),
        ] {
            assert_eq!(html(text, &[]), expected, "{text:?}");
        }
    }

    #[test]
    fn links_are_at_their_code_points() {
        let text = "😀 @Ann sees #Rust at https://t.co/a https://t.co/m";
        let links = [
            page(
                24..38,
                "https://t.co/a",
                "https://a.example/?x=1&y=\"",
                "a.example",
            ),
            Link {
                range: Some(2..6),
                written: "ann".into(),
                target: Target::Own("https://x.com/ann".to_owned()),
            },
            Link {
                range: Some(12..17),
                written: "Rust".into(),
                target: Target::Own("https://x.com/hashtag/Rust".to_owned()),
            },
            Link {
                range: None,
                written: "https://t.co/m".into(),
                target: Target::Nothing,
            },
        ];
        let rest = "rel=\"nofollow noopener\" target=\"_blank\">";
        assert_eq!(
            html(text, &links),
            format!(
                "<p>😀 <a href=\"https://x.com/ann\" {rest}@Ann</a> sees <a href=\"https://x.com/hashtag/Rust\" {rest}#Rust</a> at <a href=\"https://a.example/?x=1&amp;y=&quot;\" {rest}a.example</a></p>"
            )
        );
    }

    #[test]
    fn wrong_ranges_are_ignored() {
        let address = "https://t.co/a";
        for (start, end) in [(0, 5), (90, 99), (5, 4), (3, usize::MAX)] {
            let range = start..end;
            let link = page(range.clone(), address, "https://a.example", "a");
            let text = "&amp; https://t.co/a &amp;";
            assert!(html(text, &[link]).contains("<p>&amp; <a href=\"https://a.example\""));
            let name = Link {
                range: Some(range),
                written: "bob".into(),
                target: Target::Own("https://x.com/bob".to_owned()),
            };
            assert_eq!(html("kebobs, bobs", &[name]), "<p>kebobs, bobs</p>");
        }
        let twice = [
            page(0..14, address, "https://a.example", "a"),
            page(0..14, address, "https://b.example", "b"),
        ];
        assert!(!html(address, &twice).contains("b.example"));
    }

    #[test]
    fn only_the_web_is_linked() {
        for href in [
            "javascript:alert(1)",
            "data:x",
            "",
            "https://a b",
            "//a.example",
        ] {
            let link = page(0..14, "https://t.co/a", href, "shown");
            assert_eq!(html("https://t.co/a", &[link]), "<p>https://t.co/a</p>");
        }
    }

    proptest! {
        #[test]
        fn no_text_and_no_range_panics(
            text in "[a-z@#é😀&;<\n ]{0,40}",
            ranges in prop::collection::vec((0_usize..50, 0_usize..50, "[a-zé@]{0,4}"), 0..6),
        ) {
            let links: Vec<_> = ranges
                .iter()
                .map(|(start, end, written)| page(*start..*end, written, "https://a.example", "<"))
                .collect();
            let html = html(&text, &links);
            let without_own = html
                .replace("<p>", "").replace("</p>", "").replace("<br />", "").replace("</a>", "")
                .replace("<a href=\"https://a.example\" rel=\"nofollow noopener\" target=\"_blank\">", "");
            prop_assert!(!without_own.contains(['<', '>']), "{}", html);
        }
    }
}
