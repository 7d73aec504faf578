//! What a backup holds.

use std::{fs, io, path::Path};

use driftline_store::backup::{self, AppliedMigration, CopyKind, Snapshot, TableDigest};
use serde::{Deserialize, Serialize};

use crate::{checksum, durable, error::CliError};

/// A backup's manifest, `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The form of the manifest.
    pub manifest_version: u32,
    /// The program that wrote it.
    pub driftline: String,
    /// When the snapshot was taken, Unix ms.
    pub taken_at_ms: i64,
    /// Which database it is of.
    pub database: Database,
    /// The schema of a PostgreSQL database.
    pub schema: Option<String>,
    /// The migrations that were applied, in order; the last one's version is that of the store.
    pub migrations: Vec<ManifestMigration>,
    /// The tables, each with its rows.
    pub tables: Vec<ManifestTable>,
    /// The files, without the manifest.
    pub files: Vec<ManifestFile>,
    /// Whether the key of stored credentials is among them: then the backup is a secret.
    pub has_key: bool,
}

/// Which database a backup is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Database {
    /// A database file, as it is.
    Sqlite,
    /// An archive of `pg_dump`.
    Postgresql,
}

/// A migration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestMigration {
    version: i64,
    name: String,
    compat_version: i64,
    digest: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestTable {
    name: String,
    rows: u64,
    /// The sum of its rows' SHA-256.
    digest: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its path in the folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
}

impl Database {
    /// The name of the copy in the folder.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Sqlite => "driftline.db",
            Self::Postgresql => "driftline.pgdump",
        }
    }

    /// How the copy is read.
    pub const fn kind(self) -> CopyKind {
        match self {
            Self::Sqlite => CopyKind::File,
            Self::Postgresql => CopyKind::Dump,
        }
    }
}

impl Manifest {
    /// The form that this program writes.
    const VERSION: u32 = 2;
    /// Its name in the folder.
    pub const NAME: &str = "manifest.json";

    /// Of a snapshot, without files yet.
    pub fn new(database: Database, taken_at_ms: i64, snapshot: &Snapshot) -> Self {
        let migrations = snapshot.migrations.iter();
        let tables = snapshot.tables.iter();
        Self {
            manifest_version: Self::VERSION,
            driftline: env!("CARGO_PKG_VERSION").to_owned(),
            taken_at_ms,
            database,
            schema: snapshot.schema.clone(),
            migrations: migrations
                .map(|migration| ManifestMigration {
                    version: migration.version,
                    name: migration.name.clone(),
                    compat_version: migration.compat_version,
                    digest: migration.digest.clone(),
                })
                .collect(),
            tables: tables
                .map(|table| ManifestTable {
                    name: table.name.clone(),
                    rows: table.rows,
                    digest: table.digest.clone(),
                })
                .collect(),
            files: Vec::new(),
            has_key: false,
        }
    }

    /// The snapshot that it describes.
    pub fn snapshot(&self) -> Snapshot {
        let migrations = self.migrations.iter();
        let tables = self.tables.iter();
        Snapshot {
            schema: self.schema.clone(),
            migrations: migrations
                .map(|migration| AppliedMigration {
                    version: migration.version,
                    name: migration.name.clone(),
                    compat_version: migration.compat_version,
                    digest: migration.digest.clone(),
                })
                .collect(),
            tables: tables
                .map(|table| TableDigest {
                    name: table.name.clone(),
                    rows: table.rows,
                    digest: table.digest.clone(),
                })
                .collect(),
        }
    }

    /// All rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// The size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Adds a file of the folder, as it is there.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn add(&mut self, folder: &Path, name: &str) -> io::Result<()> {
        let (bytes, sha256) = checksum::of_file(&folder.join(name))?;
        self.files.push(ManifestFile {
            name: name.to_owned(),
            bytes,
            sha256,
        });
        Ok(())
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`CliError`] if there is none, or if its form or the store's schema is not this program's.
    pub fn read(folder: &Path) -> Result<Self, CliError> {
        let path = folder.join(Self::NAME);
        let shown = path.display();
        let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CliError::usage(format!(
                "{} is no backup: it has no {}",
                folder.display(),
                Self::NAME
            )),
            _ => CliError::failed(format!("{shown} cannot be read: {error}")),
        })?;
        let version: Version = serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!("{shown} is no backup's manifest: {error}"))
        })?;
        if version.manifest_version != Self::VERSION {
            return Err(CliError::failed(format!(
                "{shown} is of form {}, and this program reads form {}: use the driftline that wrote it",
                version.manifest_version,
                Self::VERSION
            )));
        }
        let manifest: Self = serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!("{shown} is no backup's manifest: {error}"))
        })?;
        let is_inside = |file: &ManifestFile| {
            Path::new(&file.name)
                .components()
                .all(|part| matches!(part, std::path::Component::Normal(_)))
        };
        if let Some(file) = manifest.files.iter().find(|file| !is_inside(file)) {
            return Err(CliError::failed(format!(
                "{shown} names {:?}, which is no file of the backup",
                file.name
            )));
        }
        match backup::check(&manifest.snapshot()) {
            Ok(()) => Ok(manifest),
            Err(error) => Err(CliError::failed(format!(
                "the backup in {} cannot be used: {error}",
                folder.display()
            ))),
        }
    }

    /// Writes it into the folder.
    ///
    /// # Errors
    /// That of the write.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        durable::replace_json(&folder.join(Self::NAME), self)
    }

    /// What is wrong with the files.
    pub fn faults(&self, folder: &Path) -> Vec<String> {
        let faults = self.files.iter().filter_map(|file| {
            let path = folder.join(&file.name);
            let fault = checksum::difference(&path, file.bytes, &file.sha256);
            let fault = fault.unwrap_or_else(|error| Some(error.to_string()))?;
            Some(format!("{}: {fault}", file.name))
        });
        faults.collect()
    }
}

/// What every form has.
#[derive(Deserialize)]
struct Version {
    manifest_version: u32,
}
