use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::BIDI_CONTROLS;

/// A server's description of itself. Its texts are plain, bounded, and without [`BIDI_CONTROLS`]
/// and control characters, because a server's operator writes them, and pages and terminals show
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "InstanceSelfDescription")]
pub struct InstanceInfo {
    name: String,
    description: String,
    version: String,
    software_name: String,
    extensions: Vec<String>,
    maintainer_name: String,
}

/// A server's description of itself as received. The source of an [`InstanceInfo`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct InstanceSelfDescription {
    /// The display name.
    pub name: String,
    /// The purpose, in plain text.
    pub description: String,
    /// The version of its software.
    pub version: String,
    /// The name of its software.
    pub software_name: String,
    /// The protocols and extensions that it lists.
    pub extensions: Vec<String>,
    /// The name of the operator.
    pub maintainer_name: String,
}

impl InstanceInfo {
    /// The largest number of graphemes of a server's name, and of its maintainer's.
    pub const MAX_NAME_GRAPHEMES: usize = 256;
    /// The largest number of graphemes of a description.
    pub const MAX_DESCRIPTION_GRAPHEMES: usize = 4_096;
    /// The largest number of graphemes of a version, of the name of a software and of an extension.
    pub const MAX_WORD_GRAPHEMES: usize = 128;
    /// The largest number of extensions.
    pub const MAX_EXTENSIONS: usize = 64;

    /// The display name, one line; empty if there is none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The purpose; may have several lines, and may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The version of its software; empty if there is none.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of its software, as in NodeInfo; empty if there is none.
    pub fn software_name(&self) -> &str {
        &self.software_name
    }

    /// The protocols and extensions that it lists, each once, in its order.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The name of the operator; empty if there is none.
    pub fn maintainer_name(&self) -> &str {
        &self.maintainer_name
    }
}

impl From<InstanceSelfDescription> for InstanceInfo {
    /// Removes forbidden characters, and shortens long texts.
    fn from(said: InstanceSelfDescription) -> Self {
        let word = |text: &str| line(text, Self::MAX_WORD_GRAPHEMES);
        let mut extensions: Vec<String> = Vec::new();
        for text in &said.extensions {
            let extension = word(text);
            if extensions.len() < Self::MAX_EXTENSIONS
                && !extension.is_empty()
                && !extensions.contains(&extension)
            {
                extensions.push(extension);
            }
        }
        Self {
            name: line(&said.name, Self::MAX_NAME_GRAPHEMES),
            description: cut(&said.description, Self::MAX_DESCRIPTION_GRAPHEMES, |c| {
                c == '\n'
            }),
            version: word(&said.version),
            software_name: word(&said.software_name),
            extensions,
            maintainer_name: line(&said.maintainer_name, Self::MAX_NAME_GRAPHEMES),
        }
    }
}

fn line(text: &str, max_graphemes: usize) -> String {
    cut(text, max_graphemes, |_| false)
}

/// The text without forbidden characters, of at most `max_graphemes`. Control characters become
/// spaces, except for those to `keep`.
fn cut(text: &str, max_graphemes: usize, keep: impl Fn(char) -> bool) -> String {
    let max_bytes = max_graphemes * BYTES_PER_GRAPHEME;
    // A hostile text is not read to its end.
    let text = text
        .chars()
        .take(max_bytes)
        .filter(|c| !BIDI_CONTROLS.contains(c));
    let text: String = text
        .map(|c| match c.is_control() && !keep(c) {
            true => ' ',
            false => c,
        })
        .collect();
    let text = text.trim();
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true).take(max_graphemes) {
        if at + grapheme.len() > max_bytes {
            break;
        }
        end = at + grapheme.len();
    }
    text[..end].trim_end().to_owned()
}

/// A single grapheme may have any number of bytes.
const BYTES_PER_GRAPHEME: usize = 16;
