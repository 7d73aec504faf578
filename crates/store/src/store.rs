use driftline_db::{Db, DbError, Dialect, MigrationPlan, Options, Root, Stats, Target, Tx};

use crate::{error::StoreError, schema::MIGRATIONS};

/// An open store; clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct Store {
    db: Db,
}

impl Store {
    /// Opens a store and brings its schema up to date. Blocks while it does.
    pub fn open(target: Target) -> Result<Store, StoreError> {
        Store::open_with(Options::new(target, MIGRATIONS))
    }

    /// Opens a store with other sizes of pools and queues than the default ones; the options'
    /// migrations must be [`MIGRATIONS`].
    pub fn open_with(options: Options) -> Result<Store, StoreError> {
        let db = Db::open(options)?;
        db.write_blocking(Root::none(), name_store)?;
        Ok(Store { db })
    }

    /// What [`Store::open`] would migrate. Changes nothing; blocks while it reads.
    ///
    /// # Errors
    /// As of [`Store::open`], if the store cannot be read or would be refused.
    pub fn migration_plan(target: &Target) -> Result<MigrationPlan, StoreError> {
        Ok(Db::migration_plan(target, MIGRATIONS)?)
    }

    /// Runs `job` in a transaction that may write below `root`: see [`Db::write`].
    pub async fn write<T, E>(
        &self,
        root: Root,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.db.write(root, job).await
    }

    /// Runs `job` on a snapshot: see [`Db::read`].
    pub async fn read<T, E>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.db.read(job).await
    }

    /// [`Store::write`] for plain threads.
    pub fn write_blocking<T, E>(
        &self,
        root: Root,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.db.write_blocking(root, job)
    }

    /// [`Store::read`] for plain threads.
    pub fn read_blocking<T, E>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<DbError> + Send + 'static,
    {
        self.db.read_blocking(job)
    }

    /// Finishes what is queued and ends the store's threads.
    pub async fn close(&self) {
        self.db.close().await;
    }

    /// [`Store::close`] for plain threads.
    pub fn close_blocking(&self) {
        self.db.close_blocking();
    }

    /// What the database has done so far.
    pub fn stats(&self) -> Stats {
        self.db.stats()
    }

    /// The store's database.
    pub fn db(&self) -> &Db {
        &self.db
    }
}

/// The random name that the store got when it was created; a copy of its files has the same.
pub fn nonce(tx: &mut Tx<'_>) -> Result<String, StoreError> {
    let nonce = tx.query_one(
        "select nonce from store_identity where one = 1",
        &[],
        |row| row.text(0),
    )?;
    Ok(nonce)
}

/// Writes a value that is stored already, to find out whether the store takes writes. To be written
/// below [`Root::none`].
pub fn touch(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.execute("update store_identity set nonce = nonce where one = 1", &[])?;
    Ok(())
}

fn name_store(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    let random = match tx.dialect() {
        Dialect::Sqlite => "lower(hex(randomblob(16)))",
        Dialect::Postgres => "replace(gen_random_uuid()::text, '-', '')",
    };
    tx.execute(
        &format!(
            "insert into store_identity (one, nonce) values (1, {random})
             on conflict (one) do nothing"
        ),
        &[],
    )?;
    Ok(())
}
