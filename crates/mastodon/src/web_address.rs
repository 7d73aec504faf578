//! The filter for addresses that apps open. Only `http`, `https` and relative addresses pass. `docs/api.md` lists the
//! members.

use std::borrow::Cow;

use serde_json::value::RawValue;
use url::Url;

use crate::{raw_object::decoded, template::Template};

/// Returns true if apps open the value of a member with this name as an address.
pub(crate) fn is_address_member(name: &str) -> bool {
    let is_named = matches!(
        name,
        "url" | "href" | "src" | "link" | "image" | "website" | "icon" | "favicon" | "thumbnail"
    );
    let is_picture = matches!(
        name,
        "avatar" | "avatar_static" | "header" | "header_static" | "background_image"
    );
    let is_name = matches!(name, "uri" | "ap_id" | "also_known_as");
    is_named || is_picture || is_name || name.ends_with("_url")
}

/// Returns the address, or `None` if its scheme is neither `http` nor `https`.
pub(crate) fn web_address(address: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!has_other_scheme(&address)).then_some(address)
}

/// Returns true if any string in this JSON is an address with another scheme than `http` and
/// `https`. The JSON must contain no escapes.
pub(crate) fn may_hold_other_schemes(json: &str) -> bool {
    let texts = json.split('"').skip(1).step_by(2);
    texts.into_iter().any(has_other_scheme)
}

/// Writes an address unchanged, or an empty string if its scheme is rejected. `uri` and its like are names rather than
/// links: only the schemes in [`HARMFUL`] are rejected there.
pub(crate) fn write_address(out: &mut Template, name: &str, value: &RawValue) {
    let json = value.get();
    let is_refused = decoded(json).is_some_and(|address| {
        let address = String::from_utf8_lossy(&address);
        match name {
            "uri" | "ap_id" | "also_known_as" => harmless_uri(&address).is_none(),
            _ => has_other_scheme(&address),
        }
    });
    out.json(if is_refused { "\"\"" } else { json });
}

/// Returns the URI, or `None` if its scheme is in [`HARMFUL`].
pub(crate) fn harmless_uri(uri: &str) -> Option<&str> {
    let scheme = scheme(uri);
    (!scheme.is_some_and(|scheme| HARMFUL.contains(&&*scheme))).then_some(uri)
}

fn has_other_scheme(address: &str) -> bool {
    // Almost all addresses begin so, and need no parser.
    let is_https = address.starts_with("https://");
    !is_https && scheme(address).is_some_and(|scheme| scheme != "http" && scheme != "https")
}

/// The scheme of an address in lower case, as browsers read it; `None` for an address without one.
fn scheme(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    Some(url.scheme().to_owned())
}

/// Schemes that run code or name local files.
const HARMFUL: [&str; 5] = ["javascript", "data", "vbscript", "file", "blob"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_across_servers_may_have_any_harmless_scheme() {
        for harmless in [
            "tag:a.example,2017:b",
            "at://did:plc:x/y",
            "https://a.example/b",
            "b",
        ] {
            assert_eq!(harmless_uri(harmless), Some(harmless));
        }
        for harmful in ["javascript:x", " Data:text/html,x", "file:///etc/passwd"] {
            assert_eq!(harmless_uri(harmful), None, "{harmful}");
        }
    }

    #[test]
    fn addresses_are_read_as_browsers_do() {
        for other in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            " \u{1}javascript:alert(1)",
            "java\tscr\nipt:alert(1)",
            "data:text/html,x",
            "vbscript:x",
            "search-ms:query=x",
            "a+b-c.1:x",
            "file:///etc/passwd",
        ] {
            assert!(has_other_scheme(other), "{other:?}");
        }
        for web in [
            "https://a.example/@b",
            "HTTP://a.example",
            "ht\ttps://a.example",
            "/avatars/original/missing.png",
            "//a.example/x",
            "a/b:c",
            "?a:b",
            "",
            "1:2",
            "a b:c",
            "missing.png",
        ] {
            assert!(!has_other_scheme(web), "{web:?}");
        }
    }
}
