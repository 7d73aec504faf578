//! The checked-in list of the store's statements, and the watch that holds each store of this package's
//! tests to it.
//!
//! The watch begins when a store is open and ends when its last handle is dropped, which fails the test
//! if a statement was sent that the list lacks. The tests' own statements are not looked at.
//! `docs/distribution.md` says what the list is for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{env, fs, process, thread};

use driftline_db::testing::{SentStatement, explain, is_distributed};
use driftline_db::{Db, Dialect, Target};
use serde_json::json;

use crate::distribution::{PLACEMENTS, Placement};

/// What one open store has sent.
#[derive(Debug)]
pub(crate) struct StatementWatch {
    db: Db,
    target: Target,
    sent: Arc<Mutex<HashMap<String, Sent>>>,
}

/// A statement that was sent.
#[derive(Clone, Debug)]
struct Sent {
    caller: &'static Location<'static>,
    examples: Vec<Example>,
}

/// What a statement's parameters were.
#[derive(Clone, Debug)]
struct Example {
    literals: Vec<String>,
    list_length: usize,
}

impl StatementWatch {
    /// Watches a store from here on: in the programs with this package's tests only, and on PostgreSQL.
    pub(crate) fn begin(db: &Db, target: &Target) -> Option<Arc<StatementWatch>> {
        let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let is_of_this_package = package.is_some_and(|folder| folder.ends_with(PACKAGE));
        if !is_of_this_package || db.dialect() == Dialect::Sqlite {
            return None;
        }
        let sent = Arc::<Mutex<HashMap<_, _>>>::default();
        let list = Arc::clone(&sent);
        let keeps_examples = is_explained();
        db.watch_statements(Box::new(move |statement| {
            if is_listed_source(statement.caller.file()) {
                add(&mut lock(&list), &statement, keeps_examples);
            }
        }));
        Some(Arc::new(StatementWatch {
            db: db.clone(),
            target: target.clone(),
            sent,
        }))
    }

    /// Writes down what was sent, with the plans that a distributed database has for it.
    fn record(&self, folder: &Path, sent: &HashMap<String, Sent>) {
        let is_distributed = self.db.is_distributed() && is_distributed();
        let mut asked = Vec::new();
        for (sql, sent) in sent {
            let examples = sent.examples.iter();
            asked.extend(examples.map(|example| (sql.as_str(), &*example.literals)));
        }
        let plans = match is_distributed && is_explained() {
            true => explain(&self.target, &asked).unwrap_or_default(),
            false => Vec::new(),
        };
        let mut plans = plans.into_iter();
        let mut lines = String::new();
        for (sql, sent) in sent {
            let (mut of_this, mut refusals) = (Vec::new(), Vec::new());
            for plan in plans.by_ref().take(sent.examples.len()) {
                match plan {
                    Ok(plan) => of_this.push(plan),
                    Err(error) => refusals.push(error.to_string()),
                }
            }
            let statement = normalised(sql);
            let record = json!({
                "tables": tables(&statement),
                "statement": statement,
                "caller": sent.caller.to_string(),
                "is_distributed": is_distributed,
                "shards": super::SHARDS,
                "plans": of_this,
                "refusals": refusals,
            });
            lines.push_str(&format!("{record}\n"));
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = folder.join(format!("{}_{number}.jsonl", process::id()));
        fs::write(&file, lines).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

impl Drop for StatementWatch {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let sent = lock(&self.sent).clone();
        if let Some(folder) = recorded_in() {
            // On a plain thread, because the handle may go on one that drives a runtime.
            let recorded =
                thread::scope(|scope| scope.spawn(|| self.record(&folder, &sent)).join());
            recorded.expect("it was written");
        }
        if is_explained() {
            return;
        }
        let sent = sent.iter();
        let sent = sent.map(|(sql, sent)| (normalised(sql), sent.caller.to_string()));
        if let Some(message) = unlisted(listed(), sent) {
            panic!("{message}");
        }
    }
}

fn add(sent: &mut HashMap<String, Sent>, statement: &SentStatement<'_>, keeps_examples: bool) {
    if !sent.contains_key(statement.sql) {
        let new = Sent {
            caller: statement.caller,
            examples: Vec::new(),
        };
        sent.insert(statement.sql.to_owned(), new);
    }
    if !keeps_examples {
        return;
    }
    let Some(sent) = sent.get_mut(statement.sql) else {
        return;
    };
    // The first, and the one with the longest lists, which may name the most shards.
    let list_length = statement.list_length();
    let longest = sent.examples.last().map(|example| example.list_length);
    if longest.is_none_or(|longest| list_length > longest) {
        sent.examples.truncate(1);
        sent.examples.push(Example {
            literals: statement.literals(),
            list_length,
        });
    }
}

/// A statement's text as the list has it: one line, in which a part that is repeated for each of
/// several values, as `… as of_0 union all … as of_1`, stands once.
pub fn normalised(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let text = words.join(" ");
    let mut parts = text.split(UNION);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let repeated = part.split_once(REPEATED).map(|(_, rest)| {
            let number = rest
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len());
            &rest[number..]
        });
        match repeated {
            Some(rest) => out.push_str(rest),
            None => out.extend([UNION, part]),
        }
    }
    out
}

/// The statements of a list: its lines that are neither indented nor comments.
pub fn statements(list: &str) -> BTreeSet<String> {
    let is_statement = |line: &&str| !line.is_empty() && !line.starts_with([' ', '#']);
    list.lines()
        .filter(is_statement)
        .map(str::to_owned)
        .collect()
}

