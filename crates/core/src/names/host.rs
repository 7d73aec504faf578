//! The hosts of instances, and the IDs that are derived from them.

use sha2::{Digest as _, Sha256};
use url::{Host, Url};

/// The host of an instance, with its port if that is not the default, in the one form in which
/// equal hosts are equal texts: lower case, Punycode, without a dot at the end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey(String);

impl HostKey {
    /// The key of a host, or of an origin. Without a scheme, the default port is that of HTTPS.
    /// `None` for a text that no URL can have as its host.
    pub fn new(text: &str) -> Option<Self> {
        let url = match text.contains("://") {
            true => Url::parse(text),
            false => Url::parse(&format!("https://{text}")),
        };
        let url = url.ok()?;
        let is_origin = matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none();
        let host = match url.host().filter(|_| is_origin)? {
            Host::Domain(name) => name.trim_end_matches('.').to_owned(),
            address => address.to_string(),
        };
        if host.is_empty() {
            return None;
        }
        let key = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        Some(Self(key))
    }

    /// The host.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ID of the instance: 2^62 and the first 60 bits of the SHA-256 of its host. It is the
    /// same in every store, and tells nothing about the order in which a store got to know hosts.
    pub fn instance_id(&self) -> u64 {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        MIN_INSTANCE_ID + (u64::from_be_bytes(first) >> 4)
    }
}

/// The smallest ID of an instance.
pub const MIN_INSTANCE_ID: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> String {
        let key = HostKey::new(text).expect("a host");
        key.as_str().to_owned()
    }

    #[test]
    fn a_host_has_one_form() {
        for (text, host) in [
            ("a.example", "a.example"),
            ("A.Example.", "a.example"),
            ("a.example:443", "a.example"),
            ("https://a.example:443", "a.example"),
            ("http://a.example:80", "a.example"),
            ("https://a.example/", "a.example"),
            ("a.example:80", "a.example:80"),
            ("http://a.example:443", "a.example:443"),
            ("http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("[::1]:3000", "[::1]:3000"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("XN--BCHER-KVA.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(key(text), host, "{text}");
        }
        for text in [
            "",
            " ",
            "a b",
            "ann@a.example",
            "a.example/x",
            "a.example?x",
            "a:x",
        ] {
            assert_eq!(HostKey::new(text), None, "{text}");
        }
    }

    /// `printf a.example | sha256sum` begins with these digits.
    #[test]
    fn ids_stay_as_they_are_shown() {
        let id = HostKey::new("https://a.example")
            .expect("a host")
            .instance_id();
        assert_eq!(id, MIN_INSTANCE_ID + 0xb8e_7453_371a_024d);
        assert_eq!(id, 5_444_416_900_293_067_341);
    }

    proptest! {
        #[test]
        fn ids_are_of_the_canonical_host(host in "[a-z][a-z0-9]{0,20}(\\.[a-z]{2,10}){1,3}") {
            let id = HostKey::new(&host).expect("a host").instance_id();
            prop_assert!((1 << 62..(1 << 62) + (1 << 60)).contains(&id));
            prop_assert_eq!(id.to_string().len(), 19);
            let digest = Sha256::digest(host.as_bytes());
            let bits = digest.iter().take(8).fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            prop_assert_eq!(id, 1 << 62 | bits >> 4);
            for spelling in [
                host.to_ascii_uppercase(),
                format!("{host}."),
                format!("{host}:443"),
                format!("https://{host}"),
                format!("http://{host}:80/"),
            ] {
                prop_assert_eq!(HostKey::new(&spelling).map(|key| key.instance_id()), Some(id));
            }
        }

        #[test]
        fn a_key_is_its_own_key(text in ".{0,40}") {
            if let Some(key) = HostKey::new(&text).filter(|key| !key.as_str().ends_with(":443")) {
                prop_assert_eq!(HostKey::new(key.as_str()), Some(key));
            }
        }
    }
}
