use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::value::{ToValue, ValueRef, check_text};

/// One column of a batch, or a list for `{in $n}`: nullable values of one type.
#[derive(Clone, Debug)]
pub enum Column<'a> {
    /// Integers.
    I64(Vec<Option<i64>>),
    /// Texts, borrowed, so that a batch of large posts is not copied.
    Text(Vec<Option<&'a str>>),
    /// Booleans.
    Bool(Vec<Option<bool>>),
    /// Integers. Those that are not positive count from a number that a query returns: see
    /// [`Column::counted`].
    Counted(Vec<Option<i64>>, &'static str),
}

impl<'a> Column<'a> {
    /// A column of `i64` or `Option<i64>`.
    pub fn i64<T: Into<Option<i64>>>(values: impl IntoIterator<Item = T>) -> Column<'a> {
        Column::I64(values.into_iter().map(Into::into).collect())
    }

    /// A column of `&str` or `Option<&str>`.
    pub fn text<T: Into<Option<&'a str>>>(values: impl IntoIterator<Item = T>) -> Column<'a> {
        Column::Text(values.into_iter().map(Into::into).collect())
    }

    /// A column of `bool` or `Option<bool>`.
    pub fn bool<T: Into<Option<bool>>>(values: impl IntoIterator<Item = T>) -> Column<'a> {
        Column::Bool(values.into_iter().map(Into::into).collect())
    }

    /// A column of integers for a batch on PostgreSQL. An integer that is not positive counts from
    /// the number that the query `from` returns while the statement runs: 0 is that number, -1 the
    /// one before it. A statement can thus write numbers from an earlier statement of its
    /// transaction, although the client does not know them yet and waits for no answer.
    ///
    /// SQLite answers without a round trip, so there all integers must be positive.
    pub fn counted<T: Into<Option<i64>>>(
        values: impl IntoIterator<Item = T>,
        from: &'static str,
    ) -> Column<'a> {
        Column::Counted(values.into_iter().map(Into::into).collect(), from)
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Column::I64(values) | Column::Counted(values, _) => values.len(),
            Column::Text(values) => values.len(),
            Column::Bool(values) => values.len(),
        }
    }

    /// True if the column has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`; null past the end.
    pub(crate) fn value(&self, index: usize) -> ValueRef<'_> {
        fn at<T: Copy>(values: &[Option<T>], index: usize) -> Option<T> {
            values.get(index).copied().flatten()
        }
        let value = match self {
            Column::I64(values) | Column::Counted(values, _) => {
                at(values, index).map(ValueRef::I64)
            }
            Column::Text(values) => at(values, index).map(ValueRef::Text),
            Column::Bool(values) => at(values, index).map(ValueRef::Bool),
        };
        value.unwrap_or(ValueRef::Null)
    }

    pub(crate) fn check(&self) -> Result<(), DbError> {
        match self {
            Column::Text(values) => values
                .iter()
                .flatten()
                .try_for_each(|text| check_text(text)),
            _ => Ok(()),
        }
    }

    fn array_type(&self) -> &'static str {
        match self {
            Column::I64(_) | Column::Counted(..) => "bigint[]",
            Column::Text(_) => "text[]",
            Column::Bool(_) => "boolean[]",
        }
    }

    /// The part of the column that changes a statement's text: its type, or the query from which it
    /// counts.
    fn kind(&self) -> &'static str {
        match self {
            Column::Counted(_, from) => from,
            _ => self.array_type(),
        }
    }

    /// The SQL expression of the column's value on PostgreSQL, for a row where it has that name.
    fn expression(&self, name: &str) -> String {
        match self {
            Column::Counted(_, from) => {
                format!("case when {name} > 0 then {name} else ({from}) + {name} end")
            }
            _ => name.to_owned(),
        }
    }
}

/// The way in which a statement uses its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Without a batch.
    Single,
    /// With `{rows}`.
    Batch,
    /// With `{row 1}`: at most one result row for each row of the batch.
    LookUp,
}

