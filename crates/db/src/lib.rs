//! One transaction type over SQLite and PostgreSQL.
//!
//! Domain operations are synchronous functions over one [`Tx`], written once with one SQL text
//! each. [`Db::write`] and [`Db::read`] run them on this crate's own threads: SQLite has a single
//! writer that commits in groups and a pool of readers, PostgreSQL a pool of connections.
//!
//! # Guarantees for an operation
//! - A write names its [`Root`], the ancestor row of all rows that it changes. Writes of one root
//!   run
//!   one after the other on both databases, so reading and then writing below a root loses no update.
//!   Between different roots PostgreSQL runs at read committed, without guarantees.
//! - A read sees one snapshot.
//! - Once a statement has failed, the transaction will not commit, even if the closure ignored
//!   the error.
//! - The closure may run more than once (after a deadlock or a lost connection), but commits once.
//!
//! # SQL that means the same on both
//! - Parameters are `$1`, `$2`…, each of them used, in any order and as often as needed.
//! - [`Dialect`] lists the few words in braces for the differences.
//! - `sum` of integers is `numeric` on PostgreSQL: write `cast(sum(x) as bigint)`.
//! - PostgreSQL must be able to infer a parameter's type: not `select $1` but
//!   `select cast($1 as bigint)`.
//! - Text contains no NUL character (rejected on both), and JSON is text.
//! - Text sorts by bytes only with `{collate_c}` on its column.
//! - [`Tx::execute_many`] lists the rules for a batch's statement.

pub mod backup;
mod batch;
mod db;
mod dialect;
mod error;
mod job;
mod migrate;
mod options;
mod postgres;
mod queue;
mod row;
mod script;
pub mod space;
mod sqlite;
mod stats;
#[cfg(feature = "testing")]
pub mod testing;
mod tx;
mod value;

pub use batch::Column;
pub use db::Db;
pub use dialect::Dialect;
pub use error::DbError;
pub use migrate::Migration;
pub use options::{Options, Root, SecretUrl, Target};
/// Runs a future of a [`Db`] on a plain thread. The future needs no runtime.
pub use pollster::block_on;
pub use row::{ColumnIndex, Row};
pub use stats::Stats;
pub use tx::{PendingRows, Tx};
pub use value::{ToValue, ValueRef};
