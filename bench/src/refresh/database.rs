//! Filled databases, and fresh copies of them for each measurement.

use std::{
    fs,
    path::{Path, PathBuf},
};

use driftline_db::testing::Cluster;
use driftline_store::{InstanceId, SecretUrl, Store, Target};
use postgres::{Client, NoTls};
use tempfile::TempDir;

use super::fill::{self, Width};
use crate::failure::Failure;

/// A filled SQLite file.
pub(super) struct SqliteFile {
    folder: TempDir,
    pub(super) instance: InstanceId,
}

impl SqliteFile {
    /// Fills a new file.
    pub(super) fn fill(posts: u64, width: Width) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join(NAME);
        let store = Store::open(Target::Sqlite { path })?;
        let instance = fill::due_posts(&store, posts, width)?;
        store.close_blocking();
        Ok(Self { folder, instance })
    }

    /// The file itself.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    /// The store in it.
    pub(super) fn store(&self) -> Result<Store, Failure> {
        let path = self.path();
        Ok(Store::open(Target::Sqlite { path })?)
    }

    pub(super) fn megabytes(&self) -> Result<u64, Failure> {
        Ok(fs::metadata(self.path())?.len() / 1_000_000)
    }

    /// A copy that ends with what is returned.
    pub(super) fn copy(&self) -> Result<SqliteCopy, Failure> {
        let folder = tempfile::tempdir_in(self.folder.path())?;
        let path = folder.path().join(NAME);
        fs::copy(self.path(), &path)?;
        // Else the system would write the copy while its use is measured.
        fs::File::open(&path)?.sync_all()?;
        Ok(SqliteCopy {
            path,
            _folder: folder,
        })
    }
}

/// A copy of a filled file.
pub(super) struct SqliteCopy {
    path: PathBuf,
    _folder: TempDir,
}

impl SqliteCopy {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn store(&self) -> Result<Store, Failure> {
        Ok(Store::open(Target::Sqlite {
            path: self.path.clone(),
        })?)
    }
}

/// A cluster of this process's own.
pub(super) struct Postgres {
    cluster: Cluster,
}

/// A filled database of a cluster.
pub(super) struct Filled {
    name: String,
    pub(super) instance: InstanceId,
}

impl Postgres {
    pub(super) fn start() -> Result<Self, Failure> {
        Ok(Self {
            cluster: Cluster::start()?,
        })
    }

    /// Fills a new database.
    pub(super) fn fill(&self, name: &str, posts: u64, width: Width) -> Result<Filled, Failure> {
        self.admin(&format!("create database {name}"))?;
        let store = self.store(name)?;
        let instance = fill::due_posts(&store, posts, width)?;
        store.close_blocking();
        self.client(name)?.batch_execute("vacuum (analyze)")?;
        Ok(Filled {
            name: name.to_owned(),
            instance,
        })
    }

    /// Makes a fresh copy of a filled database, under this name.
    pub(super) fn copy(&self, filled: &Filled, name: &str) -> Result<(), Failure> {
        self.admin(&format!("drop database if exists {name}"))?;
        let from = &filled.name;
        self.admin(&format!(
            "create database {name} template {from} strategy file_copy"
        ))?;
        // Else it would be written while its use is measured.
        self.admin("checkpoint")
    }

    pub(super) fn drop(&self, name: &str) -> Result<(), Failure> {
        self.admin(&format!("drop database if exists {name}"))
    }

    pub(super) fn megabytes(&self, filled: &Filled) -> Result<i64, Failure> {
        let sql = "select pg_database_size(current_database()) / 1000000";
        Ok(self.client(&filled.name)?.query_one(sql, &[])?.get(0))
    }

    /// The URL of one of its databases.
    pub(super) fn url(&self, name: &str) -> String {
        let url = self.cluster.url();
        match url.rsplit_once('/') {
            Some((server, _)) => format!("{server}/{name}"),
            None => url.to_owned(),
        }
    }

    pub(super) fn store(&self, name: &str) -> Result<Store, Failure> {
        Ok(Store::open(Target::Postgres {
            url: SecretUrl::new(self.url(name)),
            schema: None,
        })?)
    }

    fn client(&self, name: &str) -> Result<Client, Failure> {
        Ok(Client::connect(&self.url(name), NoTls)?)
    }

    fn admin(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.client("postgres")?.batch_execute(sql)?)
    }
}

impl Filled {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

const NAME: &str = "driftline.db";
