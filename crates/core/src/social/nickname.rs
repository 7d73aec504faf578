use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::{AccountName, BIDI_CONTROLS, without_bidi_controls};
use crate::text::without_nul;

/// The display name of an account: any text without [`BIDI_CONTROLS`] and U+0000, of at most 256
/// graphemes. It is empty at first; then the account's name is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Nickname(String);

/// An invalid nickname.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NicknameError {
    /// It would change the direction of the text around it.
    #[error("invalid nickname: it holds U+{:04X}, which turns the direction of text", u32::from(*.0))]
    BidiControl(char),
    /// It contains U+0000, which PostgreSQL cannot store.
    #[error("invalid nickname: it holds U+0000")]
    Nul,
    /// It is too long.
    #[error(
        "invalid nickname: longer than {max} characters or {bytes} bytes",
        max = Nickname::MAX_GRAPHEMES,
        bytes = Nickname::MAX_BYTES
    )]
    Long,
}

impl Nickname {
    /// The largest number of graphemes of a nickname.
    pub const MAX_GRAPHEMES: usize = 256;
    /// The largest number of bytes of a nickname, because a single grapheme may have any number.
    pub const MAX_BYTES: usize = 4_096;

    /// Parses the choice of a user of this server.
    ///
    /// # Errors
    /// [`NicknameError`] if it contains a forbidden character, or is too long.
    pub fn new(text: impl Into<String>) -> Result<Self, NicknameError> {
        let text = text.into();
        if let Some(control) = text.chars().find(|of| BIDI_CONTROLS.contains(of)) {
            return Err(NicknameError::BidiControl(control));
        }
        if text.contains('\0') {
            return Err(NicknameError::Nul);
        }
        match text.len() <= Self::MAX_BYTES && text.graphemes(true).count() <= Self::MAX_GRAPHEMES {
            true => Ok(Self(text)),
            false => Err(NicknameError::Long),
        }
    }

    /// A nickname from another server, without forbidden characters and shortened if too long.
    pub fn of_remote(text: &str) -> Self {
        let text = without_bidi_controls(text);
        let text = without_nul(&text);
        let mut ends = text.grapheme_indices(true).take(Self::MAX_GRAPHEMES);
        let mut end = 0;
        while let Some((at, grapheme)) = ends.next()
            && at + grapheme.len() <= Self::MAX_BYTES
        {
            end = at + grapheme.len();
        }
        Self(text[..end].to_owned())
    }

    /// The nickname, which may be empty.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text to show: the nickname, or the account's name if it is empty.
    pub fn or_name<'a>(&'a self, name: &'a AccountName) -> &'a str {
        match self.0.as_str() {
            "" => name.as_str(),
            chosen => chosen,
        }
    }
}

impl TryFrom<String> for Nickname {
    type Error = NicknameError;

    fn try_from(text: String) -> Result<Self, NicknameError> {
        Self::new(text)
    }
}

impl From<Nickname> for String {
    fn from(nickname: Nickname) -> Self {
        nickname.0
    }
}
