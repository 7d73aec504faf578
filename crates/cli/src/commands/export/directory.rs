//! An export as files in a folder.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use driftline_core::feed::{ChangeKind, FeedPosition};
use driftline_net::Http;
use driftline_runtime::now_ms;
use driftline_server::admin::{ListSources, ShowHistory, VerifySource};

use super::{
    Export,
    manifest::{FileKind, Manifest, ManifestFile, ManifestSource, MediaFiles},
    media::{self, MediaReader, MissingFile},
    media_fetch::Fetching,
    part::Part,
    reading::Reading,
    redaction::Deletions,
};
use crate::{
    durable,
    error::CliError,
    output,
    progress::{End, Progress},
    shown,
    store_access::StoreAccess,
};

/// A folder of an export.
pub struct Directory {
    dir: PathBuf,
    /// Its lock, until this export ends.
    _lock: File,
    manifest: Manifest,
    /// The most rows of a file.
    rows: u64,
    /// The client that fetches attachments, if they are fetched.
    client: Option<Http>,
    /// The largest that is.
    max_bytes: u64,
}

impl Directory {
    /// Opens a folder to write into: an empty one, one that is made, or one that has an export of the same kind.
    ///
    /// # Errors
    /// [`CliError`] if it has something else, or another export writes into it.
    pub fn open(dir: PathBuf, export: &Export, client: Option<Http>) -> Result<Self, CliError> {
        let shown = dir.display();
        fs::create_dir_all(&dir).map_err(|error| {
            CliError::failed(format!("the folder {shown} cannot be made: {error}"))
        })?;
        let lock = lock(&dir)?;
        let manifest = match Manifest::read(&dir)? {
            Some(known) => {
                let is_same = known.format == export.format
                    && known.names == export.names
                    && known.filter == export.filter()
                    && known.changes == export.changes
                    && known.history == export.history
                    && known.honour_deletions == export.honour_deletions
                    && known.media == export.media;
                if known.filter.matching != export.matching {
                    let known = match &known.filter.matching {
                        Some(query) => format!("with --matching '{query}'"),
                        None => "without --matching".to_owned(),
                    };
                    return Err(CliError::usage(format!(
                        "{shown} has an export {known}; use the same predicate, or name another folder"
                    )));
                }
                if !is_same {
                    return Err(CliError::usage(format!(
                        "{shown} has an export with other options, see its manifest.json; name another folder"
                    )));
                }
                known
            }
            None => {
                let mut entries = fs::read_dir(&dir).map_err(|error| {
                    CliError::failed(format!("the folder {shown} cannot be read: {error}"))
                })?;
                // What a killed export left is removed.
                let is_foreign = |entry: io::Result<fs::DirEntry>| {
                    entry.is_ok_and(|entry| {
                        let name = entry.file_name();
                        name != media::FOLDER && !is_of_export(&name.to_string_lossy())
                    })
                };
                if entries.any(is_foreign) {
                    return Err(CliError::usage(format!(
                        "{shown} has other files and no manifest.json; name another folder"
                    )));
                }
                Manifest {
                    manifest_version: Manifest::VERSION,
                    driftline: String::new(),
                    written_at_ms: 0,
                    format: export.format,
                    names: export.names.clone(),
                    filter: export.filter(),
                    changes: export.changes,
                    history: export.history,
                    honour_deletions: export.honour_deletions,
                    media: export.media,
                    media_files: None,
                    media_missing: None,
                    position: FeedPosition::default(),
                    files: Vec::new(),
                    sources: Vec::new(),
                }
            }
        };
        Ok(Self {
            dir,
            _lock: lock,
            manifest,
            rows: export.rows,
            client,
            max_bytes: export.media_max_size,
        })
    }

