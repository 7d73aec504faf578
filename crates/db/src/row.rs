use std::cell::Cell;
use std::error::Error;
use std::fmt;

use rusqlite::types::ValueRef as SqliteRef;
use tokio_postgres::types::{FromSql, Type};

use crate::error::DbError;
use crate::value::ValueRef;

/// One row of a query's answer, read by column name or by index from 0.
///
/// The search for a name begins at the column after the last one read. Reading columns in the
/// query's order therefore costs one comparison each.
pub struct Row<'a> {
    inner: Inner<'a>,
    /// The index after that of the last column read by name.
    next: Cell<usize>,
}

/// A column of a row: its name, or its index from 0.
pub trait ColumnIndex: Copy + fmt::Display {
    /// Its index from 0; `None` if the row has no such column.
    fn index_in(self, row: &Row<'_>) -> Option<usize>;
}

impl ColumnIndex for usize {
    fn index_in(self, row: &Row<'_>) -> Option<usize> {
        (self < row.len()).then_some(self)
    }
}

impl ColumnIndex for &str {
    fn index_in(self, row: &Row<'_>) -> Option<usize> {
        let next = row.next.get();
        let found = (next..row.len())
            .chain(0..next)
            .find(|at| row.name(*at) == self)?;
        row.next.set(found + 1);
        Some(found)
    }
}

enum Inner<'a> {
    /// With the names of its columns, for which SQLite would lock the connection.
    Sqlite(&'a rusqlite::Row<'a>, &'a [String]),
    Postgres(&'a tokio_postgres::Row),
}

impl<'a> Row<'a> {
    /// An integer.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing, is null or has another type.
    pub fn i64(&self, column: impl ColumnIndex) -> Result<i64, DbError> {
        present(column, self.opt_i64(column)?)
    }

    /// An integer or null.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing or has another type.
    pub fn opt_i64(&self, column: impl ColumnIndex) -> Result<Option<i64>, DbError> {
        self.read(column, "an integer", |value| match value {
            ValueRef::I64(value) => Some(value),
            _ => None,
        })
    }

    /// A boolean.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing, is null or has another type.
    pub fn bool(&self, column: impl ColumnIndex) -> Result<bool, DbError> {
        present(column, self.opt_bool(column)?)
    }

    /// A boolean or null.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing or has another type.
    pub fn opt_bool(&self, column: impl ColumnIndex) -> Result<Option<bool>, DbError> {
        self.read(column, "a truth value", |value| match value {
            ValueRef::Bool(value) => Some(value),
            ValueRef::I64(value @ 0..=1) if matches!(self.inner, Inner::Sqlite(..)) => {
                Some(value == 1)
            }
            _ => None,
        })
    }

    /// Text, owned.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing, is null or has another type.
    pub fn text(&self, column: impl ColumnIndex) -> Result<String, DbError> {
        self.str(column).map(str::to_owned)
    }

    /// Text or null, owned.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing or has another type.
    pub fn opt_text(&self, column: impl ColumnIndex) -> Result<Option<String>, DbError> {
        Ok(self.opt_str(column)?.map(str::to_owned))
    }

    /// Text, borrowed from the row.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing, is null or has another type.
    pub fn str(&self, column: impl ColumnIndex) -> Result<&'a str, DbError> {
        present(column, self.opt_str(column)?)
    }

    /// Text or null, borrowed from the row.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing or has another type.
    pub fn opt_str(&self, column: impl ColumnIndex) -> Result<Option<&'a str>, DbError> {
        self.read(column, "text", |value| match value {
            ValueRef::Text(value) => Some(value),
            _ => None,
        })
    }

    /// Bytes, owned.
    ///
    /// # Errors
    /// [`DbError::Type`] if the column is missing, is null or has another type.
    pub fn bytes(&self, column: impl ColumnIndex) -> Result<Vec<u8>, DbError> {
        let bytes = self.read(column, "bytes", |value| match value {
            ValueRef::Blob(value) => Some(value.to_vec()),
            _ => None,
        })?;
        present(column, bytes)
    }

    pub(crate) fn sqlite(row: &'a rusqlite::Row<'a>, names: &'a [String]) -> Row<'a> {
        Row::new(Inner::Sqlite(row, names))
    }

    pub(crate) fn postgres(row: &'a tokio_postgres::Row) -> Row<'a> {
        Row::new(Inner::Postgres(row))
    }

    fn new(inner: Inner<'a>) -> Row<'a> {
        let next = Cell::new(0);
        Row { inner, next }
    }

    fn len(&self) -> usize {
        match self.inner {
            Inner::Sqlite(_, names) => names.len(),
            Inner::Postgres(row) => row.len(),
        }
    }

    fn name(&self, at: usize) -> &str {
        match self.inner {
            Inner::Sqlite(_, names) => &names[at],
            Inner::Postgres(row) => row.columns()[at].name(),
        }
    }

    /// The column's value by `as_type`, which returns `None` for other types than the `expected`
    /// one.
    fn read<T>(
        &self,
        column: impl ColumnIndex,
        expected: &str,
        as_type: impl FnOnce(ValueRef<'a>) -> Option<T>,
    ) -> Result<Option<T>, DbError> {
        let value = match (column.index_in(self), &self.inner) {
            (None, _) => Err("missing".to_owned()),
            (Some(at), Inner::Sqlite(row, _)) => match row.get_ref(at) {
                Ok(value) => of_sqlite(value),
                Err(error) => Err(error.to_string()),
            },
            (Some(at), Inner::Postgres(row)) => match row.try_get(at) {
                Ok(OfPostgres(value)) => Ok(value),
                Err(error) => Err(error.source().map_or("missing".into(), ToString::to_string)),
            },
        };
        let found = match value {
            Ok(ValueRef::Null) => return Ok(None),
            Ok(value) => match as_type(value) {
                Some(value) => return Ok(Some(value)),
                None => value.kind().to_owned(),
            },
            Err(found) => found,
        };
        Err(DbError::Type(format!(
            "column {column} was read as {expected}, but is {found}"
        )))
    }
}

fn of_sqlite(value: SqliteRef<'_>) -> Result<ValueRef<'_>, String> {
    match value {
        SqliteRef::Null => Ok(ValueRef::Null),
        SqliteRef::Integer(value) => Ok(ValueRef::I64(value)),
        SqliteRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(ValueRef::Text(text)),
            Err(_) => Err("text that is not UTF-8".to_owned()),
        },
        SqliteRef::Blob(bytes) => Ok(ValueRef::Blob(bytes)),
        SqliteRef::Real(_) => Err(value.data_type().to_string()),
    }
}

struct OfPostgres<'a>(ValueRef<'a>);

impl<'a> FromSql<'a> for OfPostgres<'a> {
    fn from_sql(kind: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(OfPostgres(match *kind {
            Type::INT8 => ValueRef::I64(FromSql::from_sql(kind, bytes)?),
            Type::INT4 => ValueRef::I64(i32::from_sql(kind, bytes)?.into()),
            Type::BOOL => ValueRef::Bool(FromSql::from_sql(kind, bytes)?),
            Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => {
                ValueRef::Text(FromSql::from_sql(kind, bytes)?)
            }
            Type::BYTEA => ValueRef::Blob(FromSql::from_sql(kind, bytes)?),
            ref other => return Err(other.name().into()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(OfPostgres(ValueRef::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn present<T>(column: impl ColumnIndex, value: Option<T>) -> Result<T, DbError> {
    value.ok_or_else(|| DbError::Type(format!("column {column} is null")))
}
