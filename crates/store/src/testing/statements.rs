//! The watch that holds the statements of this package's tests to what a distributed PostgreSQL takes.
//!
//! It begins when a store is open and ends when its last handle is dropped. If the store counts as
//! distributed, as one of three in most tests does, a statement with a [`fault`] fails the test. The tests'
//! own statements are not looked at. `docs/distribution.md` has the rules.

mod rules;

use std::collections::BTreeMap;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{env, thread};

use driftline_db::{Db, Dialect};

pub use rules::fault;

/// The statements that one open store has sent, each with the place in the source that sent it.
#[derive(Debug)]
pub(crate) struct StatementWatch {
    db: Db,
    sent: Arc<Mutex<BTreeMap<String, &'static Location<'static>>>>,
}

impl StatementWatch {
    /// Watches a store from here on: in the programs with this package's tests only, and on PostgreSQL.
    pub(crate) fn begin(db: &Db) -> Option<Arc<StatementWatch>> {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let is_of_this_package = package.is_some_and(|folder| folder.ends_with(PACKAGE));
        if !is_of_this_package || db.dialect() == Dialect::Sqlite {
            return None;
        }
        let sent = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let list = Arc::clone(&sent);
        db.watch_statements(Box::new(move |statement| {
            if is_of_store(statement.caller.file()) {
                let mut list = lock(&list);
                if !list.contains_key(statement.sql) {
                    list.insert(statement.sql.to_owned(), statement.caller);
                }
            }
        }));
        let db = db.clone();
        Some(Arc::new(StatementWatch { db, sent }))
    }
}

impl Drop for StatementWatch {
    fn drop(&mut self) {
        if thread::panicking() || !self.db.is_distributed() {
            return;
        }
        let faults = lock(&self.sent)
            .iter()
            .filter_map(|(sql, caller)| Some(format!("  {caller}: {}\n    {sql}\n", fault(sql)?)))
            .collect::<String>();
        assert!(
            faults.is_empty(),
            "a distributed PostgreSQL does not take these statements, see docs/distribution.md:\n{faults}"
        );
    }
}

/// True if a file's statements are watched: those of this crate, and the locks of roots.
fn is_of_store(file: &str) -> bool {
    let file = file.replace('\\', "/");
    let in_crate = file.split_once("crates/").map_or(&*file, |(_, rest)| rest);
    if in_crate == ROOTS {
        return true;
    }
    let Some(source) = in_crate.strip_prefix("store/src/") else {
        return false;
    };
    !source.starts_with("testing") && !LEFT_OUT.contains(&source)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const PACKAGE: &str = "crates/store";
/// The file in which a write locks its root.
const ROOTS: &str = "db/src/job.rs";
/// Code that changes tables, while a store is distributed.
const LEFT_OUT: [&str; 1] = ["distribution.rs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_own_statements_are_watched() {
        assert!(is_of_store("crates/store/src/mirror/entry.rs"));
        assert!(is_of_store("crates/db/src/job.rs"));
        assert!(!is_of_store("crates/store/tests/contract/pages.rs"));
        assert!(!is_of_store("crates/store/src/testing.rs"));
        assert!(!is_of_store("crates/store/src/distribution.rs"));
    }
}
