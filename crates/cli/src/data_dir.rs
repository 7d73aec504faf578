//! The data folder and the store in it.

use std::{
    fs::{File, TryLockError},
    io::{
        self,
        ErrorKind::{AlreadyExists, PermissionDenied, StorageFull},
        Write as _,
    },
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use driftline_runtime::StoreDisk;
use driftline_store::{
    MIGRATIONS, Options, Root, SecretUrl, Store, StoreError, Target, Tx,
    backup::may_write,
    source,
    source_lease::{self, Lease},
};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::{config::StoreSection, error::CliError, output, socket::Client};

/// How long a command that takes the lock for a moment is waited for.
const BRIEFLY: Duration = Duration::from_secs(10);
/// The time between two looks at the lock.
const LOCK_LOOK: Duration = Duration::from_millis(20);

/// The data folder and its database.
#[derive(Debug, Clone)]
pub struct DataDir {
    data: PathBuf,
    target: Target,
    /// The most connections to PostgreSQL, if that is not the default.
    connections: Option<usize>,
    /// What intake leaves free on the disk, bytes, if that is not the default.
    disk_reserve: Option<u64>,
    shown: String,
    /// Whether it was said to be read only.
    reads_only: bool,
}

/// The data folder's lock: this process alone works with the folder until it
/// is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl DataDir {
    /// The configured folder, or the platform's default.
    ///
    /// # Errors
    /// [`CliError::Usage`] if there is neither.
    pub fn new(store: &StoreSection) -> Result<Self, CliError> {
        let data = match &store.data {
            Some(data) => data.clone(),
            None => directories::ProjectDirs::from("", "", "driftline")
                .map(|folders| folders.data_dir().to_owned())
                .ok_or_else(|| {
                    CliError::usage("this system has no folder for data; name one with --data")
                })?,
        };
        Self::check(store)?;
        let connections = store.database_pool;
        let Some(url) = &store.database_url else {
            return Ok(Self {
                connections,
                disk_reserve: store.disk_reserve,
                target: Target::Sqlite {
                    path: data.join(DATABASE),
                },
                data,
                shown: DATABASE.to_owned(),
                reads_only: store.read_only,
            });
        };
        let schema = store.database_schema.clone();
        let in_schema = schema.as_ref().map(|schema| format!(" schema {schema}"));
        Ok(Self {
            data,
            connections,
            reads_only: store.read_only,
            disk_reserve: store.disk_reserve,
            shown: without_secrets(url)? + &in_schema.unwrap_or_default(),
            target: Target::Postgres {
                url: SecretUrl::new(url.expose_secret()),
                schema,
            },
        })
    }

    /// Checks the address of the database and the number of connections to it, without connecting.
    ///
    /// # Errors
    /// [`CliError::Usage`] if one of them is invalid.
    pub fn check(store: &StoreSection) -> Result<(), CliError> {
        let allowed = Options::MIN_CONNECTIONS..=Options::MAX_CONNECTIONS;
        let refused = store
            .database_pool
            .filter(|number| !allowed.contains(number));
        if let Some(connections) = refused {
            return Err(CliError::usage(format!(
                "a database pool of {connections}: it must have {} to {} connections",
                allowed.start(),
                allowed.end()
            )));
        }
        store
            .database_url
            .as_ref()
            .map_or(Ok(()), |url| without_secrets(url).map(|_| ()))
    }

    /// The folder.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// The database.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What is there while a restore into the folder is not finished: the database file, on PostgreSQL
    /// an empty one.
    pub fn unfinished_restore(&self) -> PathBuf {
        self.data.join(format!("{DATABASE}.restoring"))
    }

    /// The database's file; `None` on PostgreSQL.
    pub fn database_file(&self) -> Option<&Path> {
        match &self.target {
            Target::Sqlite { path } => Some(path),
            Target::Postgres { .. } => None,
        }
    }

    /// Watches the disk of the database file for whoever fetches posts. PostgreSQL's data lie on another
    /// disk, which may be another machine's: there is nothing to watch here.
    pub fn watch_disk(&self) -> StoreDisk {
        self.database_file()
            .map_or_else(StoreDisk::default, |file| {
                StoreDisk::watch(file, self.disk_reserve)
            })
    }

    /// The database, without secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether other processes may work with the database too, as with PostgreSQL.
    pub fn is_shared(&self) -> bool {
        matches!(self.target, Target::Postgres { .. })
    }

    /// Where a server of this folder listens for commands.
    pub fn socket(&self) -> PathBuf {
        self.data.join("driftline.sock")
    }

    /// Checks that there may be anything to read here.
    ///
    /// # Errors
    /// [`CliError::NoStore`] if there is no database.
    pub fn require(&self) -> Result<(), CliError> {
        match &self.target {
            Target::Postgres { .. } => Ok(()),
            Target::Sqlite { path } => match path.try_exists() {
                Ok(true) => Ok(()),
                Err(error) if error.kind() == PermissionDenied => Err(CliError::Denied(format!(
                    "this user may not look into the data folder {}; run as its owner, or name another one with --data",
                    self.data.display()
                ))),
                Ok(false) | Err(_) if self.unfinished_restore().exists() => {
                    Err(CliError::NoStore(format!(
                        "there is no store in {}: a restore was not finished; run `driftline restore` again",
                        self.data.display()
                    )))
                }
                Ok(false) | Err(_) => Err(CliError::NoStore(format!(
                    "there is no store in {}; `driftline source add` or `driftline account create` makes one; or name another folder with --data",
                    self.data.display()
                ))),
            },
        }
    }

    /// Refuses a store that has not this program's schema. Changes nothing and needs no lock.
    ///
    /// # Errors
    /// [`CliError::Failed`] if the store cannot be read, or not by this program.
    pub async fn check_schema(&self) -> Result<(), CliError> {
        self.blocking(|target| Store::check(&target)).await
    }

    /// Makes the folder, for its owner only.
    ///
    /// # Errors
    /// [`CliError::Failed`] if that cannot be done.
    pub fn make(&self) -> Result<(), CliError> {
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&self.data);
        made.map_err(|error| {
            let data = self.data.display();
            let otherwise = "name another one with --data";
            match error.kind() {
                AlreadyExists => CliError::failed(format!(
                    "the data folder {data} cannot be made: it is a file; {otherwise}"
                )),
                PermissionDenied => CliError::Denied(format!(
                    "the data folder {data} cannot be made: this user may not write in the folder above; {otherwise}"
                )),
                _ => CliError::failed(format!(
                    "the data folder {data} cannot be made: {error}; {otherwise}"
                )),
            }
        })
    }

    /// Takes the folder's lock; `None` if another process has it.
    ///
    /// # Errors
    /// [`CliError::Failed`] if the folder cannot be written.
    pub fn try_lock(&self) -> Result<Option<Lock>, CliError> {
        if self.reads_only || self.is_read_only() {
            return Err(CliError::Denied(format!(
                "the store in {} is read-only, and this command may change it{}",
                self.data.display(),
                match self.reads_only {
                    true => ": leave --read-only out",
                    false => ": copy it to a folder where you may write",
                }
            )));
        }
        self.make()?;
        let path = self.data.join("lock");
        let wrong = |error: io::Error| {
            let path = path.display();
            match error.kind() {
                PermissionDenied => CliError::Denied(format!(
                    "the lock {path} cannot be taken: this user may not write it; run as the owner of the folder, or name another one with --data"
                )),
                StorageFull => CliError::failed(format!(
                    "the lock {path} cannot be taken: the disk is full; make room on it"
                )),
                _ => CliError::failed(format!("the lock {path} cannot be taken: {error}")),
            }
        };
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        let mut file = options.open(&path).map_err(wrong)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
        }
        let holder = format!("{}\n{}\n", std::process::id(), self.shown);
        file.set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(wrong)?;
        Ok(Some(Lock { _file: file }))
    }

    /// Takes the folder's lock; `otherwise` says what to do if another process has it. Commands that
    /// take it for a moment are waited for, so that they never keep a server from starting.
    ///
    /// # Errors
    /// [`CliError::Locked`] if another process keeps it, or [`CliError::Failed`] if the folder cannot be written.
    pub async fn lock(&self, otherwise: &str) -> Result<Lock, CliError> {
        let deadline = Instant::now() + BRIEFLY;
        let mut has_said = false;
        loop {
            if let Some(lock) = self.try_lock()? {
                return Ok(lock);
            }
            let (holder, data) = (self.holder().0, self.data.display());
            // Whoever takes commands stays.
            let stays = Client::connect(&self.socket()).await.is_ok();
            if stays || Instant::now() >= deadline {
                return Err(CliError::locked(format!(
                    "{holder} works with the data folder {data}{otherwise}, or name another folder with --data"
                )));
            }
            if !std::mem::replace(&mut has_said, true) {
                output::note(&format!(
                    "driftline: {holder} works with the data folder {data}; waiting for it for up to {} s",
                    BRIEFLY.as_secs()
                ));
            }
            sleep(LOCK_LOOK).await;
        }
    }

    /// Who holds the lock, and which database they said to use.
    pub fn holder(&self) -> (String, Option<String>) {
        let text = std::fs::read_to_string(self.data.join("lock")).unwrap_or_default();
        let mut lines = text.lines().map(str::to_owned);
        let process = match lines.next() {
            Some(id) if !id.is_empty() => format!("process {id}"),
            _ => "another process".to_owned(),
        };
        (process, lines.next())
    }

    /// Opens the store under the lock.
    ///
    /// # Errors
    /// [`CliError::Failed`] if it cannot be opened.
    pub async fn open(&self, _lock: &Lock) -> Result<Store, CliError> {
        let store = self.open_store().await?;
        if matches!(self.target, Target::Sqlite { .. }) {
            store.write(Root::none(), end_leases_of_the_dead).await?;
        }
        Ok(store)
    }

    /// Opens the store for work beside other processes, such as leases of nodes. A database file
    /// needs the folder's lock, PostgreSQL does not; `remedy` says what to do if another process
    /// has it.
    ///
    /// # Errors
    /// [`CliError::Failed`] if it cannot be opened, or is another process's file.
    pub async fn open_shared(&self, remedy: &str) -> Result<(Option<Lock>, Store), CliError> {
        let lock = match self.target {
            Target::Sqlite { .. } => Some(self.try_lock()?.ok_or_else(|| {
                CliError::locked(format!(
                    "{} works with {} already; {remedy}",
                    self.holder().0,
                    self.shown
                ))
            })?),
            Target::Postgres { .. } => None,
        };
        Ok((lock, self.open_store().await?))
    }

    /// Whether nothing may be written here, by the rights on the database file and its folder.
    pub fn is_read_only(&self) -> bool {
        match &self.target {
            Target::Sqlite { path } => path.exists() && !may_write(path),
            Target::Postgres { .. } => false,
        }
    }

    /// Opens the store to read it alone: without a lock, next to whoever writes.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be read, or not without changing it.
    pub async fn open_read_only(&self) -> Result<Store, CliError> {
        if self.is_shared() {
            return Err(CliError::usage(
                "--read-only is for database files: PostgreSQL is read beside others anyway",
            ));
        }
        self.open_by(|options| {
            Store::open_with(Options {
                read_only: true,
                ..options
            })
        })
        .await
    }

    async fn open_store(&self) -> Result<Store, CliError> {
        self.open_by(Store::open_with).await
    }

    /// Opens the store, whose distribution may have been stopped half-way, to distribute it.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be opened.
    pub async fn open_to_distribute(&self) -> Result<Store, CliError> {
        self.open_by(Store::open_to_distribute).await
    }

    async fn open_by(
        &self,
        open: impl FnOnce(Options) -> Result<Store, StoreError> + Send + 'static,
    ) -> Result<Store, CliError> {
        let unfinished = self.unfinished_restore();
        if unfinished.exists() {
            return Err(CliError::failed(format!(
                "a restore into {} was not finished: run `driftline restore` again, or remove {}",
                self.data.display(),
                unfinished.display()
            )));
        }
        let connections = self.connections;
        self.blocking(move |target| {
            let options = Options::new(target, MIGRATIONS);
            open(match connections {
                Some(connections) => options.with_connections(connections),
                None => options,
            })
        })
        .await
    }

    /// Does something with the store on a thread that may block.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(Target) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, CliError> {
        let target = self.target.clone();
        let done = tokio::task::spawn_blocking(move || work(target))
            .await
            .map_err(|error| CliError::failed(format!("the store was not opened: {error}")))?;
        done.map_err(|error| {
            let shown = &self.shown;
            let text = format!("the store {shown} cannot be opened: {error}");
            match error.is_denied() {
                true => CliError::Denied(text),
                false => CliError::Failed(text),
            }
        })
    }
}

