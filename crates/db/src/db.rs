use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
#[cfg(feature = "testing")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pollster::block_on;
use tokio::sync::watch;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::job::Call;
use crate::migrate::{self, MAX_OPENING_WAIT, Migration, migrate, when_free};
use crate::options::{Options, Root, SecretUrl, Target};
use crate::postgres::{Pool, Server, SessionPurpose};
use crate::queue::Queue;
use crate::space::VacuumRequest;
use crate::sqlite;
use crate::stats::{Counters, Stats};
#[cfg(feature = "testing")]
use crate::testing::StatementWatcher;
use crate::tx::Tx;

/// An open database. Clones are handles to the same one.
///
/// Its threads end after [`Db::close`], or some time after the last handle is dropped.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    dialect: Dialect,
    /// See [`Tx::opening`].
    opening: Arc<str>,
    writes: Arc<Queue>,
    reads: Arc<Queue>,
    counters: Arc<Counters>,
    vacuum: Arc<VacuumRequest>,
    /// Each thread has a receiver until it ends.
    alive: watch::Sender<()>,
    /// Each connection that reads a SQLite file has a receiver until it is closed. The writer's
    /// connection is closed after them: the last one removes the log, and a reading connection may
    /// not.
    readers: watch::Sender<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The name of the database, if it is read-only.
    read_only: Option<String>,
    is_distributed: Arc<AtomicBool>,
    #[cfg(feature = "testing")]
    watcher: Arc<OnceLock<StatementWatcher>>,
}

impl Db {
    /// Opens a database and updates its schema. Blocks meanwhile.
    ///
    /// # Errors
    /// [`DbError::Open`] or [`DbError::Denied`] if the file or server cannot be used,
    /// [`DbError::Busy`] if another process holds it for too long. [`DbError::Newer`],
    /// [`DbError::OtherSchema`] or [`DbError::Migration`] if its schema does not fit or a migration
    /// fails.
    pub fn open(options: Options) -> Result<Db, DbError> {
        // The blocking PostgreSQL client must not be used on a caller's async thread.
        let inner = on_own_thread("driftline-db-open", move || Inner::open(&options))?;
        Ok(Db(Arc::new(inner)))
    }

    /// Rejects a database whose schema is not exactly the program's. Changes nothing and waits for
    /// no other process.
    ///
    /// # Errors
    /// [`DbError::OtherSchema`], [`DbError::Newer`] or [`DbError::Migration`] if the schema is
    /// another one. The same as those of [`Db::open`] if the database cannot be read.
    pub fn check(target: &Target, migrations: &'static [Migration]) -> Result<(), DbError> {
        let target = target.clone();
        on_own_thread("driftline-db-check", move || check(&target, migrations))
    }

