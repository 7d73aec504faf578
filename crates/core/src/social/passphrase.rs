use secrecy::{ExposeSecret as _, SecretString};
use unicode_normalization::UnicodeNormalization as _;

/// A passphrase as it is hashed: normalised, with each run of whitespace as one U+0020.
///
/// A passphrase that somebody chooses is checked ([`Passphrase::choose`]). One that is presented at a
/// log-in is not ([`Passphrase::present`]): what could not have been chosen matches no hash, and takes
/// the same time.
#[derive(Debug, Clone)]
pub struct Passphrase(SecretString);

/// Why a passphrase cannot be chosen. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    /// It could be guessed.
    #[error(
        "invalid passphrase: shorter than {} characters, where spaces in a row count as one",
        Passphrase::MIN_SCALARS
    )]
    Short,
    /// It is too long.
    #[error(
        "invalid passphrase: longer than {} characters",
        Passphrase::MAX_SCALARS
    )]
    Long,
}

impl Passphrase {
    /// The fewest Unicode scalar values of a normalised passphrase.
    pub const MIN_SCALARS: usize = 8;
    /// The most Unicode scalar values of a normalised passphrase.
    pub const MAX_SCALARS: usize = 512;
    /// How passphrases are normalised, to be stored with each hash. 1: to NFKC, then each run of
    /// characters with the property `White_Space` to one U+0020.
    pub const NORMALIZATION: i64 = 1;

    /// Normalises and checks a passphrase that somebody chooses.
    ///
    /// # Errors
    /// [`PassphraseError`] if it is too short or too long once it is normalised.
    pub fn choose(text: &SecretString) -> Result<Self, PassphraseError> {
        let normal = normalize(text.expose_secret()).ok_or(PassphraseError::Long)?;
        match normal.expose_secret().chars().count() {
            ..Self::MIN_SCALARS => Err(PassphraseError::Short),
            Self::MIN_SCALARS..=Self::MAX_SCALARS => Ok(Self(normal)),
            _ => Err(PassphraseError::Long),
        }
    }

    /// Normalises a passphrase that somebody presents.
    pub fn present(text: &SecretString) -> Self {
        Self(normalize(text.expose_secret()).unwrap_or_else(|| NEVER_CHOSEN.into()))
    }

    /// The text to hash. Whoever takes it keeps it out of logs and errors.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// `None` of a text too long to be worth the work.
fn normalize(text: &str) -> Option<SecretString> {
    if text.len() > MAX_BYTES {
        return None;
    }
    // With room for what it may grow to, so that no unwiped copy is left behind.
    let mut normal = String::with_capacity(text.len() * MAX_GROWTH);
    let mut in_space = false;
    for scalar in text.nfkc() {
        let is_space = scalar.is_whitespace();
        match (is_space, in_space) {
            (true, true) => {}
            (true, false) => normal.push(' '),
            (false, _) => normal.push(scalar),
        }
        in_space = is_space;
    }
    Some(normal.into())
}

/// No normalised text has two spaces in a row.
const NEVER_CHOSEN: &str = "  ";
/// How many times as long NFKC makes a text at most: U+FDFA has 3 bytes and becomes 33.
const MAX_GROWTH: usize = 11;
/// Of a text before it is normalised.
const MAX_BYTES: usize = 16_384;
