//! The names of accounts across servers, `name@host`, and the IDs that are derived from them.

use sha2::{Digest as _, Sha256};

/// The `acct` of an account with its host, for comparisons. Two spellings that differ only in the
/// case of ASCII letters are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AcctKey(String);

impl AcctKey {
    /// The key of an `acct` as written by the server at `origin`, which omits the host for its own
    /// accounts. `None` for an empty name.
    pub fn new(acct: &str, origin: &str) -> Option<Self> {
        let acct = acct.strip_prefix('@').unwrap_or(acct);
        if acct.is_empty() {
            return None;
        }
        let mut key = acct.to_ascii_lowercase();
        if !key.contains('@') {
            let host = origin.split_once("://").map_or(origin, |(_, host)| host);
            key.push('@');
            key.push_str(&host.to_ascii_lowercase());
        }
        Some(Self(key))
    }

    /// `name@host`, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The account's ID. It is the same for all servers that show the account's posts, and for all
    /// writers, without any coordination. It depends on the name alone, so it does not show when or
    /// where the account was first seen. The local clock makes no IDs of this size before 2056.
    pub fn account_id(&self) -> u64 {
        let digest = Sha256::digest(self.0.as_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        MIN_ACCOUNT_ID + (u64::from_be_bytes(first) >> 4)
    }
}

/// The name and host of the account with this profile address. It knows the paths of common
/// servers: `/@name` and `/@name@host` (Mastodon, Misskey), `/users/name` (Mastodon, Pleroma) and
/// `/u/name` (Lemmy). `None` for other addresses. Only the account itself can confirm the address.
pub fn acct_at(address: &str) -> Option<String> {
    let (scheme, rest) = address.trim().split_once("://")?;
    if !["https", "http"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return None;
    }
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (host, path) = rest[..end].trim_end_matches('/').split_once('/')?;
    let mut prefixes = ["@", "users/", "u/"].into_iter();
    let name = prefixes.find_map(|prefix| path.strip_prefix(prefix))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._~-".contains(c);
    let is_host = |c: char| is_plain(c) || c == ':';
    let (user, of) = name.split_once('@').unwrap_or((name, host));
    let is_name = !user.is_empty() && user.chars().all(is_plain);
    let has_host = !of.is_empty() && of.chars().all(is_host);
    (is_name && has_host).then(|| format!("{user}@{of}"))
}

/// The smallest ID of an account that was seen in posts.
pub const MIN_ACCOUNT_ID: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(acct: &str, origin: &str) -> String {
        let key = AcctKey::new(acct, origin).expect("a name");
        key.as_str().to_owned()
    }

    #[test]
    fn an_account_has_one_key_through_every_server() {
        let own = key("Ann", "https://a.example");
        assert_eq!(own, "ann@a.example");
        assert_eq!(key("ann@A.example", "https://b.example:8080"), own);
        assert_eq!(key("@ann@a.example", "http://c.example"), own);
        assert_ne!(key("ann", "https://b.example"), own);
        assert_eq!(key("ann", "http://b.example:81"), "ann@b.example:81");
        assert_eq!(AcctKey::new("", "https://a.example"), None);
    }

    #[test]
    fn ids_stay_as_they_are_stored() {
        let key = AcctKey::new("ann", "https://a.example").expect("a name");
        assert_eq!(key.account_id(), 4_871_763_290_244_736_954);
    }

    #[test]
    fn an_address_of_a_profile_names_its_account() {
        for (address, acct) in [
            ("https://a.example/@ann", "ann@a.example"),
            (" https://a.example/@ann/ ", "ann@a.example"),
            ("https://a.example/@Ann?x=1#y", "Ann@a.example"),
            ("https://b.example/@ann@a.example", "ann@a.example"),
            ("http://a.example:81/users/a.n-n~_", "a.n-n~_@a.example:81"),
            ("https://a.example/u/ann", "ann@a.example"),
        ] {
            assert_eq!(acct_at(address).as_deref(), Some(acct), "{address}");
        }
        for address in [
            "",
            "ann",
            "ann@a.example",
            "https://a.example",
            "https://a.example/",
            "https://a.example/@",
            "https://a.example/@ann/1",
            "https://a.example/users/ann/statuses/1",
            "https://a.example/about",
            "https:///@ann",
            "https://x:y@a.example/@ann",
            "https://a.example/@ann@",
            "https://a.example/@a nn",
            "ftp://a.example/@ann",
        ] {
            assert_eq!(acct_at(address), None, "{address}");
        }
    }

    proptest! {
        #[test]
        fn no_text_as_an_address_panics(text in ".{0,60}", path in "[@/:?#a-z.]{0,20}") {
            let _ = acct_at(&text);
            let _ = acct_at(&format!("https://{path}"));
        }

        #[test]
        fn ids_have_nineteen_digits_and_fit_a_column(acct in "[a-zA-Z0-9_.]{1,30}") {
            let id = AcctKey::new(&acct, "https://a.example").expect("a name").account_id();
            prop_assert_eq!(id.to_string().len(), 19);
            prop_assert!(i64::try_from(id).is_ok());
        }
    }
}