/// Rejects values that one of the databases cannot store, before they reach either.
pub(crate) fn check(params: &[&dyn ToValue], columns: &[Column<'_>]) -> Result<(), DbError> {
    params
        .iter()
        .try_for_each(|param| param.to_value().check())?;
    columns.iter().try_for_each(Column::check)?;
    match columns
        .windows(2)
        .any(|pair| pair[0].len() != pair[1].len())
    {
        true => Err(DbError::Type("a batch's columns differ in length".into())),
        false => Ok(()),
    }
}

/// A statement's text for one database. The columns' parameters follow the first `scalars` ones.
///
/// It is made once in each thread.
pub(crate) fn statement(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
    form: Form,
) -> Result<Rc<str>, DbError> {
    thread_local! {
        static MADE: RefCell<HashMap<Box<str>, Vec<Made>>> = RefCell::default();
    }
    if form != Form::Single && columns.is_empty() {
        return Err(DbError::Type("a batch needs a column".into()));
    }
    let is_uncounted = |column: &Column<'_>| match column {
        Column::Counted(values, _) => {
            form != Form::Batch
                || dialect == Dialect::Sqlite && values.iter().flatten().any(|value| *value <= 0)
        }
        _ => false,
    };
    if columns.iter().any(is_uncounted) {
        return Err(DbError::Type(
            "only a batch on PostgreSQL counts from what a query gives".into(),
        ));
    }
    let key = (dialect, scalars, form);
    MADE.with_borrow_mut(|made| {
        let known = made.get(sql).and_then(|forms| {
            let kinds = || columns.iter().map(Column::kind);
            let fits = |made: &&Made| made.key == key && kinds().eq(made.kinds.iter().copied());
            forms.iter().find(fits)
        });
        if let Some(known) = known {
            return Ok(Rc::clone(&known.text));
        }
        let text: Rc<str> = match form {
            Form::Single => dialect.expand(sql)?.into(),
            Form::Batch => make_statement(dialect, sql, scalars, columns)?.into(),
            Form::LookUp => make_look_up(dialect, sql, scalars, columns)?.into(),
        };
        if made.len() >= MAX_MADE {
            made.clear();
        }
        made.entry(sql.into()).or_default().push(Made {
            key,
            kinds: columns.iter().map(Column::kind).collect(),
            text: Rc::clone(&text),
        });
        Ok(text)
    })
}

/// A statement's text, and its inputs other than the source.
struct Made {
    /// The database, and the number of parameters before the columns.
    key: (Dialect, usize, Form),
    kinds: Vec<&'static str>,
    text: Rc<str>,
}

/// More than the program has. Sources that are generated at run time must not fill memory.
const MAX_MADE: usize = 1_000;

fn make_statement(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
) -> Result<String, DbError> {
    let (start, rest) = sql.split_once("{rows").unwrap_or_default();
    let Some((word, end)) = rest.split_once('}') else {
        return Err(DbError::Type("a batch's statement needs `{rows}`".into()));
    };
    let table = Table::parse(word, columns.len());
    if table.is_none() && !word.is_empty() {
        return Err(DbError::Type(format!(
            "a batch does not fit `{{rows{word}}}`"
        )));
    }
    let text = match (dialect, table) {
        (Dialect::Postgres, table) => {
            let batch = format!("unnest({})", arrays(scalars, columns));
            let is_counted = columns.iter().any(|c| matches!(c, Column::Counted(..)));
            match table {
                None if is_counted => format!("{start}{}{end}", counted(&batch, columns, None)),
                None => format!("{start}select * from {batch}{end}"),
                Some(table) if is_counted => {
                    let batch = counted(&batch, columns, Some(&table));
                    format!("{start}({batch}) as {}{end}", table.name)
                }
                Some(Table { name, columns }) => {
                    format!("{start}{batch} as {name}({}){end}", columns.join(", "))
                }
            }
        }
        (Dialect::Sqlite, None) => {
            let row = joined((1..=columns.len()).map(|n| format!("${}", scalars + n)));
            format!("{start}values ({row}){end}")
        }
        (Dialect::Sqlite, Some(table)) => match start.trim_end().strip_suffix("from") {
            Some(update) if sql.starts_with("update") && end.trim_start().starts_with("where") => {
                table.put_into(&format!("{update}{}", end.trim_start()), scalars)
            }
            _ => {
                let row = (1..).zip(&table.columns);
                let row = joined(row.map(|(n, name)| format!("${} as {name}", scalars + n)));
                format!("{start}(select {row}) as {}{end}", table.name)
            }
        },
    };
    Ok(dialect.expand(&text)?.into_owned())
}

