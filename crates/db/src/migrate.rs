use crate::error::DbError;
use crate::tx::Tx;

/// One step of the schema's history, in one text for both databases.
///
/// The text may hold several statements and the words of [`crate::Dialect`]. A step that has been
/// released never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// Ascending from step to step.
    pub version: i64,
    /// Recorded with the version, to distinguish histories.
    pub name: &'static str,
    /// The statements.
    pub sql: &'static str,
}

/// Runs `transact` until every migration is applied; each call is one transaction, which must
/// commit when its closure succeeds and exclude other processes from its `lock` on.
pub(crate) fn migrate(
    migrations: &[Migration],
    lock: &str,
    mut transact: impl FnMut(&mut Step<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    if migrations.is_empty() {
        return Ok(());
    }
    if !migrations.is_sorted_by(|a, b| a.version < b.version) {
        return Err(DbError::Migration("versions must ascend".into()));
    }
    let mut done = false;
    while !done {
        transact(&mut |tx| {
            tx.script(lock)?;
            done = apply_next(tx, migrations)?;
            Ok(())
        })?;
    }
    Ok(())
}

/// One transaction's work.
pub(crate) type Step<'a> = dyn FnMut(&mut Tx<'_>) -> Result<(), DbError> + 'a;

/// Applies the first migration that is missing; returns whether none was.
fn apply_next(tx: &mut Tx<'_>, migrations: &[Migration]) -> Result<bool, DbError> {
    tx.script(
        "create table if not exists migration (
             version {i64} primary key not null,
             name text not null
         ) {strict}",
    )?;
    let applied = tx.query(
        "select version, name from migration order by version",
        &[],
        |row| Ok((row.i64(0)?, row.text(1)?)),
    )?;
    let newest = migrations.last().map_or(0, |last| last.version);
    for (n, (version, name)) in applied.iter().enumerate() {
        if *version > newest {
            return Err(DbError::Newer {
                database: *version,
                program: newest,
            });
        }
        if !migrations
            .get(n)
            .is_some_and(|known| known.version == *version && known.name == name)
        {
            return Err(DbError::Migration(format!(
                "the database was migrated by `{name}` (version {version}), which is not in this \
                 program's history: is it another program's database?"
            )));
        }
    }
    let Some(next) = migrations.get(applied.len()) else {
        return Ok(true);
    };
    tx.script(next.sql).map_err(|error| {
        DbError::Migration(format!(
            "`{}` (version {}) failed: {error}",
            next.name, next.version
        ))
    })?;
    tx.execute(
        "insert into migration (version, name) values ($1, $2)",
        &[&next.version, &next.name],
    )?;
    tracing::info!(version = next.version, name = next.name, "migrated");
    Ok(false)
}
