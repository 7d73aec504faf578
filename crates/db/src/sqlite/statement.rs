use std::rc::Rc;

use rusqlite::types::{ToSql, ToSqlOutput, Value as SqliteValue, ValueRef as SqliteRef};
use rusqlite::{CachedStatement, Connection};

use super::error::classify;
use crate::batch::Column;
use crate::error::DbError;
use crate::row::Row;
use crate::value::{ToValue, ValueRef};

/// Runs a statement that returns no rows, once or for each row of a batch. Returns the number of
/// rows that it changed.
pub(crate) fn execute(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
    columns: &[Column<'_>],
) -> Result<u64, DbError> {
    let mut statement = prepare(connection, sql)?;
    if statement.column_count() > 0 {
        return Err(DbError::gives_rows());
    }
    let mut changed = 0;
    with_each_row(&mut statement, params, columns, |statement| {
        changed += run(statement)?;
        Ok(())
    })?;
    Ok(changed)
}

/// Runs a query, once or for each row of a batch.
pub(crate) fn each(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
    columns: &[Column<'_>],
    row: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let mut statement = prepare(connection, sql)?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    with_each_row(&mut statement, params, columns, |statement| {
        let mut rows = statement.raw_query();
        while let Some(found) = rows.next().map_err(|error| classify(&error))? {
            row(&Row::sqlite(found, &names))?;
        }
        Ok(())
    })
}

/// Runs several statements without parameters.
pub(crate) fn script(connection: &Connection, sql: &str) -> Result<(), DbError> {
    connection
        .execute_batch(sql)
        .map_err(|error| classify(&error))
}

/// Runs a transaction command.
pub(crate) fn command(connection: &Connection, sql: &str) -> Result<(), DbError> {
    run(&mut prepare(connection, sql)?).map(|_| ())
}

fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<CachedStatement<'c>, DbError> {
    connection
        .prepare_cached(sql)
        .map_err(|error| classify(&error))
}

fn run(statement: &mut CachedStatement<'_>) -> Result<u64, DbError> {
    statement
        .raw_execute()
        .map(|changed| changed as u64)
        .map_err(|error| classify(&error))
}

/// Binds a statement's parameters and runs `work` for each row of a batch, or once without a batch.
fn with_each_row(
    statement: &mut CachedStatement<'_>,
    params: &[&dyn ToValue],
    columns: &[Column<'_>],
    mut work: impl FnMut(&mut CachedStatement<'_>) -> Result<(), DbError>,
) -> Result<(), DbError> {
    let expected = statement.parameter_count();
    if expected != params.len() + columns.len() {
        let expected = expected.saturating_sub(columns.len());
        return Err(DbError::wrong_count(params.len(), expected));
    }
    let mut slots = Vec::new();
    for slot in 1..=expected {
        let number = parameter_number(statement, slot)?;
        match params.get(number - 1) {
            Some(param) => bind(statement, slot, param.to_value())?,
            None => match columns.get(number - 1 - params.len()) {
                Some(column) => slots.push((slot, column)),
                None => return Err(DbError::wrong_count(expected, number)),
            },
        }
    }
    for row in 0..columns.first().map_or(1, Column::len) {
        for (slot, column) in &slots {
            bind(statement, *slot, column.value(row))?;
        }
        work(statement)?;
    }
    Ok(())
}

fn bind(
    statement: &mut CachedStatement<'_>,
    slot: usize,
    value: ValueRef<'_>,
) -> Result<(), DbError> {
    statement
        .raw_bind_parameter(slot, Bound(value))
        .map_err(|error| classify(&error))
}

/// The number of the parameter in a slot. SQLite numbers `$2` by its first appearance in the text
/// and not by its digits, so only the name identifies it.
fn parameter_number(statement: &CachedStatement<'_>, slot: usize) -> Result<usize, DbError> {
    let name = statement.parameter_name(slot).unwrap_or_default();
    let digits = name.strip_prefix('$').unwrap_or_default();
    match digits.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(DbError::Type(format!(
            "the parameter `{name}` is not a `$` with a number (a cast is `cast($1 as bigint)`)"
        ))),
    }
}

struct Bound<'a>(ValueRef<'a>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = match self.0 {
            ValueRef::Null => SqliteRef::Null,
            ValueRef::I64(value) => SqliteRef::Integer(value),
            ValueRef::Text(value) => SqliteRef::Text(value.as_bytes()),
            ValueRef::Blob(value) => SqliteRef::Blob(value),
            ValueRef::Bool(value) => SqliteRef::Integer(i64::from(value)),
            ValueRef::List(column) => {
                let values = (0..column.len()).map(|index| owned(column.value(index)));
                let values: Vec<SqliteValue> = values.collect();
                return Ok(ToSqlOutput::from_rc(Rc::new(values), c"rarray"));
            }
        };
        Ok(ToSqlOutput::Borrowed(borrowed))
    }
}

fn owned(value: ValueRef<'_>) -> SqliteValue {
    match value {
        ValueRef::Null | ValueRef::List(_) => SqliteValue::Null,
        ValueRef::I64(value) => SqliteValue::Integer(value),
        ValueRef::Text(value) => SqliteValue::Text(value.to_owned()),
        ValueRef::Blob(value) => SqliteValue::Blob(value.to_vec()),
        ValueRef::Bool(value) => SqliteValue::Integer(i64::from(value)),
    }
}