/// A query for the rows of a batch on PostgreSQL, with the values of its columns, under the names
/// of `table` if it is given.
fn counted(batch: &str, columns: &[Column<'_>], table: Option<&Table<'_>>) -> String {
    let names = || (1..=columns.len()).map(|number| format!("c{number}"));
    let values = names()
        .zip(columns)
        .enumerate()
        .map(|(index, (name, column))| {
            let value = column.expression(&name);
            match table {
                Some(table) => format!("{value} as {}", table.columns[index]),
                None => value,
            }
        });
    format!(
        "select {} from {batch} as batch({})",
        joined(values),
        joined(names())
    )
}

fn make_look_up(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
) -> Result<String, DbError> {
    let mut used = false;
    let text = dialect.expand_with(sql, |word, out| {
        let number = word.strip_prefix("row ").and_then(|n| n.parse().ok());
        let Some(number @ 1..) = number.filter(|number: &usize| *number <= columns.len()) else {
            return false;
        };
        used = true;
        out.push_str(&match dialect {
            Dialect::Sqlite => format!("${}", scalars + number),
            Dialect::Postgres => format!("batch.c{number}"),
        });
        true
    })?;
    if !used {
        return Err(DbError::Type(
            "a look-up's statement needs `{row 1}`".into(),
        ));
    }
    Ok(match dialect {
        Dialect::Sqlite => format!("{text} limit 1"),
        Dialect::Postgres => {
            let names = joined((1..=columns.len()).map(|number| format!("c{number}")));
            format!(
                "select found.* from unnest({}) as batch({names})
                 cross join lateral ({text} limit 1) as found",
                arrays(scalars, columns)
            )
        }
    })
}

/// The batch's columns as parameters. They are cast, because a column of nulls has no type.
fn arrays(scalars: usize, columns: &[Column<'_>]) -> String {
    let columns = (1..).zip(columns);
    joined(columns.map(|(n, column)| format!("${}::{}", scalars + n, column.array_type())))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// The batch as a table: the ` as r(a, b)` of `{rows as r(a, b)}`.
struct Table<'a> {
    name: &'a str,
    columns: Vec<&'a str>,
}

impl Table<'_> {
    fn parse(word: &str, columns: usize) -> Option<Table<'_>> {
        let table = word.strip_prefix(" as ")?.strip_suffix(')')?;
        let (name, names) = table.split_once('(')?;
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        (names.len() == columns).then_some(Table {
            name: name.trim(),
            columns: names,
        })
    }

    /// The text with parameters in place of `r.a` and `r.b`. For an update from a batch, SQLite
    /// would first make a table of each row, which takes twice the time of the update.
    fn put_into(&self, text: &str, scalars: usize) -> String {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(is_name) {
            let (before, word) = rest.split_at(at);
            let (word, after) = word.split_at(word.find(|c| !is_name(c)).unwrap_or(word.len()));
            let column = after.strip_prefix('.').filter(|_| word == self.name);
            let column = column.map(|column| {
                column.split_at(column.find(|c| !is_name(c)).unwrap_or(column.len()))
            });
            let number = |name| self.columns.iter().position(|column| *column == name);
            out.push_str(before);
            rest = match column.and_then(|(name, after)| Some((number(name)?, after))) {
                Some((index, after)) => {
                    out.push_str(&format!("${}", scalars + 1 + index));
                    after
                }
                None => {
                    out.push_str(word);
                    after
                }
            };
        }
        out + rest
    }
}
