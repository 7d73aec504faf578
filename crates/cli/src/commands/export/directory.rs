//! An export as files in a folder.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use driftline_core::feed::ChangeKind;
use driftline_runtime::now_ms;
use driftline_server::admin::{ListSources, ShowHistory, VerifySource};

use super::{
    Export, Format,
    file::LineWriter,
    manifest::{FileKind, Manifest, ManifestFile, ManifestSource},
    reading::{Reading, Record},
};
use crate::{
    checksum::Hashing,
    error::CliError,
    output,
    progress::{End, Progress},
    shown,
    store_access::StoreAccess,
};

/// A folder of an export.
pub struct Directory {
    dir: PathBuf,
    manifest: Manifest,
    /// The most rows of a file.
    rows: u64,
}

/// A file that is being written.
struct Part {
    kind: FileKind,
    name: String,
    path: PathBuf,
    rows: u64,
    writer: PartWriter,
}

enum PartWriter {
    Lines(Box<LineWriter<Hashing<File>>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet_file::ParquetFile<Hashing<File>>>),
}

impl Directory {
    /// Opens a folder to write into: an empty one, one that is made, or one that has an export of the same kind.
    ///
    /// # Errors
    /// [`CliError`] if it has something else.
    pub fn open(dir: PathBuf, export: &Export) -> Result<Self, CliError> {
        let shown = dir.display();
        fs::create_dir_all(&dir).map_err(|error| {
            CliError::failed(format!("the folder {shown} cannot be made: {error}"))
        })?;
        let manifest = match Manifest::read(&dir)? {
            Some(known) => {
                let is_same = known.format == export.format
                    && known.names == export.names
                    && known.filter == export.filter()
                    && known.changes == export.changes
                    && known.history == export.history;
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
                // What a killed export left is written over.
                let is_foreign = |entry: io::Result<fs::DirEntry>| {
                    entry.is_ok_and(|entry| !is_of_export(&entry.file_name().to_string_lossy()))
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
                    position: "start".to_owned(),
                    files: Vec::new(),
                    sources: Vec::new(),
                }
            }
        };
        Ok(Self {
            dir,
            manifest,
            rows: export.rows,
        })
    }

    /// Writes what has come since, and the manifest.
    ///
    /// # Errors
    /// [`CliError`]: then the folder is as it was, but for files that no manifest names.
    pub async fn write(mut self, access: &mut StoreAccess, json: bool) -> Result<(), CliError> {
        let after = self.manifest.position.clone();
        let names = self.manifest.names.clone();
        let is_first = self.manifest.files.is_empty() && after == "start";
        // The first export has all changes in its posts.
        let with_changes = self.manifest.changes && !is_first;
        let mut reading = Reading::new(
            &names,
            self.manifest.filter.clone(),
            Some(after),
            with_changes,
        );
        let mut parts: Vec<Part> = Vec::new();
        let mut progress = Progress::start(End::Unknown);
        let mut written = 0_u64;
        while let Some(page) = reading.next(access).await? {
            for record in &page {
                let kind = match record.event {
                    ChangeKind::New => FileKind::Posts,
                    _ => FileKind::Changes,
                };
                self.part(&mut parts, kind)?.write(record)?;
                if self.manifest.history && kind == FileKind::Posts {
                    let id = record.post.post_id.to_string();
                    let history = access.execute(ShowHistory { post: id }).await?;
                    if !history.versions.is_empty() || history.counts.len() > 1 {
                        self.part(&mut parts, FileKind::History)?
                            .write_json(&history)?;
                    }
                }
            }
            written += page.len() as u64;
            progress.show(written, "row", Vec::new);
        }
        progress.finish();
        for part in parts {
            self.end(part)?;
        }
        self.manifest.position = reading.position().to_owned();
        self.manifest.driftline = env!("CARGO_PKG_VERSION").to_owned();
        self.manifest.written_at_ms = now_ms();
        self.manifest.sources = sources(&names, access).await?;
        let path = self.dir.display();
        self.manifest.write(&self.dir).map_err(|error| {
            CliError::failed(format!("the manifest in {path} was not written: {error}"))
        })?;
        let shown = |manifest: &Manifest| {
            let files = manifest.files.len() as u64;
            vec![format!(
                "{} written to {path}, which has {} now; `driftline export check {path}` proves them",
                shown::count(written, "row"),
                shown::count(files, "file"),
            )]
        };
        output::reply(json, &self.manifest, shown)
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
        let number = self.manifest.files.len() + open + 1;
        let (word, format) = match kind {
            FileKind::Posts => ("posts", self.manifest.format),
            FileKind::Changes => ("changes", self.manifest.format),
            // Versions within versions are no table.
            FileKind::History => ("history", Format::Jsonl),
        };
        let ending = match format {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
        };
        let name = format!("{word}-{number:05}.{ending}");
        let path = self.dir.join(format!("{name}.part"));
        let file = File::create(&path).map_err(|error| wrong(&path, error))?;
        let file = Hashing::new(file);
        let writer = match format {
            #[cfg(feature = "parquet")]
            Format::Parquet => {
                let file = super::parquet_file::ParquetFile::new(file);
                PartWriter::Parquet(Box::new(file.map_err(|error| wrong(&path, error))?))
            }
            format => PartWriter::Lines(Box::new(LineWriter::new(format, file)?)),
        };
        Ok(Part {
            kind,
            name,
            path,
            rows: 0,
            writer,
        })
    }

    /// Gives a part its name, once it is whole and durable.
    fn end(&mut self, part: Part) -> Result<(), CliError> {
        let Part {
            kind,
            name,
            path,
            rows,
            writer,
        } = part;
        let ended = || {
            let hashing = writer.end()?;
            let (mut file, sha256, bytes) = hashing.end();
            file.flush()?;
            file.sync_all()?;
            fs::rename(&path, self.dir.join(&name))?;
            Ok::<_, io::Error>((sha256, bytes))
        };
        let (sha256, bytes) = ended().map_err(|error| wrong(&path, error))?;
        self.manifest.files.push(ManifestFile {
            name,
            of: kind,
            rows,
            bytes,
            sha256,
        });
        Ok(())
    }
}

impl Part {
    fn write(&mut self, record: &Record) -> Result<(), CliError> {
        self.rows += 1;
        match &mut self.writer {
            PartWriter::Lines(lines) => lines
                .write(record)
                .map_err(|error| wrong(&self.path, error)),
            #[cfg(feature = "parquet")]
            PartWriter::Parquet(file) => {
                file.write(record).map_err(|error| wrong(&self.path, error))
            }
        }
    }

    /// Writes a line that is no post.
    fn write_json(&mut self, value: &impl serde::Serialize) -> Result<(), CliError> {
        self.rows += 1;
        match &mut self.writer {
            PartWriter::Lines(lines) => lines
                .write_json(value)
                .map_err(|error| wrong(&self.path, error)),
            #[cfg(feature = "parquet")]
            PartWriter::Parquet(_) => Err(CliError::failed("a table holds posts only")),
        }
    }
}

impl PartWriter {
    fn end(self) -> io::Result<Hashing<File>> {
        match self {
            Self::Lines(lines) => lines.end(),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.end().map_err(io::Error::other),
        }
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
    let is_part = ["posts-", "changes-", "history-"]
        .iter()
        .any(|word| name.starts_with(word));
    is_part || name == Manifest::NAME
}

fn wrong(path: &Path, error: impl std::fmt::Display) -> CliError {
    let path = path.display();
    CliError::failed(format!("{path} cannot be written: {error}"))
}
