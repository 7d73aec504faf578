use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The name of an account of this server: 1 to 64 of `A-Z a-z 0-9 . _ ~ -`, which need no escapes
/// in a URL. `.` and `..` are not allowed, because a URL's path drops them. It is shown as it was
/// chosen. Two names that differ only in case are the same ([`AccountName::key`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountName(String);

/// An invalid account name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid account name: expected 1 to 64 of the letters A to Z, digits, `.`, `_`, `~` and `-`, and neither `.` nor `..`"
)]
pub struct AccountNameError;

impl AccountName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`AccountNameError`] if it is empty, too long, has another character or is a step in a path.
    pub fn new(text: impl Into<String>) -> Result<Self, AccountNameError> {
        let text = text.into();
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
        let is_step = matches!(text.as_str(), "." | "..");
        match (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(is_allowed) && !is_step {
            true => Ok(Self(text)),
            false => Err(AccountNameError),
        }
    }

    /// The name as it was chosen.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key for uniqueness, which is the same for names that differ only in case.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for AccountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AccountName {
    type Err = AccountNameError;

    fn from_str(text: &str) -> Result<Self, AccountNameError> {
        Self::new(text)
    }
}

impl TryFrom<String> for AccountName {
    type Error = AccountNameError;

    fn try_from(text: String) -> Result<Self, AccountNameError> {
        Self::new(text)
    }
}

impl From<AccountName> for String {
    fn from(name: AccountName) -> Self {
        name.0
    }
}

const MAX_BYTES: usize = 64;
