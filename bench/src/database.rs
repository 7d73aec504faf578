//! Databases of both kinds, and copies of them.

use std::{fs, path::PathBuf};

use driftline_db::testing::Cluster;
use driftline_store::{SecretUrl, Store, Target};
use postgres::{Client, NoTls};
use tempfile::TempDir;

use crate::failure::Failure;

/// The maker of databases, which end with it.
pub(crate) enum Server {
    Sqlite(TempDir),
    Postgres(Cluster),
}

/// The file or the URL of a database.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    File(PathBuf),
    Url(String),
}

impl Server {
    pub(crate) fn sqlite() -> Result<Self, Failure> {
        Ok(Self::Sqlite(tempfile::tempdir()?))
    }

    /// A cluster whose reads fit in memory.
    pub(crate) fn postgres() -> Result<Self, Failure> {
        let settings = ["shared_buffers=1GB", "max_wal_size=8GB"];
        Ok(Self::Postgres(Cluster::start_with(&settings)?))
    }

    /// Its name in tables.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }

    /// A new database.
    pub(crate) fn create(&self, name: &str) -> Result<Place, Failure> {
        if let Self::Postgres(cluster) = self {
            let sql = format!("create database {name}");
            Client::connect(cluster.url(), NoTls)?.batch_execute(&sql)?;
        }
        Ok(self.place(name))
    }

    /// Makes a fresh copy of a filled database, under this name. It is written out: else that would be done
    /// while its use is measured.
    pub(crate) fn copy(&self, filled: &str, name: &str) -> Result<Place, Failure> {
        let copy = self.place(name);
        match (&self.place(filled), &copy, self) {
            (Place::File(from), Place::File(to), _) => {
                for suffix in ["-wal", "-shm"] {
                    let _ = fs::remove_file(format!("{}{suffix}", to.display()));
                }
                fs::copy(from, to)?;
                fs::File::open(to)?.sync_all()?;
            }
            (_, _, Self::Postgres(cluster)) => {
                let mut client = Client::connect(cluster.url(), NoTls)?;
                for sql in [
                    format!("drop database if exists {name}"),
                    format!("create database {name} template {filled} strategy file_copy"),
                    "checkpoint".to_owned(),
                ] {
                    client.batch_execute(&sql)?;
                }
            }
            _ => {}
        }
        Ok(copy)
    }

    fn place(&self, name: &str) -> Place {
        match self {
            Self::Sqlite(folder) => Place::File(folder.path().join(format!("{name}.db"))),
            Self::Postgres(cluster) => {
                let (server, _) = cluster.url().rsplit_once('/').unwrap_or_default();
                Place::Url(format!("{server}/{name}"))
            }
        }
    }
}

impl Place {
    /// As a place is written: a URL, or a path.
    pub(crate) fn parse(text: &str) -> Self {
        match text.starts_with("postgres://") {
            true => Self::Url(text.to_owned()),
            false => Self::File(text.into()),
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Url(url) => url.clone(),
        }
    }

    pub(crate) fn target(&self) -> Target {
        match self {
            Self::File(path) => Target::Sqlite { path: path.clone() },
            Self::Url(url) => postgres_target(url, None),
        }
    }

    pub(crate) fn open(&self) -> Result<Store, Failure> {
        Ok(Store::open(self.target())?)
    }

    /// Has the database gather its statistics once it is filled.
    pub(crate) fn settle(&self) -> Result<(), Failure> {
        Ok(match self {
            Self::File(path) => rusqlite::Connection::open(path)?
                .execute_batch("pragma optimize; pragma wal_checkpoint(truncate)")?,
            Self::Url(url) => Client::connect(url, NoTls)?.batch_execute("vacuum (analyze)")?,
        })
    }

    pub(crate) fn megabytes(&self) -> Result<u64, Failure> {
        Ok(match self {
            Self::File(path) => fs::metadata(path)?.len() / 1_000_000,
            Self::Url(url) => {
                let sql = "select pg_database_size(current_database()) / 1000000";
                let size: i64 = Client::connect(url, NoTls)?.query_one(sql, &[])?.get(0);
                size.unsigned_abs()
            }
        })
    }
}

/// A database of PostgreSQL, or a schema in it.
pub(crate) fn postgres_target(url: &str, schema: Option<String>) -> Target {
    Target::Postgres {
        url: SecretUrl::new(url),
        schema,
    }
}
