//! The rules for following redirects.

use reqwest::header::HeaderValue;
use url::Url;

/// The permitted targets of a request's redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The same host and port. The token is sent along, so another port counts as another server,
    /// except if `http` becomes `https`.
    SameServer,
    /// Any server, for a request without a token.
    AnyServer,
}

/// The target of a redirect, if it may be followed: it must be within `reach`, and must not lead
/// from `https` to `http`.
pub(crate) fn target(
    from: &Url,
    location: &HeaderValue,
    reach: Reach,
) -> Result<Url, RedirectError> {
    let location =
        std::str::from_utf8(location.as_bytes()).map_err(|_| RedirectError::Unreadable)?;
    let to = from.join(location).map_err(|_| RedirectError::Unreadable)?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(RedirectError::Scheme(to.scheme().to_owned()));
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err(RedirectError::UserInfo);
    }
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(RedirectError::Downgrade);
    }
    let is_other = to.host() != from.host() || to.port() != from.port();
    if is_other && reach == Reach::SameServer {
        return Err(RedirectError::OtherServer(
            to.origin().ascii_serialization(),
        ));
    }
    Ok(to)
}

/// A redirect that is not followed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedirectError {
    /// The target is not an address.
    #[error("it redirects to an address that cannot be read")]
    Unreadable,
    /// The target has another scheme than `http` and `https`.
    #[error("it redirects to a {0}: address")]
    Scheme(String),
    /// The target has a user name or a password.
    #[error("it redirects to an address with a user name")]
    UserInfo,
    /// The redirect leads from `https` to `http`.
    #[error("it redirects from https to http, where everybody on the way reads along")]
    Downgrade,
    /// The target is another host or port. The text is its origin.
    #[error("it redirects to another server, {0}")]
    OtherServer(String),
    /// Too many redirects came before it.
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooMany,
}

/// The largest number of redirects for one request.
pub(crate) const MAX_REDIRECTS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(from: &str, location: &str) -> Result<String, RedirectError> {
        within(Reach::SameServer, from, location)
    }

    fn within(reach: Reach, from: &str, location: &str) -> Result<String, RedirectError> {
        let from = Url::parse(from).expect("a URL");
        let location = HeaderValue::from_bytes(location.as_bytes()).expect("a value");
        target(&from, &location, reach).map(String::from)
    }

    #[test]
    fn without_a_token_other_servers_are_followed() {
        let any = |location| within(Reach::AnyServer, "https://a/x", location);
        assert_eq!(any("https://b:8443/y").as_deref(), Ok("https://b:8443/y"));
        assert_eq!(any("http://b/y"), Err(RedirectError::Downgrade));
        assert_eq!(any("https://me@b/y"), Err(RedirectError::UserInfo));
    }

    #[test]
    fn the_same_server_is_followed() {
        for (from, location, to) in [
            ("https://a/x?y", "/z", "https://a/z"),
            ("https://a/x/y", "z?q=1", "https://a/x/z?q=1"),
            ("http://a/x", "https://A/x", "https://a/x"),
            ("http://a:1/x", "http://a:1/y", "http://a:1/y"),
            ("https://a/x", "https://a:443/y", "https://a/y"),
        ] {
            assert_eq!(follow(from, location).as_deref(), Ok(to));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        use RedirectError as Is;
        let other = |origin: &str| Is::OtherServer(origin.to_owned());
        for (location, refused) in [
            ("http://a/", Is::Downgrade),
            ("//b/", other("https://b")),
            ("https://a:8443/", other("https://a:8443")),
            ("https://a.b/?t", other("https://a.b")),
            ("https://169.254.169.254/", other("https://169.254.169.254")),
            ("https://me@a/", Is::UserInfo),
            ("file:///etc/passwd", Is::Scheme("file".into())),
            ("https://", Is::Unreadable),
        ] {
            assert_eq!(follow("https://a/x", location), Err(refused), "{location}");
        }
    }
}
