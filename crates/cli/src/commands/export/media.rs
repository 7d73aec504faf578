//! The attachments of exported posts: their lines, and the files of `--media fetch`.

use std::{
    collections::{BTreeMap, HashSet},
    fs::{self, File},
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use driftline_runtime::now_ms;
use driftline_store::LocalId;
use serde::{Deserialize, Serialize};

use super::{
    columns::Id,
    manifest::{FileKind, Manifest, MediaFiles},
    media_fetch::{Fetched, Fetching},
    record::Record,
};
use crate::error::CliError;

/// An attachment of a post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MediaLine {
    /// The source's name.
    pub source: String,
    /// The post's ID.
    pub post_id: LocalId,
    /// The post's ID at its server.
    pub upstream_id: String,
    /// The attachment's ID there.
    pub attachment_id: Option<String>,
    /// What it is, as the server says: `image`, `video` …
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// Its address at the author's server.
    pub remote_url: Option<String>,
    /// The address of a smaller picture.
    pub preview_url: Option<String>,
    /// What it shows, in words.
    pub description: Option<String>,
    /// A blurred picture of a few characters.
    pub blurhash: Option<String>,
    /// When the post's deletion was noticed after this line had been exported, Unix ms; then it has no content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted_at_ms: Option<i64>,
    /// The file that was fetched.
    #[serde(flatten)]
    pub fetched: Option<Fetched>,
    /// Why it was not fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When it was not, Unix ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at_ms: Option<i64>,
    /// How often it was requested without success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
}

impl MediaLine {
    /// The address that is fetched.
    pub fn address(&self) -> Option<&str> {
        self.url.as_deref().or(self.remote_url.as_deref())
    }

    /// Takes the content out: its post was deleted.
    pub fn redact(&mut self, deleted_at_ms: i64) {
        self.url = None;
        self.remote_url = None;
        self.preview_url = None;
        self.description = None;
        self.blurhash = None;
        self.fetched = None;
        self.error = None;
        self.failed_at_ms = None;
        self.tries = None;
        self.deleted_at_ms = Some(deleted_at_ms);
    }
}

impl MediaLine {
    /// Whether it is to be fetched once more.
    fn is_failure(&self) -> bool {
        self.tries.is_some_and(|tries| tries < MAX_TRIES)
    }
}

/// The attachments of a post, or of the one that it boosts.
pub fn lines(record: &Record) -> Vec<MediaLine> {
    let status = record.post.status.as_deref();
    let shown: Option<StatusParts> =
        status.and_then(|status| serde_json::from_str(status.get()).ok());
    let own = |shown: StatusParts| {
        let own = shown.media_attachments.unwrap_or_default();
        match own.is_empty() {
            true => shown
                .reblog
                .and_then(|boosted| boosted.media_attachments)
                .unwrap_or_default(),
            false => own,
        }
    };
    let attachments = shown.map(own).unwrap_or_default().into_iter();
    attachments
        .map(|attachment| MediaLine {
            source: record.source.clone(),
            post_id: record.post.post_id,
            upstream_id: record.post.upstream_id.clone(),
            attachment_id: attachment.id.map(Id::into_text),
            kind: attachment.kind,
            url: attachment.url,
            remote_url: attachment.remote_url,
            preview_url: attachment.preview_url,
            description: attachment.description,
            blurhash: attachment.blurhash,
            deleted_at_ms: None,
            fetched: None,
            error: None,
            failed_at_ms: None,
            tries: None,
        })
        .collect()
}

/// Fetches what these lines name, each address once, and says in them what became of it.
///
/// # Errors
/// [`CliError`] if a file cannot be written.
pub async fn fetch(lines: &mut [MediaLine], fetching: &mut Fetching) -> Result<(), CliError> {
    fetch_those(lines.iter_mut().collect(), fetching).await
}

/// The same for those lines whose address could not be fetched the first time.
///
/// # Errors
/// [`CliError`] if a file cannot be written.
pub async fn try_again(lines: &mut [MediaLine], fetching: &mut Fetching) -> Result<(), CliError> {
    let failures = lines.iter_mut().filter(|line| line.is_failure());
    fetch_those(failures.collect(), fetching).await
}

async fn fetch_those(lines: Vec<&mut MediaLine>, fetching: &mut Fetching) -> Result<(), CliError> {
    let mut seen = HashSet::new();
    let addresses: Vec<(String, String)> = lines
        .iter()
        .filter_map(|line| Some((line.source.clone(), line.address()?.to_owned())))
        .filter(|(_, address)| seen.insert(address.clone()))
        .collect();
    let outcomes = fetching.fetch(addresses).await?;
    for line in lines {
        match line.address().and_then(|address| outcomes.get(address)) {
            Some(Ok(fetched)) => {
                line.fetched = Some(fetched.clone());
                line.error = None;
                line.failed_at_ms = None;
                line.tries = None;
            }
            Some(Err(why)) => {
                line.error = Some(why.error.clone());
                line.failed_at_ms = Some(now_ms());
                line.tries = Some(line.tries.unwrap_or(0) + u32::from(why.is_try));
            }
            None => {}
        }
    }
    Ok(())
}

