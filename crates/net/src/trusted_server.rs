//! A server that may be in a private network.

use url::{Host, Url};

/// A host with its port, as named by an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrustedServer {
    host: Option<Host>,
    /// The port, unless it is the default of the scheme.
    port: Option<u16>,
}

impl TrustedServer {
    /// The server of `url`.
    pub(crate) fn from_url(url: &Url) -> Self {
        Self {
            host: url.host().map(|host| host.to_owned()),
            port: url.port(),
        }
    }

    /// True if `url` belongs to this server. As with redirects, `https` may replace `http` if both
    /// use their default ports.
    pub(crate) fn has(&self, url: &Url) -> bool {
        self.host.is_some() && *self == Self::from_url(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_host_on_one_port() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let server = TrustedServer::from_url(&url("http://10.0.0.7"));
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
        assert!(!TrustedServer::from_url(&url("file:///x")).has(&url("file:///x")));
    }
}
