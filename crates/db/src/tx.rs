use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use crate::batch::{self, Column, Form};
use crate::dialect::Dialect;
use crate::error::DbError;
use crate::options::Root;
use crate::postgres::Session;
use crate::row::Row;
use crate::script;
use crate::sqlite;
#[cfg(feature = "testing")]
use crate::testing::{Sender, StatementWatcher};
use crate::value::ToValue;

/// A transaction on either database.
///
/// An error from any method poisons it. Further calls then fail with [`DbError::Poisoned`], and the
/// transaction is rolled back even if the closure returns `Ok`.
pub struct Tx<'a> {
    link: Link<'a>,
    poison: Option<DbError>,
    opening: Arc<str>,
    beside: Option<&'a dyn Beside>,
    at_end: Option<AtEnd>,
    number: i64,
    reserved: Range<i64>,
}

/// Runs transactions next to another one.
pub(crate) trait Beside {
    /// True if the database is distributed.
    fn is_distributed(&self) -> bool;

    /// Runs a job over another connection, and commits it unless it fails.
    fn apart(&self, job: &mut ApartJob<'_>) -> Result<(), DbError>;

    /// The watcher of each statement.
    #[cfg(feature = "testing")]
    fn watcher(&self) -> Option<&StatementWatcher>;
}

/// A job of [`Tx::apart`].
pub(crate) type ApartJob<'a> = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + 'a;

/// A job of [`Tx::at_end`].
pub(crate) type AtEnd = Box<dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send>;

/// The rows of a sent query that have not been read: see [`Tx::query_later`].
#[must_use = "the rows are read by `Tx::rows`"]
pub struct PendingRows<'r, T>(Pending<'r, T>);

enum Pending<'r, T> {
    Read(Vec<T>),
    Sent { ticket: u64, row: ReadRow<'r, T> },
}

type ReadRow<'r, T> = Box<dyn FnMut(&Row<'_>) -> Result<T, DbError> + 'r>;

