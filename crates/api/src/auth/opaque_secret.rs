//! Secrets that programs carry: each names its kind and its account, and holds 256 random bits.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use driftline_store::{LocalAccountId, social::SecretHash};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom as _, SystemRandom},
};
use secrecy::{ExposeSecret as _, SecretString};

use crate::transport::ApiError;

/// What a secret is for. One of a kind is never accepted as another: its text begins otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretKind {
    /// A token of Mastodon's API.
    AccessToken,
    /// A code to exchange for one.
    AuthorizationCode,
    /// What a native refresh token nests.
    RefreshId,
    /// The cookie of our own pages.
    WebSession,
    /// An app's.
    App,
    /// The address of a list's feed.
    ListFeed,
}

impl SecretKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::AccessToken => "dla_",
            Self::AuthorizationCode => "dlc_",
            Self::RefreshId => "dlr_",
            Self::WebSession => "dlw_",
            Self::App => "dls_",
            Self::ListFeed => "dlf_",
        }
    }
}

/// A secret with the account that it names; its text is only shown on purpose.
#[derive(Clone, Debug)]
pub(crate) struct OpaqueSecret {
    /// `None` if it is of an app alone.
    pub(crate) account: Option<LocalAccountId>,
    text: SecretString,
}

impl OpaqueSecret {
    /// A new one.
    pub(crate) fn generate(
        kind: SecretKind,
        account: Option<LocalAccountId>,
    ) -> Result<Self, ApiError> {
        let mut bytes = [0; ACCOUNT + RANDOM];
        let (of, random) = bytes.split_at_mut(ACCOUNT);
        of.copy_from_slice(&account.map_or(0, u64::from).to_be_bytes());
        fill_random(random)?;
        let text = format!("{}{}", kind.prefix(), BASE64.encode(bytes));
        Ok(Self {
            account,
            text: text.into(),
        })
    }

    /// Reads one of that kind; `None` if it cannot be one.
    pub(crate) fn parse(kind: SecretKind, text: &str) -> Option<Self> {
        let encoded = text.strip_prefix(kind.prefix())?;
        // Before decoding: a header may be long.
        if encoded.len() != (ACCOUNT + RANDOM) * 4 / 3 + 1 {
            return None;
        }
        let bytes = BASE64.decode(encoded).ok()?;
        let (of, _) = bytes.split_first_chunk::<ACCOUNT>()?;
        let account = u64::from_be_bytes(*of);
        Some(Self {
            account: (account != 0).then(|| LocalAccountId::new(account)),
            text: text.into(),
        })
    }

    /// What the store keeps of it.
    pub(crate) fn hash(&self) -> SecretHash {
        hash(self.expose())
    }

    /// For its bearer.
    pub(crate) fn expose(&self) -> &str {
        self.text.expose_secret()
    }
}

/// The hash of a secret's text.
pub(crate) fn hash(text: &str) -> SecretHash {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    SecretHash::new(bytes)
}

/// Fills with random bytes of the system.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), ApiError> {
    SystemRandom::new().fill(bytes).map_err(|_| {
        tracing::error!("the system has no random numbers");
        ApiError::Internal
    })
}

/// 128 random bits as text.
pub(crate) fn random_text() -> Result<String, ApiError> {
    let mut bytes = [0; 16];
    fill_random(&mut bytes)?;
    Ok(BASE64.encode(bytes))
}

const ACCOUNT: usize = 8;
const RANDOM: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_names_its_account_and_is_of_its_kind_alone() {
        for account in [None, Some(LocalAccountId::new(123_456_789))] {
            let made = OpaqueSecret::generate(SecretKind::AccessToken, account).unwrap();
            let text = made.expose().to_owned();
            let read = OpaqueSecret::parse(SecretKind::AccessToken, &text).unwrap();
            assert_eq!((read.account, read.hash()), (account, made.hash()));
            assert!(OpaqueSecret::parse(SecretKind::AuthorizationCode, &text).is_none());
            assert!(!format!("{made:?}").contains(&text[4..]));
            let again = OpaqueSecret::generate(SecretKind::AccessToken, account).unwrap();
            assert_ne!(again.hash(), made.hash());
        }
    }

    #[test]
    fn other_texts_are_no_secrets() {
        let made = OpaqueSecret::generate(SecretKind::RefreshId, None).unwrap();
        let text = made.expose();
        let long = format!("{text}A");
        for bad in [
            "",
            "dlr_",
            &text[..text.len() - 1],
            &long,
            &text[4..],
            "dlr_é",
        ] {
            assert!(
                OpaqueSecret::parse(SecretKind::RefreshId, bad).is_none(),
                "{bad}"
            );
        }
    }
}
