//! The directory: the instance of the row for a name or an ID.
//!
//! Rows below an instance are found by the instance, and no key spans several instances. So names
//! that are unique in the store, and IDs that people know, are also stored here, in the transaction
//! that adds or removes their rows. The commit of a page does not touch it.

use std::collections::HashSet;

use driftline_db::{DbError, Tx};
use strum::IntoStaticStr;

/// The kind of row of a name or an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Kind {
    /// An instance, named by its origin.
    Instance,
    /// A source.
    Source,
    /// A credential.
    Credential,
}

impl Kind {
    fn name(self) -> &'static str {
        self.into()
    }

    /// Joins the directory `d` to rows `alias` of this kind, whose instance is in
    /// `instance_column`.
    pub(crate) fn join(self, alias: &str, instance_column: &str) -> String {
        let kind = self.name();
        format!(
            "join directory d on d.kind = '{kind}' and d.id = {alias}.id
                 and d.instance_id = {alias}.{instance_column}"
        )
    }
}

/// Adds a row that was just stored.
pub(crate) fn add(
    tx: &mut Tx<'_>,
    kind: Kind,
    name: &str,
    (id, instance_id): (i64, i64),
) -> Result<(), DbError> {
    tx.execute_later(
        "insert into directory (kind, name, id, instance_id) values ($1, $2, $3, $4)",
        &[&kind.name(), &name, &id, &instance_id],
    )
}

/// Removes the entry of a removed row.
pub(crate) fn remove(tx: &mut Tx<'_>, kind: Kind, id: i64) -> Result<(), DbError> {
    tx.execute_later(
        "delete from directory where kind = $1 and id = $2",
        &[&kind.name(), &id],
    )
}

/// The names that begin with `start`, in one statement for one node.
pub(crate) fn names_from(
    tx: &mut Tx<'_>,
    kind: Kind,
    start: &str,
) -> Result<HashSet<String>, DbError> {
    let names = tx.query(
        "select name from directory where kind = $1 and substr(name, 1, length($2)) = $2",
        &[&kind.name(), &start],
        |row| row.text("name"),
    )?;
    Ok(names.into_iter().collect())
}

/// The instance of an ID's row.
pub(crate) fn instance_of(tx: &mut Tx<'_>, kind: Kind, id: i64) -> Result<Option<i64>, DbError> {
    tx.query_opt(
        "select instance_id from directory where kind = $1 and id = $2",
        &[&kind.name(), &id],
        |row| row.i64("instance_id"),
    )
}
