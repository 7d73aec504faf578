use std::{fmt, str::FromStr};

use url::{Host, Url};

use crate::ReplicaError;

/// The address of a server, without user, query and fragment. It may have a path, below which the server's routes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// True if tokens are readable on the way to this server: it is on another machine, and the address is not `https`.
    pub fn is_readable_on_the_way(&self) -> bool {
        let is_here = match self.0.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.0.scheme() != "https" && !is_here
    }

    /// The origin, such as `https://a.example`: the address without its path.
    pub(crate) fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// The text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }
}

impl FromStr for ServerUrl {
    type Err = ReplicaError;

    fn from_str(text: &str) -> Result<Self, ReplicaError> {
        let is_plain = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.host().is_some()
                && url.username().is_empty()
                && url.password().is_none()
                && url.query().is_none()
                && url.fragment().is_none()
        };
        let url = Url::parse(text).ok().filter(is_plain);
        // The text may have a password or a token in it.
        url.map(Self).ok_or(ReplicaError::Url)
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_no_secrets_and_tokens_are_not_readable_on_the_way() {
        for (text, shown, is_readable) in [
            ("https://a.example/", "https://a.example", false),
            ("https://a.example/below/", "https://a.example/below", false),
            ("http://a.example:7171", "http://a.example:7171", true),
            ("http://192.168.1.5", "http://192.168.1.5", true),
            ("http://localhost.example", "http://localhost.example", true),
            ("http://127.0.0.1:7171", "http://127.0.0.1:7171", false),
            ("http://[::1]:7171", "http://[::1]:7171", false),
            ("http://localhost:7171", "http://localhost:7171", false),
        ] {
            let url: ServerUrl = text.parse().expect("an address");
            assert_eq!(url.to_string(), shown);
            assert_eq!(url.is_readable_on_the_way(), is_readable, "{text}");
        }
        for wrong in [
            "a.example",
            "ftp://a.example",
            "https://ann:secret@a.example",
            "https://a.example/?access_token=secret",
            "https://a.example/#secret",
        ] {
            let error = wrong.parse::<ServerUrl>().expect_err(wrong);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