/// Host, port and database of a PostgreSQL URL: what may be shown.
fn without_secrets(url: &SecretString) -> Result<String, CliError> {
    let url = Url::parse(url.expose_secret()).ok();
    let is_postgres = |url: &Url| matches!(url.scheme(), "postgres" | "postgresql");
    let url = url.filter(is_postgres).ok_or_else(|| {
        CliError::usage("invalid database URL: expected postgres://USER@HOST:PORT/DATABASE")
    })?;
    let host = url.host_str().unwrap_or("");
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    Ok(format!("postgres://{host}{port}{}", url.path()))
}

/// A database file belongs to the process with the folder's lock, so whoever
/// else has a lease is dead.
fn end_leases_of_the_dead(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    for source in source::list(tx)? {
        let key = source.key();
        if let Some(holding) = source.holding {
            let lease = Lease {
                source: key,
                fence: holding.fence,
                until_ms: holding.until_ms,
            };
            source_lease::release(tx, &lease)?;
        }
    }
    Ok(())
}

/// A name for this process's leases that no other process has.
pub fn holder_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    let places = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let host = places
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok());
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.unwrap_or_else(|| "host".into());
    let random = RandomState::new().hash_one(std::process::id());
    format!("{}-{}-{random:016x}", host.trim(), std::process::id())
}

const DATABASE: &str = "driftline.db";