/// Whether a file has lines that are to be fetched once more.
///
/// # Errors
/// If it cannot be read.
pub fn has_failures(path: &Path) -> io::Result<bool> {
    let mut reader = MediaReader::open(path)?;
    loop {
        let page = reader.page()?;
        if page.is_empty() {
            return Ok(false);
        }
        if page.iter().any(MediaLine::is_failure) {
            return Ok(true);
        }
    }
}

/// Reads the lines of a file, some at a time.
pub struct MediaReader(io::Lines<BufReader<File>>);

impl MediaReader {
    /// Opens a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(BufReader::new(File::open(path)?).lines()))
    }

    /// The next lines; none at the end.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn page(&mut self) -> io::Result<Vec<MediaLine>> {
        let lines = self.0.by_ref().take(PAGE);
        lines
            .map(|line| Ok(serde_json::from_str(&line?)?))
            .collect()
    }
}

/// Calls this for each line of an export's files of attachments.
///
/// # Errors
/// If a file cannot be read.
pub fn each_line(
    dir: &Path,
    manifest: &Manifest,
    mut take: impl FnMut(MediaLine),
) -> io::Result<()> {
    let files = manifest.files.iter();
    for file in files.filter(|file| file.of == FileKind::Media) {
        for line in BufReader::new(File::open(dir.join(&file.name))?).lines() {
            take(serde_json::from_str(&line?)?);
        }
    }
    Ok(())
}

/// The files that an export's lines name, with their sizes.
///
/// # Errors
/// If its lines cannot be read.
pub fn named_files(dir: &Path, manifest: &Manifest) -> io::Result<BTreeMap<String, u64>> {
    let mut named = BTreeMap::new();
    each_line(dir, manifest, |line| {
        if let Some(fetched) = line.fetched {
            named.insert(fetched.file, fetched.bytes);
        }
    })?;
    Ok(named)
}

/// An attachment that was not fetched.
#[derive(Debug)]
pub struct MissingFile {
    /// The reason.
    pub error: String,
    /// Whether the next export requests it again.
    pub is_retried: bool,
}

/// The attachments of an export that were to be fetched and were not, by address.
///
/// # Errors
/// If its lines cannot be read.
pub fn missing_files(dir: &Path, manifest: &Manifest) -> io::Result<BTreeMap<String, MissingFile>> {
    let mut missing = BTreeMap::new();
    each_line(dir, manifest, |line| {
        if let (Some(address), Some(error)) = (line.address(), &line.error) {
            let file = MissingFile {
                error: error.clone(),
                is_retried: line.is_failure(),
            };
            missing.insert(address.to_owned(), file);
        }
    })?;
    Ok(missing)
}

/// An attachment that was not fetched, in a line.
pub fn missing_line((address, missing): (&String, &MissingFile)) -> String {
    let error = &missing.error;
    match error.starts_with(address) {
        true => format!("not fetched: {error}"),
        false => format!("not fetched: {address}: {error}"),
    }
}

impl MediaFiles {
    /// Counts files.
    pub fn of(named: &BTreeMap<String, u64>) -> Self {
        Self {
            count: named.len() as u64,
            bytes: named.values().sum(),
        }
    }
}

/// Removes files of attachments that no line names: of deleted posts, or of an export that was killed.
///
/// # Errors
/// If they cannot be removed.
pub fn remove_others(dir: &Path, named: &BTreeMap<String, u64>) -> io::Result<()> {
    for entry in fs::read_dir(dir.join(FOLDER))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_media_file(&name) && !named.contains_key(&name) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Whether an export gives attachments such names.
pub fn is_media_file(name: &str) -> bool {
    let is_part = name.starts_with("fetch-") && name.ends_with(".part");
    let is_digest =
        |digest: &str| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_part
        || name
            .split_once('.')
            .is_some_and(|(digest, _)| is_digest(digest))
}

/// How often an address is requested, in as many exports.
const MAX_TRIES: u32 = 2;
/// So many lines are worked on at a time.
const PAGE: usize = 1_000;
/// The folder of the files in that of an export.
pub const FOLDER: &str = "media";

#[derive(Deserialize, Default)]
#[serde(default)]
struct StatusParts {
    media_attachments: Option<Vec<Attachment>>,
    reblog: Option<Box<StatusParts>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Attachment {
    id: Option<Id>,
    #[serde(rename = "type")]
    kind: Option<String>,
    url: Option<String>,
    remote_url: Option<String>,
    preview_url: Option<String>,
    description: Option<String>,
    blurhash: Option<String>,
}
