use std::{fmt, str::FromStr};

use email_address::{EmailAddress, Options};
use serde::{Deserialize, Serialize};

use super::BIDI_CONTROLS;

/// A mail address of 7 to 319 bytes: a local part without quotes, and the name of a domain that is
/// not a top-level domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MailAddress(String);

/// An invalid mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid mail address: expected name@host.domain, of 7 to 319 bytes")]
pub struct MailAddressError;

impl MailAddress {
    /// Parses an address.
    ///
    /// # Errors
    /// [`MailAddressError`] if mail cannot be sent to it.
    pub fn new(text: impl Into<String>) -> Result<Self, MailAddressError> {
        let text = text.into();
        // Quoted local parts may contain any character, and are not used in practice.
        let is_plain = |of: char| {
            let is_shown_as_it_is = !of.is_control() && !BIDI_CONTROLS.contains(&of);
            is_shown_as_it_is && !of.is_whitespace() && !"\"<>()".contains(of)
        };
        let options = Options::default()
            .with_required_tld()
            .without_display_text()
            .without_domain_literal();
        let is_good = (MIN_BYTES..=MAX_BYTES).contains(&text.len())
            && text.chars().all(is_plain)
            && EmailAddress::parse_with_options(&text, options).is_ok();
        match is_good {
            true => Ok(Self(text)),
            false => Err(MailAddressError),
        }
    }

    /// The address as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The key for uniqueness. Servers may distinguish the case of local parts, but in practice
    /// neither they nor people do.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

impl fmt::Display for MailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for MailAddress {
    type Err = MailAddressError;

    fn from_str(text: &str) -> Result<Self, MailAddressError> {
        Self::new(text)
    }
}

impl TryFrom<String> for MailAddress {
    type Error = MailAddressError;

    fn try_from(text: String) -> Result<Self, MailAddressError> {
        Self::new(text)
    }
}

impl From<MailAddress> for String {
    fn from(address: MailAddress) -> Self {
        address.0
    }
}

const MIN_BYTES: usize = 7;
const MAX_BYTES: usize = 319;