    /// Writes what has come since, and the manifest.
    ///
    /// # Errors
    /// [`CliError`]: then the folder is as it was, but for files that no manifest names.
    pub async fn write(mut self, access: &mut StoreAccess, json: bool) -> Result<(), CliError> {
        let unremoved = |dir: &Path, error: io::Error| {
            CliError::failed(format!(
                "a file in {} that is no part of the export cannot be removed: {error}",
                dir.display()
            ))
        };
        self.remove_leftovers()
            .map_err(|error| unremoved(&self.dir, error))?;
        let names = self.manifest.names.clone();
        let filter = self.manifest.filter.clone();
        let mut reading = Reading::new(&names, filter, &self.manifest.position);
        if self.manifest.changes {
            reading = reading.with_changes(access).await?;
        }
        if self.manifest.honour_deletions {
            reading = reading.with_deletions();
        }
        let mut fetching = self.fetching(access).await?;
        let mut replaced = Vec::new();
        // What is made from now on is tried again by the next export.
        let count = self.manifest.files.len();
        let mut parts: Vec<Part> = Vec::new();
        let mut progress = Progress::start(End::Unknown);
        let mut written = 0_u64;
        while let Some(page) = reading.next(access).await? {
            let mut attachments = Vec::new();
            for record in &page {
                if self.manifest.media.is_some() {
                    attachments.extend(media::lines(record));
                }
                let kind = match record.event {
                    ChangeKind::New => FileKind::Posts,
                    _ => FileKind::Changes,
                };
                self.part(&mut parts, kind)?.write(record)?;
                let is_whole = record.post.deleted_at_ms.is_none() || self.manifest.filter.deleted;
                if self.manifest.history && kind == FileKind::Posts && is_whole {
                    let id = record.post.post_id.to_string();
                    let history = access.execute(ShowHistory { post: id }).await?;
                    if !history.versions.is_empty() || history.counts.len() > 1 {
                        self.part(&mut parts, FileKind::History)?
                            .write_json(&history)?;
                    }
                }
            }
            if let Some(fetching) = &mut fetching {
                media::fetch(&mut attachments, fetching).await?;
            }
            for line in &attachments {
                self.part(&mut parts, FileKind::Media)?.write_json(line)?;
            }
            written += page.len() as u64;
            progress.show(written, "row", Vec::new);
        }
        progress.finish();
        for part in parts {
            self.end(part)?;
        }
        if let Some(deletions) = reading.deletions() {
            replaced.extend(self.redact(deletions)?);
        }
        if let Some(fetching) = &mut fetching {
            replaced.extend(self.try_again(fetching, count).await?);
        }
        let unread = |error: io::Error| {
            CliError::failed(format!(
                "the attachments of the export cannot be read: {error}"
            ))
        };
        let fetched = match fetching {
            Some(_) => Some(media::named_files(&self.dir, &self.manifest).map_err(unread)?),
            None => None,
        };
        let missing = match fetching {
            Some(_) => media::missing_files(&self.dir, &self.manifest).map_err(unread)?,
            None => BTreeMap::new(),
        };
        self.manifest.media_files = fetched.as_ref().map(MediaFiles::of);
        self.manifest.media_missing = fetched.as_ref().map(|_| missing.len() as u64);
        self.manifest.position = reading.position()?;
        self.manifest.driftline = env!("CARGO_PKG_VERSION").to_owned();
        self.manifest.written_at_ms = now_ms();
        self.manifest.sources = sources(&names, access).await?;
        let path = self.dir.display();
        // The names of the files come to the disk before the manifest that lists them.
        durable::sync_folder(&self.dir)
            .and_then(|()| self.manifest.write(&self.dir))
            .map_err(|error| {
                CliError::failed(format!("the manifest in {path} was not written: {error}"))
            })?;
        if !replaced.is_empty() {
            self.remove_leftovers()
                .and_then(|()| durable::sync_folder(&self.dir))
                .map_err(|error| unremoved(&self.dir, error))?;
        }
        if let Some(fetched) = &fetched {
            media::remove_others(&self.dir, fetched)
                .map_err(|error| unremoved(&self.dir, error))?;
        }
        let shown = |manifest: &Manifest| {
            let files = manifest.files.len() as u64;
            vec![format!(
                "{} written to {path}, which has {} now; `driftline export check {path}` proves them",
                shown::count(written, "row"),
                shown::count(files, "file"),
            )]
        };
        output::reply(json, &self.manifest, shown)?;
        let fetched = fetched.map_or(0, |fetched| fetched.len());
        self.all_fetched(fetched, &missing)
    }

