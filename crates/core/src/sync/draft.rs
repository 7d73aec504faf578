use serde::{Deserialize, Serialize};

use super::{ObjectKey, ObjectKind};
use crate::post::Visibility;

/// The value of a draft.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftValue {
    /// The text: at most [`MAX_DRAFT_CHARS`] characters.
    pub text: String,
    /// The warning above the text; empty if there is none.
    #[serde(default)]
    pub spoiler_text: String,
    /// The visibility; `None` for the account's default.
    #[serde(default)]
    pub visibility: Option<Visibility>,
    /// True if the media are hidden at first.
    #[serde(default)]
    pub sensitive: bool,
    /// The tag of the language.
    #[serde(default)]
    pub language: Option<String>,
    /// The URI of the post to which it replies. The server need not have that post.
    #[serde(default)]
    pub in_reply_to: Option<String>,
}

impl DraftValue {
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, text, max) in [
            ("text", &self.text, MAX_DRAFT_CHARS),
            ("spoiler_text", &self.spoiler_text, MAX_SPOILER_CHARS),
        ] {
            if text.chars().take(max + 1).count() > max || text.contains('\0') {
                return Err(format!(
                    "{name} has at most {max} characters, and no U+0000"
                ));
            }
        }
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let is_language =
            |tag: &str| (1..=MAX_LANGUAGE_BYTES).contains(&tag.len()) && tag.bytes().all(is_part);
        if !self.language.as_deref().is_none_or(is_language) {
            return Err("language must be a tag such as en or pt-BR".to_owned());
        }
        let is_uri = |uri: &str| ObjectKey::named(ObjectKind::Favourite, uri).is_ok();
        match self.in_reply_to.as_deref().is_none_or(is_uri) {
            true => Ok(()),
            false => Err("in_reply_to must be the URI of a post".to_owned()),
        }
    }
}

/// The largest length of a draft's text, in Unicode scalar values.
pub const MAX_DRAFT_CHARS: usize = 10_000;
const MAX_SPOILER_CHARS: usize = 1_000;
const MAX_LANGUAGE_BYTES: usize = 35;
