use secrecy::{ExposeSecret as _, SecretString};
use unicode_normalization::UnicodeNormalization as _;

/// A passphrase in the form that is hashed: normalised, with each run of whitespace as one U+0020.
///
/// A chosen passphrase is checked ([`Passphrase::choose`]). One that is presented at a log-in is
/// not ([`Passphrase::present`]). A text that is not a valid choice matches no hash, and takes the
/// same time.
#[derive(Debug, Clone)]
pub struct Passphrase(SecretString);

/// The reason why a passphrase cannot be chosen. Never contains the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    /// The passphrase is short enough to be guessed.
    #[error(
        "invalid passphrase: shorter than {} characters, where spaces in a row count as one",
        Passphrase::MIN_SCALARS
    )]
    Short,
    /// The passphrase is too long.
    #[error(
        "invalid passphrase: longer than {} characters",
        Passphrase::MAX_SCALARS
    )]
    Long,
}

impl Passphrase {
    /// The smallest number of Unicode scalar values of a normalised passphrase.
    pub const MIN_SCALARS: usize = 8;
    /// The largest number of Unicode scalar values of a normalised passphrase.
    pub const MAX_SCALARS: usize = 512;
    /// The version of the normalisation, stored with each hash. Version 1: first NFKC, then each
    /// run of characters with the property `White_Space` becomes one U+0020.
    pub const NORMALIZATION: i64 = 1;

    /// Normalises and checks a chosen passphrase.
    ///
    /// # Errors
    /// [`PassphraseError`] if it is too short or too long after normalisation.
    pub fn choose(text: &SecretString) -> Result<Self, PassphraseError> {
        let normal = normalize(text.expose_secret()).ok_or(PassphraseError::Long)?;
        match normal.expose_secret().chars().count() {
            ..Self::MIN_SCALARS => Err(PassphraseError::Short),
            Self::MIN_SCALARS..=Self::MAX_SCALARS => Ok(Self(normal)),
            _ => Err(PassphraseError::Long),
        }
    }

    /// Normalises a presented passphrase.
    pub fn present(text: &SecretString) -> Self {
        Self(normalize(text.expose_secret()).unwrap_or_else(|| NEVER_CHOSEN.into()))
    }

    /// The text to hash. The caller must keep it out of logs and errors.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// The normalised text; `None` for a text that is too long to process.
fn normalize(text: &str) -> Option<SecretString> {
    if text.len() > MAX_BYTES {
        return None;
    }
    // With room for the largest growth, so that no unwiped copy is left behind.
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
/// The largest growth of a text by NFKC: U+FDFA has 3 bytes and becomes 33.
const MAX_GROWTH: usize = 11;
/// The limit before normalisation.
const MAX_BYTES: usize = 16_384;
