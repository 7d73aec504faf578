//! The statements that a database's transactions send to PostgreSQL.

use std::panic::Location;

use crate::batch::Column;
use crate::tx::Beside;

/// A statement on its way to PostgreSQL.
#[derive(Clone, Copy)]
pub struct SentStatement<'a> {
    /// The text as the server receives it.
    pub sql: &'a str,
    /// The code that asked the transaction to send it.
    pub caller: &'static Location<'static>,
}

/// Receives each statement before it is sent: see [`crate::Db::watch_statements`].
pub type StatementWatcher = Box<dyn Fn(SentStatement<'_>) + Send + Sync>;

/// The watcher of a transaction's statement, and the statement's caller.
pub(crate) struct Sender<'a> {
    watcher: Option<&'a StatementWatcher>,
    caller: &'static Location<'static>,
}

impl<'a> Sender<'a> {
    #[track_caller]
    pub(crate) fn new(beside: Option<&'a dyn Beside>) -> Sender<'a> {
        Sender {
            watcher: beside.and_then(Beside::watcher),
            caller: Location::caller(),
        }
    }

    /// Reports a statement to the watcher. A batch without rows is not sent.
    pub(crate) fn sends(&self, sql: &str, columns: &[Column<'_>]) {
        if let Some(watcher) = self.watcher
            && !columns.first().is_some_and(Column::is_empty)
        {
            let caller = self.caller;
            watcher(SentStatement { sql, caller });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::batch::Column;
    use crate::options::Root;
    use crate::testing::Fresh;

    #[test]
    fn a_watcher_is_shown_what_is_sent_and_by_whom() {
        let db = Fresh::postgres().open(&[]);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        db.watch_statements(Box::new(move |sent| {
            let is_of_this_file = sent.caller.file() == file!();
            let mut list = list.lock().expect("no panic");
            list.push((sent.sql.to_owned(), is_of_this_file));
        }));
        let sql = "select cast($1 as bigint) as n where cast(2 as bigint) {in $2}";
        let numbers = db.write_blocking(Root::none(), move |tx| {
            let none = Column::i64(Vec::<i64>::new());
            tx.execute_many("select 1 from {rows as r(a)}", &[], &[none])?;
            tx.query(sql, &[&7_i64, &Column::i64([1, 2])], |row| row.i64("n"))
        });
        assert_eq!(numbers, Ok(vec![7]));
        let sql = "select cast($1 as bigint) as n where cast(2 as bigint) = any($2)";
        let seen = seen.lock().expect("no panic").clone();
        assert_eq!(seen, [(sql.to_owned(), true)]);
        db.close_blocking();
    }
}