enum Link<'a> {
    Sqlite(&'a rusqlite::Connection),
    Postgres(&'a mut Session),
}

impl<'a> Tx<'a> {
    /// Runs a statement that returns no rows. Returns the number of rows that it changed.
    ///
    /// # Errors
    /// [`DbError`] if the statement fails; [`DbError::Poisoned`] after an earlier error.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute(&mut self, sql: &str, params: &[&dyn ToValue]) -> Result<u64, DbError> {
        self.run(sql, params, &[], Form::Single, false)
    }

    /// Runs a statement that returns no rows, without waiting for its outcome. It runs at the
    /// latest before the next answer or the commit, which fails if the statement fails. On
    /// PostgreSQL it is sent with the next awaited statement, so it costs no round trip of its own.
    ///
    /// # Errors
    /// [`DbError`] if the statement is invalid, or fails at once; [`DbError::Poisoned`] after an
    /// earlier error.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute_later(&mut self, sql: &str, params: &[&dyn ToValue]) -> Result<(), DbError> {
        self.run(sql, params, &[], Form::Single, true).map(|_| ())
    }

    /// Runs a query and reads each row.
    ///
    /// # Errors
    /// [`DbError`] if the query fails, or `row` does; [`DbError::Poisoned`] after an earlier error.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        self.collect(sql, params, &[], Form::Single, row)
    }

    /// Runs a query that returns at most one row.
    ///
    /// # Errors
    /// [`DbError::TooManyRows`] if it returns more than one row. Otherwise the same as those of
    /// [`Tx::query`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query_opt<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        mut row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Option<T>, DbError> {
        let mut found = None;
        self.each(sql, params, &[], Form::Single, &mut |read| {
            if found.is_some() {
                return Err(DbError::TooManyRows);
            }
            found = Some(row(read)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Runs a query that returns exactly one row.
    ///
    /// # Errors
    /// [`DbError::NoRow`] or [`DbError::TooManyRows`] if it does not. Otherwise the same as those
    /// of [`Tx::query`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query_one<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        match self.query_opt(sql, params, row)? {
            Some(found) => Ok(found),
            None => self.guard(|_| Err(DbError::NoRow)),
        }
    }

    /// Runs a query whose rows are read later, by [`Tx::rows`]. On PostgreSQL it is sent with the
    /// next awaited statement: independent queries together cost one round trip. Queries run in the
    /// order of the calls.
    ///
    /// # Errors
    /// [`DbError`] if the query is invalid, or fails at once; [`DbError::Poisoned`] after an
    /// earlier error.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query_later<'r, T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError> + 'r,
    ) -> Result<PendingRows<'r, T>, DbError> {
        self.collect_later(sql, params, &[], Form::Single, row)
    }

    /// Like [`Tx::query_each`], later: see [`Tx::query_later`].
    ///
    /// # Errors
    /// The same as those of [`Tx::query_later`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query_each_later<'r, T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError> + 'r,
    ) -> Result<PendingRows<'r, T>, DbError> {
        self.collect_later(sql, params, columns, Form::LookUp, row)
    }

    /// Reads the rows of a query that this transaction has run by [`Tx::query_later`].
    ///
    /// # Errors
    /// [`DbError`] if the query fails, or the reading of a row does; [`DbError::Poisoned`] after an
    /// earlier error.
    pub fn rows<T>(&mut self, pending: PendingRows<'_, T>) -> Result<Vec<T>, DbError> {
        let (ticket, mut row) = match pending.0 {
            Pending::Read(rows) => return Ok(rows),
            Pending::Sent { ticket, row } => (ticket, row),
        };
        let mut found = Vec::new();
        self.guard(|link| match link {
            Link::Sqlite(_) => Err(DbError::Type("these rows are of another database".into())),
            Link::Postgres(session) => session.answer(ticket, &mut |read| {
                found.push(row(read)?);
                Ok(())
            }),
        })?;
        Ok(found)
    }

    /// Runs a statement for every row of a batch. Returns the number of rows that it changed in
    /// all.
    ///
    /// The batch appears in the text in one of these forms:
    /// - `insert into t(a, b) {rows} on conflict (a) do nothing`: its rows as they are.
    /// - `{rows as r(a, b)}`: as a table with named columns, wherever a table may appear, such as
    ///   `update t set x = r.x from {rows as r(id, x)} where t.id = r.id`, or `delete from t where
    /// (a, b) in (select a, b from {rows as r(a, b)})`, or `insert into t(s, a) select $1, r.a from
    /// {rows as r(a)} where true on conflict (s, a) do nothing` (SQLite needs the `where true`
    ///   before an `on conflict`).
    ///
    /// `params` are `$1`, `$2`… as elsewhere. Numbers never refer to the batch.
    ///
    /// SQLite runs the statement row by row and PostgreSQL once for all rows. The same result on
    /// both requires that
    /// - no two rows have the same key (an upsert of both is an error on PostgreSQL only);
    /// - no row's outcome depends on another row's, and no aggregate spans rows;
    /// - the caller ignores the order of returned rows.
    ///
    /// A batch without rows does nothing.
    ///
    /// # Errors
    /// The same as those of [`Tx::execute`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute_many(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
    ) -> Result<u64, DbError> {
        self.run(sql, params, columns, Form::Batch, false)
    }

    /// Like [`Tx::execute_many`], later: see [`Tx::execute_later`].
    ///
    /// # Errors
    /// The same as those of [`Tx::execute_later`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute_many_later(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
    ) -> Result<(), DbError> {
        self.run(sql, params, columns, Form::Batch, true)
            .map(|_| ())
    }

    /// Runs a query that returns at most one row for each row of a batch. The query names the
    /// values of the batch's row `{row 1}`, `{row 2}`…, for example
    /// `select x from t where s = $1 and id = {row 1}`.
    ///
    /// Each row is looked up separately, through the index that fits the conditions. With a join,
    /// PostgreSQL could choose to read the whole table instead. It would do so, and continue to, if
    /// the plan was made while the table was small or had no statistics.
    ///
    /// # Errors
    /// The same as those of [`Tx::query`].
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query_each<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        self.collect(sql, params, columns, Form::LookUp, row)
    }

    /// The kind of database. Prefer the words of [`Dialect`] to this.
    pub fn dialect(&self) -> Dialect {
        self.link.dialect()
    }

    /// The random name of this opening of the database, 32 hexadecimal digits. It is the same in
    /// all transactions of a [`crate::Db`].
    pub fn opening(&self) -> Arc<str> {
        Arc::clone(&self.opening)
    }

    pub(crate) fn sqlite(connection: &'a rusqlite::Connection) -> Tx<'a> {
        Tx::over(Link::Sqlite(connection))
    }

    pub(crate) fn postgres(session: &'a mut Session) -> Tx<'a> {
        Tx::over(Link::Postgres(session))
    }

    fn over(link: Link<'a>) -> Tx<'a> {
        Tx {
            link,
            poison: None,
            opening: "".into(),
            beside: None,
            at_end: None,
            number: (RandomState::new().hash_one(0) >> 1).cast_signed(),
            reserved: 0..0,
        }
    }

    pub(crate) fn beside(mut self, beside: &'a dyn Beside) -> Tx<'a> {
        self.beside = Some(beside);
        self
    }

    pub(crate) fn take_at_end(&mut self) -> Option<AtEnd> {
        self.at_end.take()
    }

    /// True if the database is distributed: see [`crate::Db::set_distributed`].
    pub fn is_distributed(&self) -> bool {
        self.beside.is_some_and(Beside::is_distributed)
    }

    /// A random positive number of this transaction.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Keeps consecutive numbers for [`Tx::take_reserved`], in place of those that it had.
    pub fn reserve(&mut self, numbers: Range<i64>) {
        self.reserved = numbers;
    }

    /// Takes the next reserved numbers; returns the first. `None` if there are fewer: then all that are left are dropped, so
    /// that no later number is below one that the caller gets elsewhere.
    pub fn take_reserved(&mut self, count: i64) -> Option<i64> {
        let first = self.reserved.start;
        let end = first
            .checked_add(count)
            .filter(|end| *end <= self.reserved.end);
        self.reserved.start = end.unwrap_or(self.reserved.end);
        end.map(|_| first)
    }

    /// True if [`Tx::apart`] may be used without need. Behind a connection pooler all of its connections could wait for each
    /// other.
    pub fn may_run_apart(&self) -> bool {
        match &self.link {
            Link::Sqlite(_) => false,
            Link::Postgres(session) => {
                self.is_distributed() || (self.beside.is_some() && !session.is_pooled())
            }
        }
    }

    /// Runs a job in a transaction of its own over another connection. That transaction is
    /// committed when this returns, independently of the outcome of this one. The pending locks of
    /// this transaction are taken first. For PostgreSQL only: see [`Tx::may_run_apart`].
    ///
    /// The job must not wait for a lock of this transaction: no server would notice the deadlock.
    ///
    /// # Errors
    /// The error of the job. [`DbError`] if the database is SQLite, or the other transaction fails.
    pub fn apart<T>(
        &mut self,
        mut job: impl FnMut(&mut Tx<'_>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let beside = self.beside;
        self.guard(|link| {
            let (Link::Postgres(session), Some(beside)) = (link, beside) else {
                return Err(DbError::Type("this database has one writer".into()));
            };
            session.take_locks()?;
            let mut done = None;
            beside.apart(&mut |tx| {
                done = Some(job(tx)?);
                Ok(())
            })?;
            done.ok_or(DbError::Closed)
        })
    }

    /// Runs a job in a transaction of its own when this one has ended, committed or not, and before
    /// the caller gets the answer. The job does not run if the outcome of this transaction is
    /// unknown. There is only one such job: a second one is not run. For a distributed database
    /// only.
    pub fn at_end(&mut self, job: impl FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send + 'static) {
        self.at_end.get_or_insert_with(|| Box::new(job));
    }

    /// Locks a row until the commit, like the write's root. The lock is taken at the latest before
    /// the next answer. All writes must lock rows in one order.
    ///
    /// # Errors
    /// [`DbError::RootMissing`] if the row does not exist, which may surface at a later call or the
    /// commit; [`DbError::Poisoned`] after an earlier error.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn lock_later(&mut self, row: Root) -> Result<(), DbError> {
        self.lock_root(row)
    }

    /// Begins a job's work: sets the name of the opening, and locks its root.
    #[cfg_attr(feature = "testing", track_caller)]
    pub(crate) fn enter(&mut self, opening: &Arc<str>, root: Root) -> Result<(), DbError> {
        self.opening = Arc::clone(opening);
        self.lock_root(root)
    }

    /// The first error.
    pub(crate) fn poison(&self) -> Option<&DbError> {
        self.poison.as_ref()
    }

    #[cfg_attr(feature = "testing", track_caller)]
    fn lock_root(&mut self, root: Root) -> Result<(), DbError> {
        let Some(root) = root.0 else {
            return Ok(());
        };
        let (table, column) = (root.table, root.key_column);
        let mut sql = format!("select 1 from {table} where {column} = $1");
        let mut key: Vec<&dyn ToValue> = vec![&root.key];
        if let Some((column, within)) = &root.within {
            sql.push_str(&format!(" and {column} = $2"));
            key.push(within);
        }
        let missing = DbError::RootMissing(table);
        #[cfg(feature = "testing")]
        let sender = Sender::new(self.beside);
        self.guard(|link| match link {
            Link::Sqlite(connection) => {
                let mut found = Err(missing);
                sqlite::each(connection, &sql, &key, &[], &mut |_| {
                    found = Ok(());
                    Ok(())
                })?;
                found
            }
            Link::Postgres(session) => {
                sql.push_str(" for update");
                #[cfg(feature = "testing")]
                sender.sends(&sql, &[]);
                session.require_later(&sql, &key, missing)
            }
        })
    }

    /// Runs statements without parameters, as they are.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DbError> {
        self.guard(|link| {
            let sql = link.dialect().expand(sql)?;
            match link {
                Link::Sqlite(connection) => sqlite::script(connection, &sql),
                // One by one, because Citus forwards a command with all that was sent with it.
                Link::Postgres(session) => {
                    script::statements(&sql).try_for_each(|one| session.script(one))
                }
            }
        })
    }

    /// Runs a statement, or one for each row of a batch. Returns the number of rows that it
    /// changed, or 0 if it runs later.
    #[cfg_attr(feature = "testing", track_caller)]
    fn run(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        form: Form,
        is_later: bool,
    ) -> Result<u64, DbError> {
        self.send(sql, params, columns, form, |link, sql| match link {
            _ if columns.first().is_some_and(Column::is_empty) => Ok(0),
            Link::Sqlite(connection) => sqlite::execute(connection, sql, params, columns),
            Link::Postgres(session) => session.execute(sql, params, columns, is_later),
        })
    }

    #[cfg_attr(feature = "testing", track_caller)]
    fn collect<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        form: Form,
        mut row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        let mut found = Vec::new();
        self.each(sql, params, columns, form, &mut |read| {
            found.push(row(read)?);
            Ok(())
        })?;
        Ok(found)
    }

    #[cfg_attr(feature = "testing", track_caller)]
    fn collect_later<'r, T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        form: Form,
        row: impl FnMut(&Row<'_>) -> Result<T, DbError> + 'r,
    ) -> Result<PendingRows<'r, T>, DbError> {
        let Link::Postgres(_) = self.link else {
            let rows = self.collect(sql, params, columns, form, row)?;
            return Ok(PendingRows(Pending::Read(rows)));
        };
        let pending = self.send(sql, params, columns, form, |link, sql| match link {
            Link::Postgres(session) if !columns.first().is_some_and(Column::is_empty) => {
                let ticket = session.query_later(sql, params, columns)?;
                let row = Box::new(row);
                Ok(Pending::Sent { ticket, row })
            }
            _ => Ok(Pending::Read(Vec::new())),
        })?;
        Ok(PendingRows(pending))
    }

    #[cfg_attr(feature = "testing", track_caller)]
    fn each(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        form: Form,
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        self.send(sql, params, columns, form, |link, sql| match link {
            _ if columns.first().is_some_and(Column::is_empty) => Ok(()),
            Link::Sqlite(connection) => sqlite::each(connection, sql, params, columns, row),
            Link::Postgres(session) => session.each(sql, params, columns, row),
        })
    }

    /// Checks a statement, writes it in the database's dialect and uses the link with it.
    #[cfg_attr(feature = "testing", track_caller)]
    fn send<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        form: Form,
        work: impl FnOnce(&mut Link<'a>, &str) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        #[cfg(feature = "testing")]
        let sender = Sender::new(self.beside);
        self.guard(|link| {
            batch::check(params, columns)?;
            let sql = batch::statement(link.dialect(), sql, params.len(), columns, form)?;
            #[cfg(feature = "testing")]
            sender.sends(&sql, columns);
            work(link, &sql)
        })
    }

    /// Runs all work with the link, so that no error is forgotten.
    fn guard<T>(
        &mut self,
        work: impl FnOnce(&mut Link<'a>) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        if let Some(first) = &self.poison {
            return Err(DbError::Poisoned(Box::new(first.clone())));
        }
        let result = work(&mut self.link);
        if let Err(error) = &result {
            self.poison = Some(error.clone());
        }
        result
    }
}

impl Link<'_> {
    fn dialect(&self) -> Dialect {
        match self {
            Link::Sqlite(_) => Dialect::Sqlite,
            Link::Postgres(_) => Dialect::Postgres,
        }
    }
}
