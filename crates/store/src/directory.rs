//! The directory: which instance the row of a name, or of an ID, lies with.
//!
//! What hangs from an instance is found by the instance, and no key reaches over several of them. So
//! names that are unique in the store, and IDs that people know, are written here too, in the
//! transaction that adds or removes what they name. Nothing that a page commits touches it.

use std::collections::HashSet;

use driftline_db::{DbError, Tx};
use strum::IntoStaticStr;

/// What a name or an ID is of.
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

    /// Joins the directory `d` to rows `alias` of this kind, whose instance is in that column.
    pub(crate) fn join(self, alias: &str, instance_column: &str) -> String {
        let kind = self.name();
        format!(
            "join directory d on d.kind = '{kind}' and d.id = {alias}.id
                 and d.instance_id = {alias}.{instance_column}"
        )
    }
}

/// Adds what has just been stored.
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

/// Removes what is removed with it.
pub(crate) fn remove(tx: &mut Tx<'_>, kind: Kind, id: i64) -> Result<(), DbError> {
    tx.execute_later(
        "delete from directory where kind = $1 and id = $2",
        &[&kind.name(), &id],
    )
}

/// The names that begin so: in one statement that asks one node.
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

/// The instance that an ID's row lies with.
pub(crate) fn instance_of(tx: &mut Tx<'_>, kind: Kind, id: i64) -> Result<Option<i64>, DbError> {
    tx.query_opt(
        "select instance_id from directory where kind = $1 and id = $2",
        &[&kind.name(), &id],
        |row| row.i64("instance_id"),
    )
}
