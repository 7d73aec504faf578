//! A server that may be in a private network.

use url::{Host, Url};

/// A host with its port, as an operator named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustedServer {
    host: Option<Host>,
    /// Where it is not the scheme's own.
    port: Option<u16>,
}

impl TrustedServer {
    /// The server of this address.
    pub(crate) fn of(url: &Url) -> Self {
        Self {
            host: url.host().map(|host| host.to_owned()),
            port: url.port(),
        }
    }

    /// Whether an address is of this server: as for redirects, `https` may take the place of
    /// `http` where both have their own ports.
    pub(crate) fn has(&self, url: &Url) -> bool {
        self.host.is_some() && *self == Self::of(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_host_on_one_port() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let server = TrustedServer::of(&url("http://10.0.0.7"));
        for same in [
            "http://10.0.0.7/x?y",
            "https://10.0.0.7/",
            "http://0xa000007/",
        ] {
            assert!(server.has(&url(same)), "{same}");
        }
        for other in [
            "http://10.0.0.7:8080/",
            "http://10.0.0.8/",
            "http://10.0.0.7.example/",
            "file:///10.0.0.7",
        ] {
            assert!(!server.has(&url(other)), "{other}");
        }
        assert!(!TrustedServer::of(&url("file:///x")).has(&url("file:///x")));
    }
}
