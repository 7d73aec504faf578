//! The address of an upstream server.

use std::{fmt, str::FromStr};

use driftline_core::{api::Api, upstream_id::UpstreamId};
use url::{Host, Url};

use crate::client::is_post_id;

/// An upstream's address: scheme, host and port, nothing else.
///
/// Equal addresses are written equally: lower case, without a default port or
/// a dot at the host's end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address(Url);

impl Address {
    /// Takes an address as people type it: `example.social` means
    /// `https://example.social`.
    ///
    /// # Errors
    /// [`AddressError`] if it holds anything but `http` or `https`, a host and
    /// a port. The message never repeats what was typed before an `@`.
    pub fn parse(typed: &str) -> Result<Self, AddressError> {
        let typed = typed.trim();
        if typed.is_empty() {
            return Err(AddressError::Empty);
        }
        let with_scheme = if typed.contains("://") {
            typed.to_owned()
        } else {
            format!("https://{typed}")
        };
        let mut url = Url::parse(&with_scheme).map_err(AddressError::NotAnAddress)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(AddressError::Scheme(url.scheme().to_owned()));
        }
        if with_scheme.contains('@')
            && (!url.username().is_empty() || url.password().is_some() || url.path() == "/")
        {
            return Err(AddressError::UserInfo);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(AddressError::Query);
        }
        if url.path() != "/" {
            return Err(AddressError::Path);
        }
        if let Some(Host::Domain(name)) = url.host()
            && let Some(bare) = name.strip_suffix('.').map(str::to_owned)
        {
            url.set_host(Some(&bare))
                .map_err(AddressError::NotAnAddress)?;
        }
        Ok(Self(url))
    }

    /// The server of an address for people or of a name across servers, and the ID there of its post if the path
    /// is in a form of Mastodon's: `/@user/ID` or `/users/user/statuses/ID`.
    pub fn of_post(address: &str) -> Option<(Self, Option<UpstreamId>)> {
        let url = Url::parse(address).ok()?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        if !is_plain || !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let server = Self::parse(&url.origin().ascii_serialization()).ok()?;
        let segments: Vec<&str> = url.path_segments()?.collect();
        let id = match segments[..] {
            [user, id] if user.starts_with('@') => Some(id),
            ["users", _, "statuses", id] => Some(id),
            _ => None,
        };
        let id = id.filter(|id| is_post_id(Api::Mastodon, id));
        Some((server, id.map(UpstreamId::new)))
    }

    /// The host, without the port; an IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port, where it is not the scheme's own.
    pub fn port(&self) -> Option<u16> {
        self.0.port()
    }

    /// Whether what is sent there is encrypted (`https`).
    pub fn is_encrypted(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address as a URL.
    pub fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(typed: &str) -> Result<Self, AddressError> {
        Self::parse(typed)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// An upstream address that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Nothing was typed.
    #[error("the address is empty; write the server's name, for example example.social")]
    Empty,
    /// It is not a URL with a host.
    #[error(
        "this is not a server's address ({0}); write its name, for example example.social or http://127.0.0.1:3000"
    )]
    NotAnAddress(url::ParseError),
    /// A scheme other than `http` and `https`.
    #[error("{0}: is not a scheme that upstreams speak; write https:// or http://")]
    Scheme(String),
    /// A user name or a password.
    #[error(
        "the address holds a user name or password (something before an `@`); write the server's name alone and give a token separately"
    )]
    UserInfo,
    /// A query or a fragment.
    #[error("the address holds a `?` or `#` part; write the server's name alone")]
    Query,
    /// A path.
    #[error(
        "the address names a page of the server; write the server's name alone, for example example.social"
    )]
    Path,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_normalised() {
        for (typed, normal) in [
            ("example.social", "https://example.social"),
            ("  Example.SOCIAL  ", "https://example.social"),
            ("https://example.social/", "https://example.social"),
            ("https://example.social:443", "https://example.social"),
            ("https://example.social.", "https://example.social"),
            ("http://example.social:80/", "http://example.social"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080/", "http://[::1]:8080"),
            ("example.social:8443", "https://example.social:8443"),
            ("bücher.example", "https://xn--bcher-kva.example"),
            ("HTTPS://example.social", "https://example.social"),
        ] {
            let address = Address::parse(typed).expect(typed);
            assert_eq!(address.to_string(), normal, "{typed}");
            assert_eq!(Address::parse(normal), Ok(address), "{typed}");
        }
    }

    #[test]
    fn the_server_and_the_id_of_a_post_are_in_its_address() {
        for (address, server, id) in [
            ("https://a.example/@u/12", "https://a.example", Some("12")),
            ("http://127.0.0.1:80/@u/1", "http://127.0.0.1", Some("1")),
            (
                "https://a.example:8443/users/u/statuses/1",
                "https://a.example:8443",
                Some("1"),
            ),
            ("https://a.example/@u/..%2f1", "https://a.example", None),
            ("https://a.example/objects/1", "https://a.example", None),
            ("https://a.example/@u/1/", "https://a.example", None),
        ] {
            let (found, found_id) = Address::of_post(address).expect(address);
            let found_id = found_id.as_ref().map(UpstreamId::as_str);
            assert_eq!((&*found.to_string(), found_id), (server, id), "{address}");
        }
        for none in [
            "",
            "a.example/@u/1",
            "file:///@u/1",
            "https://b@a.example/@u/1",
        ] {
            assert_eq!(Address::of_post(none), None, "{none}");
        }
    }

    #[test]
    fn the_parts_can_be_read() {
        let address: Address = "http://[::1]:8080".parse().expect("an address");
        assert_eq!(
            (address.host(), address.port(), address.is_encrypted()),
            ("[::1]", Some(8080), false)
        );
        let address: Address = "example.social".parse().expect("an address");
        assert_eq!(
            (address.host(), address.port(), address.is_encrypted()),
            ("example.social", None, true)
        );
    }

    #[test]
    fn everything_else_is_refused() {
        for (typed, error) in [
            ("", AddressError::Empty),
            (" \t", AddressError::Empty),
            ("ftp://example.social", AddressError::Scheme("ftp".into())),
            ("file:///etc/passwd", AddressError::Scheme("file".into())),
            ("user:secret@example.social", AddressError::UserInfo),
            ("@user@example.social", AddressError::UserInfo),
            ("https://@example.social", AddressError::UserInfo),
            ("https://user@example.social/", AddressError::UserInfo),
            ("https://example.social/?a=b", AddressError::Query),
            ("https://example.social/#a", AddressError::Query),
            ("https://example.social/@user", AddressError::Path),
            ("https://example.social/api/v1", AddressError::Path),
        ] {
            assert_eq!(Address::parse(typed), Err(error), "{typed}");
        }
        for typed in ["https://", "exa mple", "example.social:99999", "mailto:a"] {
            assert!(
                matches!(Address::parse(typed), Err(AddressError::NotAnAddress(_))),
                "{typed}"
            );
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = Address::parse("https://user:hunter2@example.social").expect_err("refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
