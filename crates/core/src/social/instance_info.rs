use serde::{Deserialize, Serialize};
use unicode_segmentation::UnicodeSegmentation as _;

use super::BIDI_CONTROLS;

/// What a server says of itself, or is configured to say. Its texts are plain, bounded, and without
/// [`BIDI_CONTROLS`] and control characters: they come from whoever runs the server, and are shown on pages
/// and terminals.
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

/// What a server says of itself, as it came: for [`InstanceInfo`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct InstanceSelfDescription {
    /// Its name for people.
    pub name: String,
    /// What it is for, in plain text.
    pub description: String,
    /// The version of its software.
    pub version: String,
    /// The name of its software.
    pub software_name: String,
    /// The protocols and extensions that it lists.
    pub extensions: Vec<String>,
    /// The name of whoever runs it.
    pub maintainer_name: String,
}

impl InstanceInfo {
    /// The most graphemes of a server's name, and of its maintainer's.
    pub const MAX_NAME_GRAPHEMES: usize = 256;
    /// The most graphemes of a description.
    pub const MAX_DESCRIPTION_GRAPHEMES: usize = 4_096;
    /// The most graphemes of a version, of the name of a software and of an extension.
    pub const MAX_WORD_GRAPHEMES: usize = 128;
    /// The most extensions.
    pub const MAX_EXTENSIONS: usize = 64;

    /// Its name for people, one line; empty if it says none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is for; may have several lines, and be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The version of its software; empty if it says none.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The name of its software, as NodeInfo has it; empty if it says none.
    pub fn software_name(&self) -> &str {
        &self.software_name
    }

    /// The protocols and extensions that it lists, each once, in its order.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }

    /// The name of whoever runs it; empty if it says none.
    pub fn maintainer_name(&self) -> &str {
        &self.maintainer_name
    }
}

impl From<InstanceSelfDescription> for InstanceInfo {
    /// Takes out what is not allowed, and cuts what is too long.
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

/// The text without what is not allowed, at most so long. Control characters become spaces, but those to `keep`.
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

/// A grapheme alone may have any number of bytes.
const BYTES_PER_GRAPHEME: usize = 16;
