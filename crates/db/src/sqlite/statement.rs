use std::rc::Rc;

use rusqlite::types::{ToSql, ToSqlOutput, Value as SqliteValue, ValueRef as SqliteRef};
use rusqlite::{CachedStatement, Connection};

use super::error::{classify, gives_rows, wrong_count};
use crate::batch::Column;
use crate::error::DbError;
use crate::row::Row;
use crate::value::{ToValue, ValueRef};

/// What a query does with each row.
type Each<'a> = dyn FnMut(&Row<'_>) -> Result<(), DbError> + 'a;

pub(crate) fn execute(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
) -> Result<u64, DbError> {
    let mut statement = prepare(connection, sql)?;
    without_rows(&statement)?;
    bind(&mut statement, params)?;
    run(&mut statement)
}

pub(crate) fn each(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
    row: &mut Each<'_>,
) -> Result<(), DbError> {
    let mut statement = prepare(connection, sql)?;
    bind(&mut statement, params)?;
    step(&mut statement, row)
}

pub(crate) fn execute_many(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
    columns: &[Column<'_>],
    rows: usize,
) -> Result<u64, DbError> {
    let mut statement = prepare(connection, sql)?;
    without_rows(&statement)?;
    let slots = bind_scalars(&mut statement, params, columns.len())?;
    let mut changed = 0;
    for row in 0..rows {
        bind_row(&mut statement, &slots, columns, row)?;
        changed += run(&mut statement)?;
    }
    Ok(changed)
}

pub(crate) fn each_many(
    connection: &Connection,
    sql: &str,
    params: &[&dyn ToValue],
    columns: &[Column<'_>],
    rows: usize,
    row: &mut Each<'_>,
) -> Result<(), DbError> {
    let mut statement = prepare(connection, sql)?;
    let slots = bind_scalars(&mut statement, params, columns.len())?;
    for index in 0..rows {
        bind_row(&mut statement, &slots, columns, index)?;
        step(&mut statement, row)?;
    }
    Ok(())
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

fn step(statement: &mut CachedStatement<'_>, row: &mut Each<'_>) -> Result<(), DbError> {
    let mut rows = statement.raw_query();
    while let Some(found) = rows.next().map_err(|error| classify(&error))? {
        row(&Row::sqlite(found))?;
    }
    Ok(())
}

fn without_rows(statement: &CachedStatement<'_>) -> Result<(), DbError> {
    if statement.column_count() == 0 {
        Ok(())
    } else {
        Err(gives_rows())
    }
}

fn bind(statement: &mut CachedStatement<'_>, params: &[&dyn ToValue]) -> Result<(), DbError> {
    let expected = statement.parameter_count();
    if expected != params.len() {
        return Err(wrong_count(params.len(), expected));
    }
    for slot in 1..=expected {
        let number = parameter_number(statement, slot)?;
        let param = params
            .get(number - 1)
            .ok_or_else(|| wrong_count(params.len(), number))?;
        bind_one(statement, slot, param.to_value())?;
    }
    Ok(())
}

/// Binds what all rows share, and returns where each row's values go: (slot, column).
fn bind_scalars(
    statement: &mut CachedStatement<'_>,
    params: &[&dyn ToValue],
    columns: usize,
) -> Result<Vec<(usize, usize)>, DbError> {
    let expected = statement.parameter_count();
    let given = params.len() + columns;
    if expected != given {
        return Err(wrong_count(params.len(), expected.saturating_sub(columns)));
    }
    let mut slots = Vec::with_capacity(columns);
    for slot in 1..=expected {
        let number = parameter_number(statement, slot)?;
        match params.get(number - 1) {
            Some(param) => bind_one(statement, slot, param.to_value())?,
            None if number <= given => slots.push((slot, number - 1 - params.len())),
            None => return Err(wrong_count(given, number)),
        }
    }
    Ok(slots)
}

fn bind_row(
    statement: &mut CachedStatement<'_>,
    slots: &[(usize, usize)],
    columns: &[Column<'_>],
    row: usize,
) -> Result<(), DbError> {
    slots
        .iter()
        .try_for_each(|&(slot, column)| bind_one(statement, slot, columns[column].value(row)))
}

fn bind_one(
    statement: &mut CachedStatement<'_>,
    slot: usize,
    value: ValueRef<'_>,
) -> Result<(), DbError> {
    statement
        .raw_bind_parameter(slot, Bound(value))
        .map_err(|error| classify(&error))
}

/// SQLite numbers `$2` by its first appearance in the text, not by its digits: only the name
/// identifies the parameter of a slot.
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
                let values = (0..column.len())
                    .map(|index| owned(column.value(index)))
                    .collect();
                return Ok(ToSqlOutput::from_rc(
                    Rc::<Vec<SqliteValue>>::new(values),
                    c"rarray",
                ));
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