    /// Runs `job` in a transaction that may write, on one of the database's threads. Commits if
    /// `job` returns `Ok` and no statement failed.
    ///
    /// `job` may run more than once (see [`DbError::Deadlock`]) but commits once. It must not block
    /// for anything but the database. If the future is dropped while the job is queued, the job is
    /// skipped. Once the job runs, it commits even without the future.
    ///
    /// # Errors
    /// The error of `job`. [`DbError::Denied`] if the database is read-only,
    /// [`DbError::RootMissing`] if the root does not exist, [`DbError::Closed`] after
    /// [`Db::close`]. Another [`DbError`] if a statement or the commit fails.
    pub async fn write<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        root: Root,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        if let Some(database) = &self.0.read_only {
            return Err(E::from(DbError::Denied(format!(
                "{database} is open read-only, and this command changes it: run as its owner, who may \
                 write to the file and its folder, and without --read-only"
            ))));
        }
        self.call(&self.0.writes, root, job).await
    }

    /// Runs `job` on a snapshot of the database, on one of its reading threads.
    ///
    /// # Errors
    /// The error of `job`. [`DbError::ReadOnly`] if it tries to write, [`DbError::Closed`] after
    /// [`Db::close`], another [`DbError`] if a statement fails.
    pub async fn read<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.call(&self.0.reads, Root::none(), job).await
    }

    /// [`Db::write`] for plain threads. Blocks until the answer arrives.
    ///
    /// # Errors
    /// The same as those of [`Db::write`].
    pub fn write_blocking<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        root: Root,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        block_on(self.write(root, job))
    }

    /// [`Db::read`] for plain threads. Blocks until the answer arrives.
    ///
    /// # Errors
    /// The same as those of [`Db::read`].
    pub fn read_blocking<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        block_on(self.read(job))
    }

    async fn call<T: Send + 'static, E: From<DbError> + Send + 'static>(
        &self,
        queue: &Queue,
        root: Root,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (job, answer) = Call::boxed(Arc::clone(&self.0.opening), root, job);
        queue.push(job).await?;
        answer
            .await
            .unwrap_or_else(|_| Err(E::from(DbError::Closed)))
    }

    /// Accepts no further jobs, finishes the queued ones, and waits for the threads to end.
    pub async fn close(&self) {
        self.0.stop();
        self.0.alive.closed().await;
        let threads = std::mem::take(&mut *lock(&self.0.threads));
        for thread in threads {
            // A thread drops its receiver as its last act.
            if thread.join().is_err() {
                tracing::error!("a database thread panicked");
            }
        }
    }

    /// [`Db::close`] for plain threads.
    pub fn close_blocking(&self) {
        block_on(self.close());
    }

    /// Rewrites the whole SQLite file without its free pages, and lets it return free pages from
    /// then on. Writes wait meanwhile; reads do not. The work needs room in the file's folder for
    /// two copies of the contents.
    ///
    /// # Errors
    /// [`DbError`] if the work fails, for example on a full disk, or if the database is not a file.
    /// Nothing has changed then.
    pub async fn vacuum(&self) -> Result<(), DbError> {
        if self.0.dialect == Dialect::Postgres {
            return Err(DbError::Other(
                "PostgreSQL compacts its tables itself".into(),
            ));
        }
        let answer = self.0.vacuum.place()?;
        // A write, so that the writer wakes up.
        self.write(Root::none(), |_| Ok::<_, DbError>(())).await?;
        answer.await.unwrap_or(Err(DbError::Closed))
    }

    /// Marks the tables' rows as distributed over several nodes, which share no snapshot. Writes
    /// may then use [`Tx::apart`] and [`Tx::at_end`] as needed, with up to twice as many connections.
    pub fn set_distributed(&self) {
        self.0.is_distributed.store(true, Ordering::Relaxed);
    }

    /// True after [`Db::set_distributed`].
    pub fn is_distributed(&self) -> bool {
        self.0.is_distributed.load(Ordering::Relaxed)
    }

    /// Calls `watcher` for each statement that transactions send to PostgreSQL from now on, except
    /// those that begin, configure and end a transaction. The first watcher stays. SQLite sends
    /// nothing.
    #[cfg(feature = "testing")]
    pub fn watch_statements(&self, watcher: StatementWatcher) {
        self.0.watcher.get_or_init(|| watcher);
    }

    /// True if every write is rejected.
    pub fn is_read_only(&self) -> bool {
        self.0.read_only.is_some()
    }

    /// The kind of database.
    pub fn dialect(&self) -> Dialect {
        self.0.dialect
    }

    /// The number of this process's commits since the database was opened. It changes after each
    /// commit, so readers in the same process need not poll.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.0.counters.commits()
    }

    /// Counters that are cheap enough to read at every scrape.
    pub fn stats(&self) -> Stats {
        Stats {
            write_queue: self.0.writes.len(),
            ..*self.0.counters.lock()
        }
    }
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db")
            .field("dialect", &self.0.dialect)
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn open(options: &Options) -> Result<Inner, DbError> {
        let dialect = match options.target {
            Target::Sqlite { .. } => Dialect::Sqlite,
            Target::Postgres { .. } => Dialect::Postgres,
        };
        let inner = Inner {
            dialect,
            opening: random_name().into(),
            writes: Arc::new(Queue::new(options.queue)),
            reads: Arc::new(Queue::new(options.queue)),
            counters: Arc::default(),
            vacuum: Arc::default(),
            alive: watch::Sender::new(()),
            readers: watch::Sender::new(()),
            threads: Mutex::default(),
            read_only: match &options.target {
                Target::Sqlite { path } if options.read_only => Some(path.display().to_string()),
                _ => None,
            },
            is_distributed: Arc::default(),
            #[cfg(feature = "testing")]
            watcher: Arc::default(),
        };
        match &options.target {
            Target::Sqlite { path } if options.read_only => {
                inner.start_sqlite_readers(options, path)?;
            }
            Target::Postgres { .. } if options.read_only => {
                return Err(DbError::Open(
                    "only a database file can be opened read-only".into(),
                ));
            }
            Target::Sqlite { path } => inner.start_sqlite(options, path)?,
            Target::Postgres { url, schema } => {
                inner.start_postgres(options, url, schema.as_deref())?;
            }
        }
        Ok(inner)
    }

    fn start_sqlite(&self, options: &Options, path: &Path) -> Result<(), DbError> {
        let writer = sqlite::open_writer(path, MAX_OPENING_WAIT)?;
        migrate(options.migrations, |step| {
            when_free(sqlite::HELD, MAX_OPENING_WAIT, || {
                sqlite::command(&writer, "begin immediate")
            })?;
            let result = step(&mut Tx::sqlite(&writer));
            if result.is_ok() {
                return sqlite::command(&writer, "commit");
            }
            // SQLite rolls back by itself if the disk is full. The error of the step is more
            // precise.
            let _ = sqlite::command(&writer, "rollback");
            result
        })?;
        for _ in 0..options.readers.max(1) {
            self.start_sqlite_reader(sqlite::open_reader(path)?)?;
        }
        let (queue, counters) = (Arc::clone(&self.writes), Arc::clone(&self.counters));
        let (vacuum, path) = (Arc::clone(&self.vacuum), path.to_owned());
        let readers = self.readers.clone();
        let group = options.group;
        self.start("driftline-db-write", move || {
            sqlite::write_all(&writer, &queue, group, &counters, || {
                vacuum.serve(|| sqlite::vacuum(&writer, &path));
            });
            block_on(readers.closed());
            drop(writer);
        })
    }

    /// Opens a file that is only read. Nothing is migrated.
    fn start_sqlite_readers(&self, options: &Options, path: &Path) -> Result<(), DbError> {
        for number in 0..options.readers.max(1) {
            let reader = sqlite::open_to_read(path)?;
            if number == 0 && !options.migrations.is_empty() {
                sqlite::command(&reader, "begin deferred")?;
                let checked = migrate::check(&mut Tx::sqlite(&reader), options.migrations);
                sqlite::command(&reader, "rollback")?;
                checked?;
            }
            self.start_sqlite_reader(reader)?;
        }
        Ok(())
    }

    fn start_sqlite_reader(&self, reader: rusqlite::Connection) -> Result<(), DbError> {
        let queue = Arc::clone(&self.reads);
        let open = self.readers.subscribe();
        self.start("driftline-db-read", move || {
            sqlite::read_all(&reader, &queue);
            drop(reader);
            drop(open);
        })
    }

    fn start_postgres(
        &self,
        options: &Options,
        url: &SecretUrl,
        schema: Option<&str>,
    ) -> Result<(), DbError> {
        let server = Server::new(url, schema)?;
        let mut session = server.saying_what_it_waits_for(|| server.prepare())?;
        migrate(options.migrations, |step| {
            for tries in 0.. {
                session.begin_migration(MAX_OPENING_WAIT)?;
                let mut tx = Tx::postgres(&mut session);
                let result = step(&mut tx);
                let cause = tx.poison().cloned();
                if result.is_ok() {
                    return session.commit();
                }
                session.roll_back();
                // The migration locks whole tables while other processes write to them.
                let is_contended =
                    matches!(cause, Some(DbError::Deadlock | DbError::Serialization));
                if !is_contended || tries == MIGRATION_RERUNS {
                    return result;
                }
                thread::sleep(Duration::from_millis(100 << tries));
            }
            Ok(())
        })?;
        drop(session);
        let max_idle = options.max_idle;
        for (purpose, name, queue, threads) in [
            (
                SessionPurpose::Write,
                "driftline-db-write",
                &self.writes,
                options.writers,
            ),
            (
                SessionPurpose::Read,
                "driftline-db-read",
                &self.reads,
                options.readers,
            ),
        ] {
            let (queue, counters) = (Arc::clone(queue), Arc::clone(&self.counters));
            let pool = Pool::new(
                server.clone(),
                purpose,
                queue,
                counters,
                Arc::clone(&self.is_distributed),
            );
            #[cfg(feature = "testing")]
            let pool = pool.watched_by(&self.watcher);
            let pool = Arc::new(pool);
            for _ in 0..threads.max(1) {
                let pool = Arc::clone(&pool);
                self.start(name, move || pool.run_all())?;
            }
            self.start("driftline-db-idle", move || pool.keep_small(max_idle))?;
        }
        Ok(())
    }

    /// Starts a thread. `work` owns its connection, which is dropped before the thread counts as
    /// ended.
    fn start(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), DbError> {
        let alive = self.alive.subscribe();
        let thread = spawn(name, move || {
            work();
            drop(alive);
        })?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    fn stop(&self) {
        self.reads.close();
        self.writes.close();
        for thread in &*lock(&self.threads) {
            thread.thread().unpark();
        }
    }
}

impl Drop for Inner {
    /// Also ends the threads of a database whose opening failed half-way.
    fn drop(&mut self) {
        self.stop();
    }
}

fn check(target: &Target, migrations: &[Migration]) -> Result<(), DbError> {
    match target {
        Target::Sqlite { path } => {
            let reader = sqlite::open_to_read(path)?;
            sqlite::command(&reader, "begin deferred")?;
            migrate::check(&mut Tx::sqlite(&reader), migrations)
        }
        Target::Postgres { url, schema } => {
            let server = Server::new(url, schema.as_deref())?;
            let mut session = server.connect(SessionPurpose::Migrate)?;
            session.begin("begin isolation level repeatable read read only");
            let checked = migrate::check(&mut Tx::postgres(&mut session), migrations);
            session.roll_back();
            checked
        }
    }
}

/// 32 random hexadecimal digits.
fn random_name() -> String {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random())
}

pub(crate) fn on_own_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    let done = spawn(name, work)?.join();
    done.map_err(|_| DbError::Panicked)?
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, DbError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| DbError::Open(format!("cannot start a thread: {error}")))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The number of attempts after a deadlock in a migration: about six seconds in all.
const MIGRATION_RERUNS: u32 = 5;
