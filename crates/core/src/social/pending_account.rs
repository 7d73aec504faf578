use std::fmt::Write as _;

use secrecy::{ExposeSecret as _, SecretBox, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// The random text that is mailed to the address of a pending account: 256 bits. Only a digest of
/// it is stored.
#[derive(Debug)]
pub struct VerificationState(SecretBox<[u8; 32]>);

/// The stored digest of a [`VerificationState`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerificationDigest(pub [u8; 32]);

/// The effect of a presented state on a pending account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingCheck {
    /// The address is verified.
    Verified,
    /// The text is wrong. The account stays, even after many wrong texts: nobody guesses 256 bits,
    /// and a person who knows of the sign-up must not be able to end it.
    Wrong,
    /// The pending account has expired, for any presented text.
    Void,
}

impl VerificationState {
    /// Makes a state from 32 random bytes.
    pub fn new(random: [u8; 32]) -> Self {
        Self(SecretBox::new(Box::new(random)))
    }

    /// Parses the mailed text; `None` for other texts.
    pub fn parse(text: &SecretString) -> Option<Self> {
        let text = text.expose_secret();
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |at: usize| char::from(digits[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self::new(bytes))
    }

    /// The text to mail: 64 hexadecimal digits.
    pub fn text(&self) -> SecretString {
        let mut text = String::with_capacity(64);
        for byte in self.0.expose_secret() {
            // Writing to a text cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.into()
    }

    /// The digest to store.
    pub fn digest(&self) -> VerificationDigest {
        VerificationDigest(Sha256::digest(self.0.expose_secret()).into())
    }
}

impl VerificationDigest {
    /// The life of a pending account in ms: 168 hours.
    pub const LASTS_MS: i64 = 168 * 3_600_000;

    /// Checks a presented state against this digest of a pending account, which was added `age_ms`
    /// ago. Takes the same time for every wrong state.
    pub fn check(&self, presented: Option<&VerificationState>, age_ms: i64) -> PendingCheck {
        if age_ms >= Self::LASTS_MS {
            return PendingCheck::Void;
        }
        let presented = presented.map_or([0; 32], |state| state.digest().0);
        match presented.ct_eq(&self.0).into() {
            true => PendingCheck::Verified,
            false => PendingCheck::Wrong,
        }
    }
}

impl std::fmt::Debug for VerificationDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VerificationDigest(…)")
    }
}
