//! Where a server's streams are.

use url::Url;

use crate::Address;

/// The server that streams: the upstream itself, or the one that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEndpoint(Url);

impl StreamEndpoint {
    /// The upstream itself.
    pub(super) fn own(address: &Address) -> Self {
        Self(address.url().clone())
    }

    /// The server that the upstream names, if the credential may be sent there.
    ///
    /// An upstream that is reached over TLS is believed about any host, as it
    /// could hand the token on itself, but the way there must be encrypted
    /// too. A man in the middle of plain `http` could name a host of his own, so
    /// there only the same host is believed.
    pub(super) fn named(address: &Address, named: &str) -> Option<Self> {
        let named = Url::parse(named).ok()?;
        let scheme = match named.scheme() {
            "wss" | "https" => "https",
            "ws" | "http" => "http",
            _ => return None,
        };
        if !named.username().is_empty() || named.password().is_some() {
            return None;
        }
        let host = named.host_str()?;
        if address.is_encrypted() {
            (scheme == "https").then_some(())?;
        } else {
            (host == address.host()).then_some(())?;
        }
        let port = named
            .port()
            .map_or_else(String::new, |port| format!(":{port}"));
        Url::parse(&format!("{scheme}://{host}{port}/"))
            .ok()
            .map(Self)
    }

    /// The address of a path there, with these parameters.
    pub(super) fn url(&self, path: &str, parameters: &[(&str, &str)]) -> Url {
        let mut url = self.0.clone();
        url.set_path(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(address: &str, named: &str) -> Option<String> {
        let address = Address::parse(address).expect("an address");
        StreamEndpoint::named(&address, named).map(|endpoint| endpoint.0.to_string())
    }

    #[test]
    fn a_server_behind_tls_may_name_any_host_behind_tls() {
        for (name, expected) in [
            ("wss://a.example", "https://a.example/"),
            ("wss://streaming.a.example", "https://streaming.a.example/"),
            (
                "https://other.example:4000/x?y#z",
                "https://other.example:4000/",
            ),
            ("wss://[2606::1]:1", "https://[2606::1]:1/"),
        ] {
            assert_eq!(
                named("a.example", name).as_deref(),
                Some(expected),
                "{name}"
            );
        }
        for name in [
            "ws://a.example",
            "http://a.example",
            "wss://me:pw@a.example",
            "wss://me@a.example",
            "file:///etc",
            "a.example",
            "",
        ] {
            assert_eq!(named("a.example", name), None, "{name}");
        }
    }

    #[test]
    fn a_server_without_tls_may_name_only_itself() {
        let own = "http://127.0.0.1:3000";
        assert_eq!(
            named(own, "ws://127.0.0.1:4000").as_deref(),
            Some("http://127.0.0.1:4000/")
        );
        assert_eq!(
            named(own, "wss://127.0.0.1").as_deref(),
            Some("https://127.0.0.1/")
        );
        assert_eq!(named(own, "wss://thief.example"), None);
    }

    #[test]
    fn parameters_are_encoded() {
        let address = Address::parse("a.example").expect("an address");
        let endpoint = StreamEndpoint::own(&address);
        assert_eq!(
            endpoint
                .url("/api/v1/streaming/hashtag", &[("tag", "a&b")])
                .as_str(),
            "https://a.example/api/v1/streaming/hashtag?tag=a%26b"
        );
        assert_eq!(endpoint.url("/x", &[]).as_str(), "https://a.example/x");
    }
}
