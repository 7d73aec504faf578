//! A file of an export while it is written.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    file::LineWriter,
    format::Format,
    manifest::{FileKind, ManifestFile},
    record::Record,
};
use crate::{checksum::Hashing, error::CliError};

/// A file that is being written; it has another name until it is whole.
pub struct Part {
    /// What is in it.
    pub kind: FileKind,
    /// How many rows were written.
    pub rows: u64,
    name: String,
    path: PathBuf,
    writer: PartWriter,
}

/// What a part is written through.
pub enum PartWriter {
    /// Lines of JSON, or of a table.
    Lines(Box<LineWriter<Hashing<File>>>),
    /// A table of Parquet.
    #[cfg(feature = "parquet")]
    Parquet(Box<super::parquet_file::ParquetFile<Hashing<File>>>),
}

impl Part {
    /// Begins the file of this number.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be made.
    pub fn begin(
        dir: &Path,
        kind: FileKind,
        format: Format,
        number: u64,
    ) -> Result<Self, CliError> {
        let format = kind.format(format);
        let name = format!("{}-{number:05}.{}", kind.word(), format.ending());
        let path = dir.join(format!("{name}.part"));
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
        Ok(Self {
            kind,
            rows: 0,
            name,
            path,
            writer,
        })
    }

    /// Writes a post.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be written.
    pub fn write(&mut self, record: &Record) -> Result<(), CliError> {
        self.write_by(1, |writer| match writer {
            PartWriter::Lines(lines) => lines.write(record),
            #[cfg(feature = "parquet")]
            PartWriter::Parquet(file) => file.write(record).map_err(io::Error::other),
        })
    }

    /// Writes a line that is no post.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be written.
    pub fn write_json(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        self.write_by(1, |writer| match writer {
            PartWriter::Lines(lines) => lines.write_json(value),
            #[cfg(feature = "parquet")]
            PartWriter::Parquet(_) => Err(io::Error::other("a table holds posts only")),
        })
    }

    /// Writes this many rows.
    ///
    /// # Errors
    /// [`CliError`] if they cannot be written.
    pub fn write_by(
        &mut self,
        rows: u64,
        write: impl FnOnce(&mut PartWriter) -> io::Result<()>,
    ) -> Result<(), CliError> {
        self.rows += rows;
        write(&mut self.writer).map_err(|error| wrong(&self.path, error))
    }

    /// Gives it its name, once it is whole and durable.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be written.
    pub fn end(self, dir: &Path) -> Result<ManifestFile, CliError> {
        let Self {
            kind,
            rows,
            name,
            path,
            writer,
        } = self;
        let ended = || {
            let hashing = writer.end()?;
            let (mut file, sha256, bytes) = hashing.end();
            file.flush()?;
            file.sync_all()?;
            fs::rename(&path, dir.join(&name))?;
            Ok::<_, io::Error>((sha256, bytes))
        };
        let (sha256, bytes) = ended().map_err(|error| wrong(&path, error))?;
        Ok(ManifestFile {
            name,
            of: kind,
            rows,
            bytes,
            sha256,
            redacted: 0,
        })
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

/// The error of a write.
pub fn wrong(path: &Path, error: impl std::fmt::Display) -> CliError {
    let path = path.display();
    CliError::failed(format!("{path} cannot be written: {error}"))
}
