//! The keys that native tokens are signed with.
//!
//! They go on verifying for [`KEY_OVERLAP_MS`] after a new one came, which signs after [`KEY_SETTLING_MS`].

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use secrecy::SecretString;

/// How long a key goes on verifying after a new one came: longer than any family of tokens.
pub const KEY_OVERLAP_MS: i64 = 31 * 86_400_000;

/// How long a new key is only verified with, as others must know it before it signs.
pub const KEY_SETTLING_MS: i64 = 5 * 60_000;

/// The keys that native tokens are signed with.
#[derive(Clone)]
pub struct TokenKeys {
    /// The newest first. Never empty.
    keys: Vec<TokenKey>,
}

#[derive(Clone)]
pub(super) struct TokenKey {
    pub(super) id: String,
    created_at_ms: i64,
    pub(super) secret: [u8; SECRET_BYTES],
}

/// Why a text holds no keys. Never holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid token keys: expected lines of an ID, a time and 32 bytes in base64, the newest first"
)]
pub struct TokenKeysError;

impl TokenKeys {
    /// One new key.
    pub fn new(id: [u8; 8], secret: [u8; SECRET_BYTES], now_ms: i64) -> Self {
        let key = TokenKey {
            id: BASE64.encode(id),
            created_at_ms: now_ms,
            secret,
        };
        Self { keys: vec![key] }
    }

    /// When the newest was made, Unix ms.
    pub fn newest_at_ms(&self) -> i64 {
        self.keys.first().map_or(0, |key| key.created_at_ms)
    }

    /// Adds a key, which signs once all processes know it, and drops those that verify nothing any more.
    #[must_use]
    pub fn rotated(&self, id: [u8; 8], secret: [u8; SECRET_BYTES], now_ms: i64) -> Self {
        let mut rotated = Self::new(id, secret, now_ms);
        rotated.keys.extend(self.keys.iter().cloned());
        let retired: Vec<i64> = rotated.keys.iter().map(|key| key.created_at_ms).collect();
        let mut position = 0;
        rotated.keys.retain(|_| {
            let is_good = position == 0
                || retired
                    .get(position - 1)
                    .is_some_and(|since_ms| now_ms - since_ms < KEY_OVERLAP_MS);
            position += 1;
            is_good
        });
        rotated
    }

    /// Parses what [`TokenKeys::text`] wrote.
    ///
    /// # Errors
    /// [`TokenKeysError`] if it holds none, or something else.
    pub fn parse(text: &str) -> Result<Self, TokenKeysError> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let read = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let (id, created, secret) = (words.next()?, words.next()?, words.next()?);
            Some(TokenKey {
                id: id.to_owned(),
                created_at_ms: created.parse().ok()?,
                secret: BASE64.decode(secret).ok()?.try_into().ok()?,
            })
        };
        let keys: Option<Vec<TokenKey>> = lines.map(read).collect();
        match keys {
            Some(keys)
                if !keys.is_empty()
                    && keys.is_sorted_by(|a, b| a.created_at_ms >= b.created_at_ms) =>
            {
                Ok(Self { keys })
            }
            _ => Err(TokenKeysError),
        }
    }

    /// For the file of keys.
    pub fn text(&self) -> SecretString {
        let line = |key: &TokenKey| {
            let secret = BASE64.encode(key.secret);
            format!("{} {} {secret}\n", key.id, key.created_at_ms)
        };
        SecretString::from(self.keys.iter().map(line).collect::<String>())
    }

    /// The newest that all processes know: a single one is known to whoever has any.
    pub(super) fn signing(&self, now_ms: i64) -> Option<&TokenKey> {
        let is_known = |key: &&TokenKey| now_ms - key.created_at_ms >= KEY_SETTLING_MS;
        self.keys.iter().find(is_known).or(self.keys.last())
    }

    pub(super) fn find(&self, id: &str, now_ms: i64) -> Option<&TokenKey> {
        let position = self.keys.iter().position(|key| key.id == id)?;
        let retired_at_ms = match position {
            0 => None,
            newer => Some(self.keys.get(newer - 1)?.created_at_ms),
        };
        let key = self.keys.get(position)?;
        let is_good = retired_at_ms.is_none_or(|since_ms| now_ms - since_ms < KEY_OVERLAP_MS);
        is_good.then_some(key)
    }
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKeys(…)")
    }
}

const SECRET_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    const NOW_MS: i64 = 1_790_000_000_000;

    #[test]
    fn a_retired_key_verifies_for_the_overlap_and_survives_being_written() {
        let first = TokenKeys::new([1; 8], [2; 32], NOW_MS);
        assert!(first.signing(NOW_MS).is_some());
        let rotated_at_ms = NOW_MS + 86_400_000;
        let rotated = first.rotated([4; 8], [5; 32], rotated_at_ms);
        let written = TokenKeys::parse(rotated.text().expose_secret()).unwrap();
        let signing_at = |now_ms| written.signing(now_ms).map(|key| key.id.clone());
        let settled_ms = rotated_at_ms + KEY_SETTLING_MS;
        let id = BASE64.encode([1; 8]);
        assert_eq!(signing_at(settled_ms - 1), Some(id.clone()));
        assert_eq!(signing_at(settled_ms), Some(BASE64.encode([4; 8])));
        let end = rotated_at_ms + KEY_OVERLAP_MS;
        assert!(written.find(&id, end - 1).is_some() && written.find(&id, end).is_none());
        let later = written.rotated([6; 8], [7; 32], end);
        assert_eq!(later.keys.len(), 2);
        assert!(!format!("{later:?}").contains(&id));
        for bad in ["", "\n", "a 1", "a x AAAA", "a 1 AAAA"] {
            assert_eq!(TokenKeys::parse(bad).unwrap_err(), TokenKeysError);
        }
    }
}
