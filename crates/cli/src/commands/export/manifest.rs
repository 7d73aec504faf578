//! What an export's folder holds, and what it rests on.

use std::{fs, io, path::Path};

use driftline_core::feed::FeedPosition;
use driftline_server::admin::SourceRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{format::Format, format::MediaMode, record::Filter};
use crate::{durable, error::CliError};

/// An export's manifest, `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the manifest.
    pub manifest_version: u32,
    /// The program that wrote it last.
    pub driftline: String,
    /// When it was written, Unix ms.
    pub written_at_ms: i64,
    /// How posts are written.
    pub format: Format,
    /// The sources that were asked for; all of them without any.
    pub names: Vec<String>,
    /// Which posts were asked for.
    pub filter: Filter,
    /// Whether changes are written, too.
    pub changes: bool,
    /// Whether histories are written, too.
    pub history: bool,
    /// Whether the content of posts that are deleted later is taken out of the files.
    #[serde(default)]
    pub honour_deletions: bool,
    /// What is written of attachments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media: Option<MediaMode>,
    /// The files that were fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_files: Option<MediaFiles>,
    /// How many attachments were to be fetched and were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_missing: Option<u64>,
    /// The position in the feed up to which all is here; the next export goes on after it.
    pub position: FeedPosition,
    /// The files, in order of their making.
    pub files: Vec<ManifestFile>,
    /// The sources, each with its server, and what `driftline source verify` said of it at this position.
    pub sources: Vec<ManifestSource>,
}

/// A file of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its name in the folder.
    pub name: String,
    /// What is in it.
    pub of: FileKind,
    /// How many posts, changes or histories.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// How many rows lost their content because their posts were deleted after they had been exported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redacted: u64,
}

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Posts, in order of arrival.
    Posts,
    /// Edits, deletions and departures.
    Changes,
    /// Earlier versions and counts over time.
    History,
    /// Attachments.
    Media,
}

/// The files in the folder `media`, as the lines of attachments name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaFiles {
    /// How many.
    pub count: u64,
    /// Their size in all.
    pub bytes: u64,
}

impl FileKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Posts, Self::Changes, Self::History, Self::Media];

    /// What files' names begin with.
    pub fn word(self) -> &'static str {
        match self {
            Self::Posts => "posts",
            Self::Changes => "changes",
            Self::History => "history",
            Self::Media => "media",
        }
    }

    /// The format of such files in an export of this format.
    pub fn format(self, format: Format) -> Format {
        match self {
            Self::Posts | Self::Changes => format,
            // Versions within versions are no table.
            Self::History | Self::Media => Format::Jsonl,
        }
    }
}

impl ManifestFile {
    /// The number in its name; 0 if it has none.
    pub fn number(&self) -> u64 {
        let (_, rest) = self.name.split_once('-').unwrap_or_default();
        let (number, _) = rest.split_once('.').unwrap_or_default();
        number.parse().unwrap_or_default()
    }
}

/// A source as the export found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestSource {
    /// The source.
    #[serde(flatten)]
    pub row: Value,
    /// The report on its completeness.
    pub report: Value,
}

impl ManifestSource {
    /// Of a source and its report.
    ///
    /// # Errors
    /// [`CliError`] if they cannot be written as JSON.
    pub fn new(row: &SourceRow, report: &impl Serialize) -> Result<Self, CliError> {
        let value = |value: Result<Value, serde_json::Error>| value.map_err(CliError::failed);
        Ok(Self {
            row: value(serde_json::to_value(row))?,
            report: value(serde_json::to_value(report))?,
        })
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands on references"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Manifest {
    /// The form that this program writes.
    pub const VERSION: u32 = 1;
    /// Its name in the folder.
    pub const NAME: &str = "manifest.json";

    /// Reads the manifest of a folder; `None` if there is none.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be read, or is of a later form.
    pub fn read(dir: &Path) -> Result<Option<Self>, CliError> {
        let path = dir.join(Self::NAME);
        let shown = path.display();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(CliError::failed(format!("{shown} cannot be read: {error}")));
            }
        };
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|error| CliError::failed(format!("{shown} is no manifest: {error}")))?;
        match manifest.manifest_version {
            Self::VERSION => Ok(Some(manifest)),
            later => Err(CliError::failed(format!(
                "{shown} is of form {later}, this program knows {}; use a newer driftline",
                Self::VERSION
            ))),
        }
    }

    /// Replaces the manifest of a folder: it is whole at any time.
    ///
    /// # Errors
    /// That of the write.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        durable::replace_json(&dir.join(Self::NAME), self)
    }
}
