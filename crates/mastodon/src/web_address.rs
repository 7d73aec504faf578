//! Addresses that apps open: those of other schemes than HTTP are left out. `docs/api.md` lists their members.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{raw_object::decoded, template::Template};

/// Whether a member of that name holds an address that apps open, wherever it stands.
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

/// An address that apps may open; `None` for one of another scheme than HTTP.
pub(crate) fn web_address(address: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!has_other_scheme(&address)).then_some(address)
}

/// Whether JSON without escapes holds a text that begins as an address of another scheme than HTTP.
pub(crate) fn may_hold_other_schemes(json: &str) -> bool {
    let texts = json.split('"').skip(1).step_by(2);
    texts.into_iter().any(has_other_scheme)
}

/// Writes the member of that name as it came, or an empty text for an address of another scheme than HTTP. A name
/// across servers may have any that is harmless.
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

/// A name across servers, which need not be an address; `None` for one that runs something where it is opened.
pub(crate) fn harmless_uri(uri: &str) -> Option<&str> {
    let scheme = scheme(uri);
    (!scheme.is_some_and(|scheme| HARMFUL.contains(&&*scheme))).then_some(uri)
}

fn has_other_scheme(address: &str) -> bool {
    scheme(address).is_some_and(|scheme| scheme != "http" && scheme != "https")
}

/// The scheme of an address in small letters, as browsers read it: without blanks and control characters before it,
/// and without tabs and line breaks within it (<https://url.spec.whatwg.org/#concept-basic-url-parser>).
fn scheme(address: &str) -> Option<String> {
    let address = address.trim_start_matches(|c: char| c <= ' ');
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.\t\n\r".contains(c);
    let end = address.find(|c| !is_of_scheme(c))?;
    let is_scheme =
        address[end..].starts_with(':') && address.starts_with(|c: char| c.is_ascii_alphabetic());
    let letters = address[..end].chars().filter(|c| !c.is_ascii_control());
    is_scheme.then(|| letters.map(|c| c.to_ascii_lowercase()).collect())
}

/// Schemes whose addresses run a program, or name what lies on the reader's machine.
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
