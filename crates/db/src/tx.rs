use std::hash::{BuildHasher, RandomState};
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
/// Any error from a method poisons it: further calls fail with [`DbError::Poisoned`], and it is
/// rolled back even if the closure returns `Ok`.
pub struct Tx<'a> {
    link: Link<'a>,
    poison: Option<DbError>,
    opening: Arc<str>,
    beside: Option<&'a dyn Beside>,
    at_end: Option<AtEnd>,
    number: i64,
}

/// Where transactions run beside another one.
pub(crate) trait Beside {
    /// Whether the database is distributed.
    fn is_distributed(&self) -> bool;

    /// Runs a job over another connection, and commits it unless it fails.
    fn apart(&self, job: &mut ApartJob<'_>) -> Result<(), DbError>;

    /// Who is told of each statement.
    #[cfg(feature = "testing")]
    fn watcher(&self) -> Option<&StatementWatcher>;
}

/// A job of [`Tx::apart`].
pub(crate) type ApartJob<'a> = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + 'a;

/// A job of [`Tx::at_end`].
pub(crate) type AtEnd = Box<dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send>;

/// The rows of a query that a transaction asked, and has not read: see [`Tx::query_later`].
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
    /// Runs a statement that gives no rows; returns how many it changed.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute(&mut self, sql: &str, params: &[&dyn ToValue]) -> Result<u64, DbError> {
        self.run(sql, params, &[], Form::Single, false)
    }

    /// Runs a statement that gives no rows and whose outcome is not awaited: at the latest
    /// before the next answer or the commit, which fails if it does. On PostgreSQL it travels
    /// together with what comes next and so costs no round trip of its own.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn execute_later(&mut self, sql: &str, params: &[&dyn ToValue]) -> Result<(), DbError> {
        self.run(sql, params, &[], Form::Single, true).map(|_| ())
    }

    /// Runs a query and reads each row.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn query<T>(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        row: impl FnMut(&Row<'_>) -> Result<T, DbError>,
    ) -> Result<Vec<T>, DbError> {
        self.collect(sql, params, &[], Form::Single, row)
    }

    /// Runs a query that gives one row or none; more is [`DbError::TooManyRows`].
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

    /// Runs a query that gives exactly one row; none is [`DbError::NoRow`].
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

    /// Runs a query whose rows are read later, by [`Tx::rows`]. On PostgreSQL it travels together with
    /// what comes next: queries of which none needs another's answer cost one round trip together.
    /// It runs in the order in which it was asked.
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

    /// The rows of a query that this transaction asked earlier.
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

    /// Runs a statement for every row of a batch; returns how many rows it changed in all.
    ///
    /// The batch appears in the text in one of these forms:
    /// - `insert into t(a, b) {rows} on conflict (a) do nothing`: its rows as they are.
    /// - `{rows as r(a, b)}`: as a table with named columns, wherever a table may appear, such as
    ///   `update t set x = r.x from {rows as r(id, x)} where t.id = r.id`, or
    ///   `delete from t where (a, b) in (select a, b from {rows as r(a, b)})`, or
    ///   `insert into t(s, a) select $1, r.a from {rows as r(a)} where true on conflict (s, a) do
    ///   nothing` (SQLite needs the `where true` before an `on conflict`).
    ///
    /// `params` are `$1`, `$2`… as elsewhere; the batch must not be referred to by number.
    ///
    /// SQLite runs the statement row by row and PostgreSQL once for all rows, so that for the same
    /// result on both
    /// - no two rows may have the same key (an upsert of both is an error on PostgreSQL only);
    /// - no row's outcome may depend on another row's, and no aggregate may span rows;
    /// - the order of rows that come back means nothing.
    ///
    /// A batch without rows does nothing.
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

    /// Runs a query that gives one row or none for every row of a batch, whose values it names
    /// `{row 1}`, `{row 2}`…: `select x from t where s = $1 and id = {row 1}`.
    ///
    /// Each row is looked up by itself, through the index that the conditions fit. A join with
    /// the batch leaves PostgreSQL the choice to read the table instead, which it takes, and keeps
    /// to, where the plan was made while the table was small or had no statistics.
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

    /// Which database this is. Prefer the words of [`Dialect`] to asking.
    pub fn dialect(&self) -> Dialect {
        self.link.dialect()
    }

    /// The random name of this opening of the database, 32 hexadecimal digits: the same in all
    /// transactions of a [`crate::Db`].
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
        }
    }

    pub(crate) fn beside(mut self, beside: &'a dyn Beside) -> Tx<'a> {
        self.beside = Some(beside);
        self
    }

    pub(crate) fn take_at_end(&mut self) -> Option<AtEnd> {
        self.at_end.take()
    }

    /// Whether the database is distributed: see [`crate::Db::set_distributed`].
    pub fn is_distributed(&self) -> bool {
        self.beside.is_some_and(Beside::is_distributed)
    }

    /// A random positive number, this transaction's own.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Runs a job in a transaction of its own, over another connection, which is committed when this
    /// returns, whatever becomes of this transaction. The locks that this one was to take are taken
    /// before. For a distributed database only.
    ///
    /// The job must not wait for what this transaction has locked: no server would notice.
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

    /// Runs a job in a transaction of its own when this one has ended, committed or not, and before its
    /// caller has the answer; not if it is unknown how it has ended. There is one such job: a second one is
    /// not run. For a distributed database only.
    pub fn at_end(&mut self, job: impl FnMut(&mut Tx<'_>) -> Result<(), DbError> + Send + 'static) {
        self.at_end.get_or_insert_with(|| Box::new(job));
    }

    /// Locks a row until the commit, as the write's root was locked before it: at the latest before the
    /// next answer. All writes must lock rows in one order.
    #[cfg_attr(feature = "testing", track_caller)]
    pub fn lock_later(&mut self, row: Root) -> Result<(), DbError> {
        self.lock_root(row)
    }

    /// Begins a job's work: says in which opening it runs, and locks its root.
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
        let sender = Sender::of(self.beside);
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
                // One by one: Citus hands a command on with all that was sent with it.
                Link::Postgres(session) => {
                    script::statements(&sql).try_for_each(|one| session.script(one))
                }
            }
        })
    }

    /// Runs a statement, or one for each row of a batch; returns how many rows it changed, or 0 if it
    /// runs later.
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
        let sender = Sender::of(self.beside);
        self.guard(|link| {
            batch::check(params, columns)?;
            let sql = batch::statement(link.dialect(), sql, params.len(), columns, form)?;
            #[cfg(feature = "testing")]
            sender.sends(&sql, columns);
            work(link, &sql)
        })
    }

    /// Every use of the link goes through here, so that no error is forgotten.
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
