use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::cluster::Cluster;
use super::link::{Cuts, Link};
use super::named::{TEST_URL, prefix, run};
use super::nodes::{create_on_all, is_distributed};
use super::pooler::Pooler;
use super::url::{parts, with_parameters};
use crate::db::Db;
use crate::migrate::Migration;
use crate::options::{Options, SecretUrl, Target};
use crate::postgres::{Server, SessionPurpose};

/// An empty database for one test.
#[derive(Debug)]
pub struct Fresh {
    /// The kind of database, for messages.
    pub name: &'static str,
    /// The database. A SQLite file is removed when this value is dropped.
    pub target: Target,
    /// True if it is on the server that tests share, which may be distributed.
    pub is_on_shared_server: bool,
    _folder: Option<TempDir>,
}

impl Fresh {
    /// A new SQLite file in a folder of its own.
    pub fn sqlite() -> Fresh {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("test.db");
        Fresh {
            name: "SQLite",
            target: Target::Sqlite { path },
            is_on_shared_server: false,
            _folder: Some(folder),
        }
    }

    /// A new schema in this process's PostgreSQL cluster, which the first call starts. With
    /// `DRIFTLINE_TEST_POSTGRES_URL`, a new schema on that server, where it stays until it is
    /// dropped ([`super::NamedServer::drop_all`]).
    pub fn postgres() -> Fresh {
        let target = Target::Postgres {
            url: SecretUrl::new(shared_url()),
            schema: Some(unused_name()),
        };
        Fresh {
            name: "PostgreSQL",
            target,
            is_on_shared_server: true,
            _folder: None,
        }
    }

    /// A new schema in a cluster that belongs to one test.
    pub(super) fn in_cluster(url: &str) -> Fresh {
        let target = Target::Postgres {
            url: SecretUrl::new(url),
            schema: Some(unused_name()),
        };
        Fresh {
            name: "a PostgreSQL of its own",
            target,
            is_on_shared_server: false,
            _folder: None,
        }
    }

    /// Like [`Fresh::postgres`], through a PgBouncer with few connections that this process's tests
    /// share.
    pub fn pooled() -> Fresh {
        static POOLER: OnceLock<Pooler> = OnceLock::new();
        let pooler = POOLER.get_or_init(|| {
            Pooler::start(shared_url(), 3).unwrap_or_else(|error| panic!("{error}"))
        });
        let target = Target::Postgres {
            url: SecretUrl::new(pooler.url()),
            schema: Some(unused_name()),
        };
        Fresh {
            name: "PgBouncer",
            target,
            is_on_shared_server: true,
            _folder: None,
        }
    }

    /// The same database over a link that delays bytes and cuts connections. A SQLite file stays as
    /// it is.
    pub fn over_link(&self, delay: Duration, cuts: Cuts) -> Target {
        let Target::Postgres { url, schema } = &self.target else {
            return self.target.clone();
        };
        let link = Link::cutting(url.expose(), delay, cuts)
            .unwrap_or_else(|error| panic!("no link to {}: {error}", self.name));
        Target::Postgres {
            url: SecretUrl::new(link.url()),
            schema: schema.clone(),
        }
    }

    /// The same PostgreSQL database, by a URL with further parameters (`key=value&key=value`). A
    /// SQLite file stays as it is.
    pub fn with_parameters(&self, further: &str) -> Target {
        let Target::Postgres { url, schema } = &self.target else {
            return self.target.clone();
        };
        Target::Postgres {
            url: SecretUrl::new(with_parameters(url.expose(), further)),
            schema: schema.clone(),
        }
    }

    /// The options to open it.
    pub fn options(&self, migrations: &'static [Migration]) -> Options {
        Options::new(self.target.clone(), migrations)
    }

    /// Opens the database.
    ///
    /// # Panics
    /// If the database cannot be opened.
    pub fn open(&self, migrations: &'static [Migration]) -> Db {
        Db::open(self.options(migrations))
            .unwrap_or_else(|error| panic!("{} does not open: {error}", self.name))
    }
}

/// A fresh database of each kind, so that a test runs on both.
///
/// # Panics
/// If PostgreSQL cannot be started. The message says how to install it.
pub fn databases() -> Vec<Fresh> {
    vec![Fresh::sqlite(), Fresh::postgres()]
}

/// The URL of a new PostgreSQL database in the cluster of [`Fresh::postgres`], for programs that
/// accept no schema.
///
/// # Panics
/// If PostgreSQL cannot be started. The message says how to install it.
pub fn postgres_database() -> String {
    let name = unused_name();
    let new = name.clone();
    // On a plain thread, because the caller's thread may already drive a runtime.
    let created = thread::spawn(move || {
        if is_distributed() {
            return create_on_all(shared_url(), &new);
        }
        let create = format!("create database {new}");
        let server = Server::new(&SecretUrl::new(shared_url()), None)?;
        server.connect(SessionPurpose::Read)?.script(&create)
    });
    let created = created.join().expect("no panic");
    created.expect("a new database");
    parts(shared_url()).with_database(&name)
}

/// A name that no other test uses, in this process or another.
fn unused_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let prefix = run().map_or_else(|| "test_".to_owned(), |run| prefix(&run));
    format!("{prefix}{}_{}_{number}", process::id(), now.as_millis())
}

fn shared_url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    URL.get_or_init(|| match std::env::var(TEST_URL) {
        Ok(url) => url,
        Err(_) => {
            let started = Cluster::start().unwrap_or_else(|error| panic!("{error}"));
            CLUSTER.get_or_init(|| started).url().to_owned()
        }
    })
}
