use serde::{Deserialize, Serialize};

use crate::text::without_nul;

/// A word, or several words with the characters between them, that an entry must contain.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "WordJson", into = "WordJson")]
pub struct Word {
    text: String,
    matching: WordMatch,
}

/// The way in which a word is compared with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WordMatch {
    /// The entry contains the text, character for character.
    Literal,
    /// The entry contains the text after folding.
    Folded,
    /// The entry contains the text after folding, and no word character is adjacent to it.
    Whole,
}

/// A word without characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a word must not be empty")]
pub struct EmptyWord;

impl Word {
    /// Makes a word. U+0000 becomes U+FFFD, as in stored posts.
    ///
    /// # Errors
    ///
    /// [`EmptyWord`] if the text is empty.
    pub fn new(text: &str, matching: WordMatch) -> Result<Self, EmptyWord> {
        if text.is_empty() {
            return Err(EmptyWord);
        }
        let text = without_nul(text).into_owned();
        Ok(Self { text, matching })
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the way in which the word is compared.
    pub const fn matching(&self) -> WordMatch {
        self.matching
    }
}

/// The JSON form. A plain text is the seed's `match_word`.
#[derive(Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a text, or an object with either `folded` or `whole`"
)]
enum WordJson {
    Literal(String),
    Other(OtherWord),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OtherWord {
    Folded(String),
    Whole(String),
}

impl TryFrom<WordJson> for Word {
    type Error = EmptyWord;

    fn try_from(json: WordJson) -> Result<Self, EmptyWord> {
        match json {
            WordJson::Literal(text) => Self::new(&text, WordMatch::Literal),
            WordJson::Other(OtherWord::Folded(text)) => Self::new(&text, WordMatch::Folded),
            WordJson::Other(OtherWord::Whole(text)) => Self::new(&text, WordMatch::Whole),
        }
    }
}

impl From<Word> for WordJson {
    fn from(word: Word) -> Self {
        match word.matching {
            WordMatch::Literal => Self::Literal(word.text),
            WordMatch::Folded => Self::Other(OtherWord::Folded(word.text)),
            WordMatch::Whole => Self::Other(OtherWord::Whole(word.text)),
        }
    }
}