/// What to say of statements that the list lacks; each is given with the place in the source that sends it.
pub fn unlisted(
    listed: &BTreeSet<String>,
    sent: impl Iterator<Item = (String, String)>,
) -> Option<String> {
    let missing: BTreeMap<_, _> = sent.filter(|(text, _)| !listed.contains(text)).collect();
    if missing.is_empty() {
        return None;
    }
    let missing = missing
        .iter()
        .map(|(text, caller)| format!("  {caller}\n    {text}\n"));
    Some(format!(
        "{LIST} lacks {} of the statements that were sent:\n{}See what a distributed PostgreSQL \
         makes of them, and write the list again, with a Citus cluster's coordinator at URL:\n  \
         cargo xtask statements --database-url URL",
        missing.len(),
        missing.collect::<String>(),
    ))
}

/// The tables of a statement, each with what it is placed by.
fn tables(statement: &str) -> Vec<(&'static str, &'static str)> {
    let is_between = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let words: Vec<&str> = statement
        .split(is_between)
        .filter(|word| !word.is_empty())
        .collect();
    let before_table = ["from", "join", "into", "update"];
    let pairs = words
        .windows(2)
        .filter(|pair| before_table.contains(&pair[0]));
    let words: BTreeSet<&str> = pairs.map(|pair| pair[1]).collect();
    let placed = PLACEMENTS.iter().filter(|(table, _)| words.contains(table));
    placed
        .map(|(table, placement)| {
            let place = match placement {
                Placement::WithInstance(_) => "instance",
                Placement::Everywhere => "everywhere",
                Placement::Coordinator => "coordinator",
            };
            (*table, place)
        })
        .collect()
}

/// Whether a file's statements are to be in the list: those of this crate, and the locks of roots.
fn is_listed_source(file: &str) -> bool {
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

fn listed() -> &'static BTreeSet<String> {
    static LISTED: OnceLock<BTreeSet<String>> = OnceLock::new();
    LISTED.get_or_init(|| {
        let path = format!(
            "{}/tests/contract/statements.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        statements(&fs::read_to_string(path).unwrap_or_default())
    })
}

/// Where the statements are to be written.
fn recorded_in() -> Option<PathBuf> {
    env::var_os(RECORD).map(PathBuf::from)
}

/// Whether the statements are to be written with their plans, for a new list, and not compared with the
/// one that there is.
fn is_explained() -> bool {
    env::var_os(EXPLAIN).is_some()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Names a folder, for developer commands.
const RECORD: &str = "DRIFTLINE_RECORD_STATEMENTS";
/// Set by `cargo xtask statements`.
const EXPLAIN: &str = "DRIFTLINE_EXPLAIN_STATEMENTS";
const LIST: &str = "crates/store/tests/contract/statements.txt";
const UNION: &str = " union all ";
/// What a repeated part ends with, before its number.
const REPEATED: &str = " as of_";
const PACKAGE: &str = "crates/store";
/// Where a write locks its root.
const ROOTS: &str = "db/src/job.rs";
/// What changes tables, while a store is distributed or once a month: Citus has no plan of that.
const LEFT_OUT: [&str; 2] = ["distribution.rs", "partitions.rs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_whatever_the_length_of_its_lists() {
        assert_eq!(normalised("select 1\n     from  t\n"), "select 1 from t");
        let of_each = |buckets: usize| {
            let one = |n| {
                format!(
                    "select a from (select a from t where b = ${}) as of_{n}",
                    n + 4
                )
            };
            let all: Vec<String> = (0..buckets).map(one).collect();
            format!(
                "select a from ({}) as found limit $2",
                all.join("\n union all ")
            )
        };
        let once = normalised(&of_each(1));
        assert!(
            once.contains("b = $4) as of_0) as found limit $2"),
            "{once}"
        );
        assert_eq!(normalised(&of_each(2)), once);
        assert_eq!(normalised(&of_each(11)), once);
        let others = "select 1 union all select 2";
        assert_eq!(normalised(others), others);
    }

    #[test]
    fn what_the_list_lacks_is_named_with_the_command_that_adds_it() {
        let listed = statements("# head\n\nselect 1 from t\n    1 shard; t\n");
        assert_eq!(listed, BTreeSet::from(["select 1 from t".to_owned()]));
        let known = ["select 1 from t", "a.rs:1"];
        let new = ["select 2 from t", "b.rs:2"];
        let message = |sent: &[[&str; 2]]| {
            let sent = sent.iter();
            let sent = sent.map(|[text, caller]| ((*text).to_owned(), (*caller).to_owned()));
            unlisted(&listed, sent)
        };
        assert_eq!(message(&[known]), None);
        let message = message(&[new, known, new]).expect("one is missing");
        assert!(message.contains("lacks 1 of"), "{message}");
        assert!(
            message.contains("b.rs:2\n    select 2 from t\n"),
            "{message}"
        );
        assert!(!message.contains(known[0]), "{message}");
        assert!(message.contains("cargo xtask statements"), "{message}");
    }

    #[test]
    fn the_stores_own_statements_are_watched() {
        assert!(is_listed_source("crates/store/src/mirror/entry.rs"));
        assert!(is_listed_source("crates/db/src/job.rs"));
        assert!(!is_listed_source("crates/store/tests/contract/pages.rs"));
        assert!(!is_listed_source("crates/store/src/testing.rs"));
        assert!(!is_listed_source("crates/store/src/partitions.rs"));
    }

    #[test]
    fn a_statements_tables_are_found_with_their_places() {
        let found = tables("insert into entry (source) select 1 from local_clock join directory d");
        let expected = [
            ("directory", "everywhere"),
            ("entry", "instance"),
            ("local_clock", "coordinator"),
        ];
        assert_eq!(found, expected);
    }
}