    /// Names the first attachments that were not fetched.
    ///
    /// # Errors
    /// [`CliError::Unsettled`] if there are any.
    fn all_fetched(
        &self,
        fetched: usize,
        missing: &BTreeMap<String, MissingFile>,
    ) -> Result<(), CliError> {
        if missing.is_empty() {
            return Ok(());
        }
        for file in missing.iter().take(MAX_SHOWN) {
            output::note(&media::missing_line(file));
        }
        let path = self.dir.display();
        let retried = missing.values().filter(|file| file.is_retried).count();
        let next = match retried {
            0 => "none is requested again".to_owned(),
            retried if retried == missing.len() => "the next export requests all again".to_owned(),
            retried => format!("the next export requests {retried} again"),
        };
        Err(CliError::Unsettled(format!(
            "{} of the export in {path} could not be fetched, {} could; {next}; `driftline export check {path}` names all",
            shown::count(missing.len() as u64, "attachment"),
            shown::count(fetched as u64, "file"),
        )))
    }

    /// What fetches attachments, if they are fetched.
    async fn fetching(&self, access: &mut StoreAccess) -> Result<Option<Fetching>, CliError> {
        let Some(client) = self.client.clone() else {
            return Ok(None);
        };
        let sources = access.execute(ListSources).await?;
        let mut known = HashMap::new();
        let read = media::each_line(&self.dir, &self.manifest, |line| {
            if let (Some(address), Some(fetched)) = (line.address(), &line.fetched) {
                known.insert(address.to_owned(), fetched.clone());
            }
        });
        read.map_err(|error| {
            CliError::failed(format!(
                "the attachments of the export cannot be read: {error}"
            ))
        })?;
        let folder = self.dir.join(media::FOLDER);
        Fetching::new(folder, client, self.max_bytes, &sources, known).map(Some)
    }

    /// Fetches once more what the first files so many name and was not fetched the first time, and puts files with the new lines in the
    /// place of the old ones. Returns the names of these.
    async fn try_again(
        &mut self,
        fetching: &mut Fetching,
        count: usize,
    ) -> Result<Vec<String>, CliError> {
        let mut replaced = Vec::new();
        for place in 0..count {
            let old = self.manifest.files[place].clone();
            let path = self.dir.join(&old.name);
            let unread = |error: io::Error| {
                CliError::failed(format!("{} cannot be read: {error}", path.display()))
            };
            if old.of != FileKind::Media || !media::has_failures(&path).map_err(unread)? {
                continue;
            }
            let mut part = self.begin(old.of, 0)?;
            let mut reader = MediaReader::open(&path).map_err(unread)?;
            loop {
                let mut lines = reader.page().map_err(unread)?;
                if lines.is_empty() {
                    break;
                }
                media::try_again(&mut lines, fetching).await?;
                for line in &lines {
                    part.write_json(line)?;
                }
            }
            self.manifest.files[place] = ManifestFile {
                redacted: old.redacted,
                ..part.end(&self.dir)?
            };
            replaced.push(old.name);
        }
        Ok(replaced)
    }

