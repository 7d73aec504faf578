use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::BIDI_CONTROLS;

/// A user's self-description: an entity of its own, keyed by the account's ID. Its texts are plain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// The bio, of at most 1024 graphemes.
    pub bio: String,
    /// The address of the picture, if there is one.
    pub avatar: Option<String>,
    /// The address of the wide picture, if there is one.
    pub header: Option<String>,
    /// The fields, at most four.
    pub fields: Vec<ProfileField>,
    /// True if new followers must be accepted.
    pub locked: bool,
    /// True if the account is automated.
    pub bot: bool,
    /// True if the account may be listed in directories.
    pub discoverable: bool,
}

/// A row of a profile's table. Each part has at most 255 graphemes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileField {
    /// The name of the row.
    pub name: String,
    /// The value of the row.
    pub value: String,
}

/// The reason why a profile is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The bio is too long.
    #[error("invalid bio: longer than {MAX_BIO_GRAPHEMES} characters")]
    LongBio,
    /// The profile has too many fields.
    #[error("invalid profile: more than {MAX_FIELDS} fields")]
    ManyFields,
    /// A field is too long.
    #[error(
        "invalid profile: a field's name or value is longer than {MAX_FIELD_GRAPHEMES} characters"
    )]
    LongField,
    /// A text contains U+0000, or a field contains a character that changes the direction of text.
    #[error("invalid profile: it holds U+{:04X}", u32::from(*.0))]
    BadCharacter(char),
}

impl Profile {
    /// Checks every limit.
    ///
    /// # Errors
    /// [`ProfileError`] with the first limit that is exceeded.
    pub fn check(&self) -> Result<(), ProfileError> {
        check(&self.bio, MAX_BIO_GRAPHEMES, &['\0'], ProfileError::LongBio)?;
        if self.fields.len() > MAX_FIELDS {
            return Err(ProfileError::ManyFields);
        }
        let mut bad = BIDI_CONTROLS.to_vec();
        bad.push('\0');
        for text in self.fields.iter().flat_map(|of| [&of.name, &of.value]) {
            check(text, MAX_FIELD_GRAPHEMES, &bad, ProfileError::LongField)?;
        }
        Ok(())
    }
}

fn check(text: &str, max: usize, bad: &[char], long: ProfileError) -> Result<(), ProfileError> {
    if let Some(bad) = text.chars().find(|of| bad.contains(of)) {
        return Err(ProfileError::BadCharacter(bad));
    }
    match text.len() <= max * BYTES_PER_GRAPHEME && text.graphemes(true).count() <= max {
        true => Ok(()),
        false => Err(long),
    }
}

const MAX_BIO_GRAPHEMES: usize = 1_024;
const MAX_FIELDS: usize = 4;
const MAX_FIELD_GRAPHEMES: usize = 255;
/// An average, because a single grapheme may have any number.
const BYTES_PER_GRAPHEME: usize = 16;
