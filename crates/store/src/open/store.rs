use std::ops::Deref;
#[cfg(feature = "testing")]
use std::sync::Arc;

use driftline_db::{Db, DbError, Dialect, Options, Target, Tx};

use super::distribution_state::{self, State};
#[cfg(feature = "testing")]
use crate::testing::statements::StatementWatch;
use crate::{error::StoreError, local_ids, open::schema::MIGRATIONS};

/// An open store: a database with this crate's schema. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
    #[cfg(feature = "testing")]
    _watch: Option<Arc<StatementWatch>>,
}

impl Store {
    /// Opens a store. An empty database gets the schema. Blocks meanwhile.
    ///
    /// # Errors
    /// [`StoreError::HalfDistributed`] if the distribution of the store was interrupted;
    /// [`StoreError::Db`] if the database fails.
    pub fn open(target: Target) -> Result<Store, StoreError> {
        Store::open_with(Options::new(target, MIGRATIONS))
    }

    /// Opens a store with other sizes of pools and queues than the default. The options' migrations
    /// must be [`MIGRATIONS`].
    ///
    /// # Errors
    /// [`StoreError::HalfDistributed`] if the distribution of the store was interrupted;
    /// [`StoreError::Db`] if the database fails.
    pub fn open_with(options: Options) -> Result<Store, StoreError> {
        Store::open_in(options, false)
    }

    /// Opens a store to distribute it, even if its distribution was interrupted.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn open_to_distribute(options: Options) -> Result<Store, StoreError> {
        Store::open_in(options, true)
    }

    fn open_in(options: Options, may_be_begun: bool) -> Result<Store, StoreError> {
        let db = Db::open(options)?;
        if db.is_read_only() {
            return Ok(Store {
                #[cfg(feature = "testing")]
                _watch: None,
                db,
            });
        }
        if !db.read_blocking(is_named)? {
            db.write_blocking(local_ids::root(), name_store)?;
        }
        match db.read_blocking(distribution_state::state)? {
            State::Single => {}
            State::Begun if !may_be_begun => return Err(StoreError::HalfDistributed),
            State::Begun => {}
            State::Distributed => db.set_distributed(),
        }
        Ok(Store {
            #[cfg(feature = "testing")]
            _watch: StatementWatch::begin(&db),
            db,
        })
    }

    /// Rejects a store whose schema is not exactly this program's. Changes nothing. Blocks while it
    /// reads.
    ///
    /// # Errors
    /// The same as those of [`Store::open`].
    pub fn check(target: &Target) -> Result<(), StoreError> {
        Ok(Db::check(target, MIGRATIONS)?)
    }
}

impl Deref for Store {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.db
    }
}

/// The random name that the store got at its creation. A copy of its files has the same name.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn nonce(tx: &mut Tx<'_>) -> Result<String, StoreError> {
    Ok(tx.query_one(
        "select nonce from store_identity where one = 1",
        &[],
        |row| row.text("nonce"),
    )?)
}

/// The random name of the store and of all stores that were restored from its backups. Replicas are bound to it.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lineage(tx: &mut Tx<'_>) -> Result<String, StoreError> {
    Ok(tx.query_one(
        "select lineage from store_identity where one = 1",
        &[],
        |row| row.text("lineage"),
    )?)
}

/// Writes a row and removes it, to check that the store accepts writes. Must be written below
/// [`Root::none`](driftline_db::Root::none).
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn touch(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    // The value changes: SQLite writes no page for an unchanged one, even if the disk is full.
    tx.execute(
        "insert into store_identity (one, nonce, lineage) values (0, 0, 0) on conflict (one) do nothing",
        &[],
    )?;
    tx.execute("delete from store_identity where one = 0", &[])?;
    Ok(())
}

fn is_named(tx: &mut Tx<'_>) -> Result<bool, DbError> {
    let found = tx.query_opt(
        "select 1 from store_identity where one = 1",
        &[],
        |_| Ok(()),
    )?;
    Ok(found.is_some())
}

fn name_store(tx: &mut Tx<'_>) -> Result<(), DbError> {
    let nonce = match tx.dialect() {
        Dialect::Sqlite => "lower(hex(randomblob(16)))",
        Dialect::Postgres => "replace(gen_random_uuid()::text, '-', '')",
    };
    let sql = format!(
        "insert into store_identity (one, nonce, lineage) values (1, {nonce}, {nonce}) on conflict (one) do nothing"
    );
    tx.execute_later(&sql, &[])
}
