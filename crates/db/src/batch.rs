use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use crate::dialect::Dialect;
use crate::error::DbError;
use crate::value::{ValueRef, check_text};

/// One column of a batch, or a list for `{in $n}`: values of one type, some of them null.
#[derive(Clone, Debug)]
pub enum Column<'a> {
    /// Integers.
    I64(Vec<Option<i64>>),
    /// Texts, borrowed: a batch of large posts is not copied to be sent.
    Text(Vec<Option<&'a str>>),
    /// Byte strings.
    Blob(Vec<Option<&'a [u8]>>),
    /// Truth values.
    Bool(Vec<Option<bool>>),
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

    /// A column of `&[u8]` or `Option<&[u8]>`.
    pub fn blob<T: Into<Option<&'a [u8]>>>(values: impl IntoIterator<Item = T>) -> Column<'a> {
        Column::Blob(values.into_iter().map(Into::into).collect())
    }

    /// A column of `bool` or `Option<bool>`.
    pub fn bool<T: Into<Option<bool>>>(values: impl IntoIterator<Item = T>) -> Column<'a> {
        Column::Bool(values.into_iter().map(Into::into).collect())
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        match self {
            Column::I64(values) => values.len(),
            Column::Text(values) => values.len(),
            Column::Blob(values) => values.len(),
            Column::Bool(values) => values.len(),
        }
    }

    /// Whether it holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`; null past the end.
    pub(crate) fn value(&self, index: usize) -> ValueRef<'_> {
        fn at<T: Copy>(values: &[Option<T>], index: usize) -> Option<T> {
            values.get(index).copied().flatten()
        }
        let value = match self {
            Column::I64(values) => at(values, index).map(ValueRef::I64),
            Column::Text(values) => at(values, index).map(ValueRef::Text),
            Column::Blob(values) => at(values, index).map(ValueRef::Blob),
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
            Column::I64(_) => "bigint[]",
            Column::Text(_) => "text[]",
            Column::Blob(_) => "bytea[]",
            Column::Bool(_) => "boolean[]",
        }
    }
}

/// The number of rows of a batch.
pub(crate) fn rows(columns: &[Column<'_>]) -> Result<usize, DbError> {
    let Some(first) = columns.first() else {
        return Err(DbError::Type("a batch needs a column".into()));
    };
    for column in columns {
        if column.len() != first.len() {
            return Err(DbError::Type("a batch's columns differ in length".into()));
        }
        column.check()?;
    }
    Ok(first.len())
}

/// A batch's statement for one database; the columns' parameters follow the `scalars` first ones.
pub(crate) fn statement(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
) -> Result<Rc<str>, DbError> {
    made_once((dialect, scalars), sql, columns, || {
        make_statement(dialect, sql, scalars, columns)
    })
}

/// The statement that looks a row up for each row of a batch.
pub(crate) fn look_up(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
) -> Result<Rc<str>, DbError> {
    made_once((dialect, scalars), sql, columns, || {
        make_look_up(dialect, sql, scalars, columns)
    })
}

/// A statement's text is made once in each thread.
fn made_once(
    form: (Dialect, usize),
    sql: &str,
    columns: &[Column<'_>],
    make: impl FnOnce() -> Result<String, DbError>,
) -> Result<Rc<str>, DbError> {
    thread_local! {
        static MADE: RefCell<HashMap<Box<str>, Vec<Made>>> = RefCell::default();
    }
    let is_of = |types: &[&str]| {
        let own = columns.iter().map(Column::array_type);
        types.iter().copied().eq(own)
    };
    MADE.with_borrow_mut(|made| {
        let known = made.get(sql).and_then(|forms| {
            let fits = |made: &&Made| made.form == form && is_of(&made.types);
            forms.iter().find(fits)
        });
        if let Some(known) = known {
            return Ok(Rc::clone(&known.text));
        }
        let text: Rc<str> = make()?.into();
        if made.len() >= MAX_MADE {
            made.clear();
        }
        let types = columns.iter().map(Column::array_type).collect();
        let forms = made.entry(sql.into()).or_default();
        forms.push(Made {
            form,
            types,
            text: Rc::clone(&text),
        });
        Ok(text)
    })
}

/// A statement's text, and its inputs other than the source.
struct Made {
    /// The database, and how many parameters come before the columns.
    form: (Dialect, usize),
    types: Vec<&'static str>,
    text: Rc<str>,
}

/// More than the program has; sources that are made up as it runs must not fill memory.
const MAX_MADE: usize = 1_000;

fn make_statement(
    dialect: Dialect,
    sql: &str,
    scalars: usize,
    columns: &[Column<'_>],
) -> Result<String, DbError> {
    let mut used = false;
    let text = dialect.expand_with(sql, |word, out| {
        let Some(form) = Form::parse(word, columns.len()) else {
            return false;
        };
        used = true;
        out.push_str(&match dialect {
            Dialect::Sqlite => form.of_one_row(scalars),
            Dialect::Postgres => form.of_all_rows(scalars, columns),
        });
        true
    })?;
    if !used {
        return Err(DbError::Type("a batch's statement needs `{rows}`".into()));
    }
    Ok(text.into_owned())
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
            let names = (1..=columns.len()).map(|number| format!("c{number}"));
            format!(
                "select found.* from unnest({}) as batch({})
                 cross join lateral ({text} limit 1) as found",
                arrays(scalars, columns),
                names.collect::<Vec<_>>().join(", ")
            )
        }
    })
}

