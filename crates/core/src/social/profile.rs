use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::BIDI_CONTROLS;

/// What somebody says of themselves: an entity of its own, keyed by the account's ID. Its texts are
/// plain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Profile {
    /// At most 1024 graphemes.
    pub bio: String,
    /// The address of the picture, if there is one.
    pub avatar: Option<String>,
    /// The address of the wide picture, if there is one.
    pub header: Option<String>,
    /// At most four.
    pub fields: Vec<ProfileField>,
    /// Whether follows wait until they are accepted.
    pub locked: bool,
    /// Whether a program posts.
    pub bot: bool,
    /// Whether it may be listed where people look for others.
    pub discoverable: bool,
}

/// A line of a profile's table. Each part has at most 255 graphemes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileField {
    /// What it is of.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// Why a profile is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The bio is too long.
    #[error("invalid bio: longer than {MAX_BIO_GRAPHEMES} characters")]
    LongBio,
    /// There are too many fields.
    #[error("invalid profile: more than {MAX_FIELDS} fields")]
    ManyFields,
    /// A field is too long.
    #[error(
        "invalid profile: a field's name or value is longer than {MAX_FIELD_GRAPHEMES} characters"
    )]
    LongField,
    /// It holds U+0000, or in a field what turns the direction of text.
    #[error("invalid profile: it holds U+{:04X}", u32::from(*.0))]
    BadCharacter(char),
}

impl Profile {
    /// Checks every limit.
    ///
    /// # Errors
    /// [`ProfileError`]: the first that it is over.
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
/// On average: a grapheme alone may have any number.
const BYTES_PER_GRAPHEME: usize = 16;
