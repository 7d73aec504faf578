//! Filled databases.

use std::{path::PathBuf, sync::Arc};

use driftline_db::testing::Cluster;
use driftline_store::{SecretUrl, Target};
use postgres::{Client, NoTls};
use tempfile::TempDir;

use super::{super::fill, DatabaseName};
use crate::failure::Failure;

/// Where databases are made; they end with it.
pub(super) enum Server {
    Sqlite(TempDir),
    Postgres(Cluster),
}

/// Where a database is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    File(PathBuf),
    Url(String),
}

/// A filled database.
pub(super) struct Database {
    pub(super) name: DatabaseName,
    pub(super) place: Place,
    /// The IDs of its posts, ascending.
    pub(super) ids: Arc<Vec<i64>>,
}

impl Server {
    pub(super) fn start(name: DatabaseName) -> Result<Self, Failure> {
        Ok(match name {
            DatabaseName::Sqlite => Self::Sqlite(tempfile::tempdir()?),
            DatabaseName::Postgres => Self::Postgres(Cluster::start_with(&SETTINGS)?),
        })
    }

    /// Fills a new database.
    pub(super) fn fill(&self, posts: usize) -> Result<Database, Failure> {
        let (name, place, ids) = match self {
            Self::Sqlite(folder) => {
                let path = folder.path().join(format!("{posts}.db"));
                let filled = fill::timeline(&path, posts, AUTHORS)?;
                (DatabaseName::Sqlite, Place::File(path), filled.ids)
            }
            Self::Postgres(cluster) => {
                let name = format!("home_{posts}");
                let client = |url: &str| Client::connect(url, NoTls);
                client(cluster.url())?.batch_execute(&format!("create database {name}"))?;
                let (server, _) = cluster.url().rsplit_once('/').unwrap_or_default();
                let place = Place::Url(format!("{server}/{name}"));
                let ids = fill::fill(place.target(), posts, AUTHORS)?;
                client(&format!("{server}/{name}"))?.batch_execute("vacuum (analyze)")?;
                (DatabaseName::Postgres, place, ids)
            }
        };
        Ok(Database { name, place, ids })
    }
}

impl Place {
    /// As a place is written: a URL, or a path.
    pub(super) fn parse(text: &str) -> Self {
        match text.starts_with("postgres://") {
            true => Self::Url(text.to_owned()),
            false => Self::File(text.into()),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Url(url) => url.clone(),
        }
    }

    pub(super) fn target(&self) -> Target {
        match self {
            Self::File(path) => Target::Sqlite { path: path.clone() },
            Self::Url(url) => Target::Postgres {
                url: SecretUrl::new(url.as_str()),
                schema: None,
            },
        }
    }
}

impl Database {
    pub(super) fn target(&self) -> Target {
        self.place.target()
    }

    /// IDs below all of which there are full pages of both readers.
    pub(super) fn upper_ids(&self) -> Arc<Vec<i64>> {
        Arc::new(self.ids[self.ids.len() / 2..].to_vec())
    }
}

/// As many authors write in turn.
pub(super) const AUTHORS: i64 = 10_000;
/// What is read fits in memory.
const SETTINGS: [&str; 2] = ["shared_buffers=1GB", "max_wal_size=8GB"];
