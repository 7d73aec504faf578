use crate::dialect::Dialect;
use crate::error::DbError;
use crate::tx::Tx;

/// A table as both databases see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// In order of their names.
    pub columns: Vec<TableColumn>,
    /// The primary key's columns, in order.
    pub primary_key: Vec<String>,
    /// In order of their columns; constraints' indexes among them, but not the primary key's.
    pub indexes: Vec<Index>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// Whether it may be null.
    pub nullable: bool,
}

/// A column's type, as far as both databases report it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `bigint` or `boolean`, which SQLite does not distinguish.
    Integer,
    /// Text.
    Text,
    /// Bytes.
    Blob,
    /// A type that the two databases do not share.
    Other(String),
}

/// An index. Its name is left out: constraints name theirs in each database's own way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// The columns, in order; an expression is an empty name.
    pub columns: Vec<String>,
    /// Whether it refuses equal rows.
    pub unique: bool,
    /// Whether it covers only some rows.
    pub partial: bool,
}

/// The tables of the database, in order of their names, without the migrations' own.
pub fn schema(tx: &mut Tx<'_>) -> Result<Vec<Table>, DbError> {
    let queries = match tx.dialect() {
        Dialect::Sqlite => &SQLITE,
        Dialect::Postgres => &POSTGRES,
    };
    let names = tx.query(queries.tables, &[], |row| row.text(0))?;
    names
        .into_iter()
        .map(|name| table(tx, queries, name))
        .collect()
}

fn table(tx: &mut Tx<'_>, queries: &Queries, name: String) -> Result<Table, DbError> {
    let columns = tx.query(queries.columns, &[&name], |row| {
        let kind = match row.str(1)?.to_ascii_lowercase().as_str() {
            "integer" | "int" | "bigint" | "boolean" => Kind::Integer,
            "text" => Kind::Text,
            "blob" | "bytea" => Kind::Blob,
            other => Kind::Other(other.to_owned()),
        };
        Ok(TableColumn {
            name: row.text(0)?,
            kind,
            nullable: row.bool(2)?,
        })
    })?;
    let primary_key = tx.query(queries.primary_key, &[&name], |row| row.text(0))?;
    let parts = tx.query(queries.indexes, &[&name], |row| {
        Ok((
            row.text(0)?,
            row.bool(1)?,
            row.bool(2)?,
            row.opt_text(3)?.unwrap_or_default(),
        ))
    })?;
    let mut indexes: Vec<(String, Index)> = Vec::new();
    for (index, unique, partial, column) in parts {
        match indexes.last_mut() {
            Some((last, open)) if *last == index => open.columns.push(column),
            _ => indexes.push((
                index,
                Index {
                    columns: vec![column],
                    unique,
                    partial,
                },
            )),
        }
    }
    let mut indexes: Vec<Index> = indexes.into_iter().map(|(_, index)| index).collect();
    indexes.sort();
    Ok(Table {
        name,
        columns,
        primary_key,
        indexes,
    })
}

struct Queries {
    tables: &'static str,
    columns: &'static str,
    primary_key: &'static str,
    indexes: &'static str,
}

const SQLITE: Queries = Queries {
    tables: "select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' \
             escape '\\' and name <> 'migration' order by name",
    columns: "select name, type, not (\"notnull\" or pk > 0) from pragma_table_info($1) order by name",
    primary_key: "select name from pragma_table_info($1) where pk > 0 order by pk",
    indexes: "select l.name, l.\"unique\", l.partial, i.name from pragma_index_list($1) l, \
              pragma_index_info(l.name) i where l.origin <> 'pk' order by l.name, i.seqno",
};

const POSTGRES: Queries = Queries {
    tables: "select c.relname from pg_class c where c.relnamespace = \
             current_schema()::regnamespace and c.relkind in ('r', 'p') \
             and c.relname <> 'migration' order by c.relname::text collate \"C\"",
    columns: "select a.attname, format_type(a.atttypid, null), not a.attnotnull \
              from pg_attribute a join pg_class c on c.oid = a.attrelid \
              where c.relnamespace = current_schema()::regnamespace and c.relname = $1 \
              and a.attnum > 0 and not a.attisdropped order by a.attname::text collate \"C\"",
    primary_key: "select a.attname from pg_index i join pg_class c on c.oid = i.indrelid \
                  cross join unnest(i.indkey::smallint[]) with ordinality as k(number, place) \
                  join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number \
                  where c.relnamespace = current_schema()::regnamespace and c.relname = $1 \
                  and i.indisprimary order by k.place",
    indexes: "select x.relname, i.indisunique, i.indpred is not null, a.attname \
              from pg_index i join pg_class c on c.oid = i.indrelid \
              join pg_class x on x.oid = i.indexrelid \
              cross join unnest(i.indkey::smallint[]) with ordinality as k(number, place) \
              left join pg_attribute a on a.attrelid = c.oid and a.attnum = k.number \
              where c.relnamespace = current_schema()::regnamespace and c.relname = $1 \
              and not i.indisprimary and k.place <= i.indnkeyatts order by x.relname, k.place",
};
