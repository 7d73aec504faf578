//! The URIs of posts and accounts (ActivityPub's `id`), and the evidence for them.

use sha2::{Digest as _, Sha256};

/// A URI in the form used for look-ups: its last [`UriKey::TAIL_CHARS`] characters, or all of it,
/// then `#`, and the number in the first 60 bits of its SHA-256. The size is therefore bounded for
/// any upstream. Most URIs end with an ID that rises with time, so new ones are close to each other
/// in an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UriKey(String);

impl UriKey {
    /// The largest part of a URI in its key, in Unicode scalar values.
    pub const TAIL_CHARS: usize = 18;

    /// The key of a URI; `None` for an empty one.
    pub fn new(uri: &str) -> Option<Self> {
        if uri.is_empty() {
            return None;
        }
        let tail = uri.char_indices().rev().take(Self::TAIL_CHARS);
        let start = tail.last().map_or(0, |(at, _)| at);
        let digest = Sha256::digest(uri.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        let hash = u64::from_be_bytes(first) >> 4;
        Some(Self(format!("{}#{hash}", &uri[start..])))
    }

    /// A key from the store.
    pub const fn stored(key: String) -> Self {
        Self(key)
    }

    /// The text of the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

named_enum! {
    /// The evidence that an object has its URI, the weakest first.
    #[derive(PartialOrd, Ord)]
    pub enum UriEvidence: "lowercase" {
        /// An instance other than the URI's own claims it.
        Claimed,
        /// The URI's own host returned it on request.
        Fetched,
        /// The URI's own host sent it with a signature.
        Delivered,
    }
}

impl UriEvidence {
    /// The evidence for a URI that the server at an origin shows. Only its own URIs are known to be
    /// correct.
    pub fn for_uri(uri: &str, origin: &str) -> Self {
        let (own, rest) = uri.split_at_checked(origin.len()).unwrap_or(("", ""));
        match own.eq_ignore_ascii_case(origin) && rest.starts_with('/') {
            true => Self::Fetched,
            false => Self::Claimed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_key_stays_as_it_is_stored() {
        let key = UriKey::new("https://a.example/users/ann/statuses/109876543210987654");
        let key = key.expect("a URI");
        assert_eq!(key.as_str(), "109876543210987654#653494476028393125");
        assert_eq!(UriKey::new(""), None);
        assert!(
            UriKey::new("ab")
                .expect("a URI")
                .as_str()
                .starts_with("ab#")
        );
    }

    #[test]
    fn only_the_own_host_of_a_uri_is_believed() {
        let of = |uri| UriEvidence::for_uri(uri, "https://a.example");
        assert_eq!(of("https://a.example/users/ann"), UriEvidence::Fetched);
        assert_eq!(of("https://A.EXAMPLE/users/ann"), UriEvidence::Fetched);
        for foreign in [
            "https://a.example",
            "https://a.example.org/users/ann",
            "https://a.example:8080/users/ann",
            "http://a.example/users/ann",
            "https://a.example@b.example/users/ann",
            "https://b.example/https://a.example/",
            "",
        ] {
            assert_eq!(of(foreign), UriEvidence::Claimed, "{foreign}");
        }
        assert!(UriEvidence::Claimed < UriEvidence::Fetched);
        assert!(UriEvidence::Fetched < UriEvidence::Delivered);
    }

    proptest! {
        #[test]
        fn a_key_begins_with_the_end_of_its_uri(uri in ".{1,40}") {
            let key = UriKey::new(&uri).expect("a URI");
            let (tail, hash) = key.as_str().rsplit_once('#').expect("both parts");
            prop_assert!(uri.ends_with(tail));
            prop_assert_eq!(tail.chars().count(), uri.chars().count().min(UriKey::TAIL_CHARS));
            prop_assert!(hash.parse::<u64>().expect("a number") < 1 << 60);
        }
    }
}
