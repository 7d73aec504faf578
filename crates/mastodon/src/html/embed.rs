use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use ammonia::{Builder, UrlRelative};

/// See [`super::clean_embed`]. What is larger than an embed ever is becomes nothing.
pub(super) fn clean(html: &str) -> String {
    if html.len() > MAX_EMBED_BYTES {
        return String::new();
    }
    without_frames_text(&rules().clean(html).to_string())
}

/// A frame's text is shown by no browser, and no parser takes it for anything but text as it is.
fn without_frames_text(clean: &str) -> String {
    let mut out = String::with_capacity(clean.len());
    let mut rest = clean;
    while let Some(start) = rest.find("<iframe") {
        // In attributes it is escaped.
        let Some(begin) = rest[start..].find('>').map(|at| start + at + 1) else {
            break;
        };
        let Some(end) = rest[begin..].find("</iframe>").map(|at| begin + at) else {
            break;
        };
        out.push_str(&rest[..begin]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn rules() -> &'static Builder<'static> {
    static BUILDER: LazyLock<Builder<'static>> = LazyLock::new(|| {
        let of = |names: &[&'static str]| HashSet::from_iter(names.iter().copied());
        let mut builder = Builder::empty();
        builder
            .tags(of(&["audio", "iframe", "source", "video"]))
            .clean_content_tags(of(&["script", "style"]))
            .tag_attributes(HashMap::from([
                ("audio", of(&["controls"])),
                (
                    "iframe",
                    of(&[
                        "allowfullscreen",
                        "frameborder",
                        "height",
                        "scrolling",
                        "src",
                        "width",
                    ]),
                ),
                ("source", of(&["src", "type"])),
                ("video", of(&["controls", "height", "loop", "width"])),
            ]))
            .set_tag_attribute_value("iframe", "sandbox", SANDBOX)
            .link_rel(None)
            .url_schemes(of(&["http", "https"]))
            .url_relative(UrlRelative::Deny);
        builder
    });
    &BUILDER
}

/// What a page in a frame may do, as in Mastodon: it has the origin of its own address, never that of
/// the page around it.
const SANDBOX: &str =
    "allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-forms";

/// The time for it is quadratic in the worst case.
const MAX_EMBED_BYTES: usize = 4 * 1024;