/// The batch's columns as parameters. They are cast, because one of nulls only would have no type.
fn arrays(scalars: usize, columns: &[Column<'_>]) -> String {
    let arrays = columns.iter().zip(1..);
    let arrays = arrays.map(|(column, n)| format!("${}::{}", scalars + n, column.array_type()));
    arrays.collect::<Vec<_>>().join(", ")
}

/// The form of a batch in a statement.
enum Form<'a> {
    /// `{rows}`, or `{rows after $1, $2}`: an insert's source, each row after some parameters.
    Source {
        before: Option<&'a str>,
        columns: usize,
    },
    /// `{rows as r(a, b)}`: a table.
    Table {
        name: &'a str,
        columns: Vec<&'a str>,
    },
}

impl Form<'_> {
    fn parse(word: &str, columns: usize) -> Option<Form<'_>> {
        let rest = word.strip_prefix("rows")?;
        if rest.is_empty() {
            return Some(Form::Source {
                before: None,
                columns,
            });
        }
        if let Some(before) = rest.strip_prefix(" after ") {
            return Some(Form::Source {
                before: Some(before),
                columns,
            });
        }
        let (name, names) = rest
            .strip_prefix(" as ")?
            .strip_suffix(')')?
            .split_once('(')?;
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        (names.len() == columns).then_some(Form::Table {
            name: name.trim(),
            columns: names,
        })
    }

    fn of_one_row(&self, scalars: usize) -> String {
        match self {
            Form::Source { before, columns } => {
                let before = before.iter().map(ToString::to_string);
                let row = (1..=*columns).map(|n| format!("${}", scalars + n));
                format!(
                    "values ({})",
                    before.chain(row).collect::<Vec<_>>().join(", ")
                )
            }
            Form::Table { name, columns } => {
                let row = columns.iter().zip(1..);
                let row = row.map(|(column, n)| format!("${} as {column}", scalars + n));
                format!("(select {}) as {name}", row.collect::<Vec<_>>().join(", "))
            }
        }
    }

    fn of_all_rows(&self, scalars: usize, columns: &[Column<'_>]) -> String {
        let arrays = arrays(scalars, columns);
        match self {
            Form::Source { before: None, .. } => format!("select * from unnest({arrays})"),
            Form::Source {
                before: Some(before),
                ..
            } => {
                format!("select {before}, batch.* from unnest({arrays}) as batch")
            }
            Form::Table { name, columns } => {
                format!("unnest({arrays}) as {name}({})", columns.join(", "))
            }
        }
    }
}