    /// The part of that kind with room for a row.
    fn part<'p>(
        &mut self,
        parts: &'p mut Vec<Part>,
        kind: FileKind,
    ) -> Result<&'p mut Part, CliError> {
        let found = parts.iter().position(|part| part.kind == kind);
        let place = match found {
            Some(place) if parts[place].rows < self.rows => place,
            Some(place) => {
                let full = parts.swap_remove(place);
                self.end(full)?;
                parts.push(self.begin(kind, parts.len())?);
                parts.len() - 1
            }
            None => {
                parts.push(self.begin(kind, parts.len())?);
                parts.len() - 1
            }
        };
        Ok(&mut parts[place])
    }

    fn begin(&self, kind: FileKind, open: usize) -> Result<Part, CliError> {
        let numbers = self.manifest.files.iter().map(ManifestFile::number);
        let number = numbers.max().unwrap_or(0) + open as u64 + 1;
        Part::begin(&self.dir, kind, self.manifest.format, number)
    }

    fn end(&mut self, part: Part) -> Result<(), CliError> {
        let file = part.end(&self.dir)?;
        self.manifest.files.push(file);
        Ok(())
    }

    /// Puts files without the content of these posts in the place of those that have it. Returns the
    /// names of the old ones, which go once no manifest names them.
    fn redact(&mut self, deletions: &Deletions) -> Result<Vec<String>, CliError> {
        let format = self.manifest.format;
        let mut replaced = Vec::new();
        for place in 0..self.manifest.files.len() {
            let old = self.manifest.files[place].clone();
            let path = self.dir.join(&old.name);
            let unread = |error: io::Error| {
                let path = path.display();
                CliError::failed(format!(
                    "{path} cannot be redacted: {error}; `driftline export check` tells whether it is whole"
                ))
            };
            if !deletions.concern(&self.dir, &old, format).map_err(unread)? {
                continue;
            }
            let mut part = self.begin(old.of, 0)?;
            let mut redacted = 0;
            part.write_by(old.rows, |writer| {
                redacted = deletions.redact(&self.dir, &old, format, writer)?;
                Ok(())
            })?;
            self.manifest.files[place] = ManifestFile {
                redacted: old.redacted + redacted,
                ..part.end(&self.dir)?
            };
            replaced.push(old.name);
        }
        Ok(replaced)
    }

    /// Removes what no manifest names: of an export that was killed.
    fn remove_leftovers(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let is_known =
                name == Manifest::NAME || self.manifest.files.iter().any(|file| file.name == name);
            if is_of_export(&name) && !is_known {
                fs::remove_file(self.dir.join(&name))?;
            }
        }
        Ok(())
    }
}

/// The most attachments without a file that a message names.
const MAX_SHOWN: usize = 10;

/// Keeps other exports from the folder, where the file system has locks.
fn lock(dir: &Path) -> Result<File, CliError> {
    let shown = dir.display();
    let lock = File::open(dir).map_err(|error| {
        CliError::failed(format!("the folder {shown} cannot be opened: {error}"))
    })?;
    match lock.try_lock() {
        Err(TryLockError::WouldBlock) => Err(CliError::locked(format!(
            "another export writes into {shown}; wait until it ends"
        ))),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(lock),
    }
}

/// The sources with their reports.
async fn sources(
    names: &[String],
    access: &mut StoreAccess,
) -> Result<Vec<ManifestSource>, CliError> {
    let mut sources = Vec::new();
    for row in access.execute(ListSources).await? {
        if !names.is_empty() && !names.contains(&row.name) {
            continue;
        }
        let name = row.name.clone();
        let report = access.execute(VerifySource { name }).await?;
        sources.push(ManifestSource::new(&row, &report)?);
    }
    Ok(sources)
}

/// Whether an export gives files such names.
pub fn is_of_export(name: &str) -> bool {
    let name = name.strip_suffix(".part").unwrap_or(name);
    let is_numbered = |kind: FileKind| {
        let rest = name.strip_prefix(kind.word());
        let rest = rest.and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.split_once('.'))
            .is_some_and(|(number, ending)| {
                number.len() >= 5
                    && number.bytes().all(|byte| byte.is_ascii_digit())
                    && ["jsonl", "csv", "parquet"].contains(&ending)
            })
    };
    name == Manifest::NAME || FileKind::ALL.into_iter().any(is_numbered)
}
