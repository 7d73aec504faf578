//! Where an app may have people sent back to.

use url::Url;

/// No address: the code is shown, for the person to copy.
pub(super) const OUT_OF_BAND: &str = "urn:ietf:wg:oauth:2.0:oob";

/// Whether an app may register it: an absolute address without a fragment, with `http`, `https` or a scheme
/// of the app's own. Schemes that a browser or an operating system runs or reads itself are refused.
pub(super) fn is_allowed(text: &str) -> bool {
    if text == OUT_OF_BAND {
        return true;
    }
    let is_plain = text.len() <= MAX_BYTES && text.chars().all(|c| !c.is_control() && c != ' ');
    let Some(url) = Url::parse(text).ok().filter(|_| is_plain) else {
        return false;
    };
    let scheme = url.scheme();
    let is_web = matches!(scheme, "http" | "https");
    url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none()
        && !is_forbidden(scheme)
        && (!is_web || url.host_str().is_some_and(is_plain_host))
}

/// Whether a host holds nothing that a content security policy or a header would read as more than a host.
fn is_plain_host(host: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    host.bytes().all(is_plain)
}

/// The address with an answer's parameters added to its query.
pub(super) fn with_params(uri: &str, params: &[(&str, &str)]) -> Option<String> {
    let mut url = Url::parse(uri).ok()?;
    url.query_pairs_mut().extend_pairs(params);
    Some(url.into())
}

/// What a content security policy calls the place that a form may lead to.
pub(super) fn form_source(uri: &str) -> Option<String> {
    let url = Url::parse(uri).ok()?;
    Some(match url.scheme() {
        "http" | "https" => url.origin().ascii_serialization(),
        scheme => format!("{scheme}:"),
    })
}

/// Whether a browser or an operating system has that scheme for itself: an address of it opens a program that is
/// no app, with what the address says.
fn is_forbidden(scheme: &str) -> bool {
    let mut schemes = FORBIDDEN_SCHEMES.split(' ');
    let mut beginnings = FORBIDDEN_BEGINNINGS.iter();
    schemes.any(|forbidden| forbidden == scheme)
        || beginnings.any(|beginning| scheme.starts_with(beginning))
}

/// Of Windows (`ms-msdt`, `ms-word`, `search-ms`), Android's packages and settings, browsers, and wrappers of other
/// schemes (`view-source`, `jar`).
const FORBIDDEN_SCHEMES: &str = "about afp android-app applescript blob brave callto cid chrome chrome-extension \
    chrome-search chrome-untrusted content data devtools edge facetime feed file filesystem \
    ftp intent itms-services jar javascript ldap ldaps livescript mailto mhtml mocha \
    moz-extension onenote-cmd opera res resource search search-ms shell smb sms tel \
    vbscript view-source ws wss wyciwyg";
const FORBIDDEN_BEGINNINGS: &[&str] = &["ms-", "microsoft-", "windows-", "x-apple", "safari-"];
const MAX_BYTES: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_nothing_runs_are_allowed() {
        for good in [
            OUT_OF_BAND,
            "https://app.example/back?x=1",
            "http://localhost:1234/",
            "app://back",
            "com.example.app:/oauth",
            "icecubesapp://",
            "tuskytestkey://tusky",
            "oauth2redirect://com.keylesspalace.tusky/",
            "mastodon-android-auth://callback",
            "mona-social://callback",
            "moshidon-android-auth://callback",
            "msocial://callback",
            "searchfox://back",
            "metatext://oauth.callback",
            "app.bsky.dev:/back",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in [
            "",
            "back",
            "/back",
            "https://",
            "https://app.example/#part",
            "https://user@app.example/",
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "java\nscript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "search-ms:query=x&crumb=location:%5C%5Cevil.example",
            "search:query",
            "ms-msdt:/id PCWDiagnostic",
            "ms-msdt:/id",
            "MS-Word:ofe|u|https://evil.example/x.docx",
            "ms-officecmd:x",
            "ms-appinstaller:?source=https://evil.example",
            "jar:https://evil.example!/x",
            "view-source:https://evil.example",
            "vbscript:x",
            "blob:https://evil.example/x",
            "about:blank",
            "intent://scan/#Intent;end",
            "intent:scan",
            "x-apple.systempreferences:com.apple",
            "itms-services://?action=download-manifest",
            "mailto:x@evil.example",
            "https://app.example/a b",
            "https://app.example;script-src/",
            "https://*/",
            "https://a,b/",
        ] {
            assert!(!is_allowed(bad), "{bad}");
        }
        assert!(!is_allowed(&format!(
            "https://app.example/{}",
            "a".repeat(2_000)
        )));
    }

    #[test]
    fn parameters_are_added_and_escaped() {
        let with = |uri| with_params(uri, &[("code", "a b"), ("state", "&x=ü")]);
        assert_eq!(
            with("app://back?x=1").unwrap(),
            "app://back?x=1&code=a+b&state=%26x%3D%C3%BC"
        );
        assert_eq!(form_source("app://back"), Some("app:".to_owned()));
        let source = form_source("https://app.example:8443/back");
        assert_eq!(source, Some("https://app.example:8443".to_owned()));
    }
}
