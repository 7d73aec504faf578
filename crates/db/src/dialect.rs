use std::borrow::Cow;

use crate::error::DbError;

/// The database in use, and the few words of SQL in which the two differ.
///
/// In every statement and migration, a word in braces outside quotes is replaced:
///
/// | word | SQLite | PostgreSQL |
/// |---|---|---|
/// | `{i64}` `{bool}` `{blob}` | `integer` `integer` `blob` | `bigint` `boolean` `bytea` |
/// | `{i64_array}` | `text` | `bigint[]` |
/// | `{strict}` | `strict` | |
/// | `{clustered}` | `strict, without rowid` | |
/// | `{fillfactor 80}` | | `with (fillfactor = 80)` |
/// | `{collate_c}` | | `collate "C"` |
/// | `{skip_locked}` | | `for update skip locked` |
/// | `{greatest}` `{least}` | `max` `min` | `greatest` `least` |
/// | `{in $1}` | `in (select value from rarray($1))` | `= any($1)` |
/// | `{in_long $1}` | `in (select value from rarray($1))` | `in (select unnest($1::bigint[]))` |
/// | `{key a, b + c}` | `a, b` | `a, b, c` |
/// | `{postgresql …}` | | … |
/// | `{sqlite …}` | … | |
///
/// `{strict}`, `{clustered}` and `{fillfactor …}` follow the closing parenthesis of a `create
/// table`. `{in_long …}` is for thousands of integers that filter rows found by other conditions:
/// PostgreSQL hashes the integers. It compares each row with each value of `{in …}`, but may use an
/// index for these instead. `{key …}` lists a key's columns. PostgreSQL also gets the columns by
/// which it may be distributed. `{postgresql …}` and `{sqlite …}` are for
/// migrations. `{greatest}` takes arguments
/// that are never null (the databases treat null differently). Batches add `{rows}`: see
/// [`crate::Tx::execute_many`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The embedded database.
    Sqlite,
    /// A PostgreSQL server.
    Postgres,
}

impl Dialect {
    /// The statement's text for this database.
    pub(crate) fn expand(self, sql: &str) -> Result<Cow<'_, str>, DbError> {
        self.expand_with(sql, |_, _| false)
    }

    /// Like [`Dialect::expand`]. `extra` may replace further words, and returns true if it knew the
    /// word.
    pub(crate) fn expand_with<'a>(
        self,
        sql: &'a str,
        mut extra: impl FnMut(&str, &mut String) -> bool,
    ) -> Result<Cow<'a, str>, DbError> {
        if !sql.contains('{') {
            return Ok(Cow::Borrowed(sql));
        }
        let mut out = String::with_capacity(sql.len() + 64);
        let mut rest = sql;
        while let Some(at) = rest.find(['{', '\'', '"', '-']) {
            let (before, tail) = rest.split_at(at);
            out.push_str(before);
            let skipped = if tail.starts_with('\'') {
                quoted(tail, '\'')
            } else if tail.starts_with('"') {
                quoted(tail, '"')
            } else if tail.starts_with("--") {
                tail.find('\n').unwrap_or(tail.len())
            } else if tail.starts_with('-') {
                1
            } else {
                let end = tail.find('}').ok_or_else(|| unknown(tail))?;
                let word = &tail[1..end];
                if !self.word(word, &mut out) && !extra(word, &mut out) {
                    return Err(unknown(word));
                }
                rest = &tail[end + 1..];
                continue;
            };
            out.push_str(&tail[..skipped]);
            rest = &tail[skipped..];
        }
        out.push_str(rest);
        Ok(Cow::Owned(out))
    }

    fn word(self, word: &str, out: &mut String) -> bool {
        let (name, argument) = word.split_once(' ').unwrap_or((word, ""));
        let (sqlite, postgres) = match (name, argument) {
            ("i64", "") => ("integer", "bigint"),
            ("bool", "") => ("integer", "boolean"),
            ("blob", "") => ("blob", "bytea"),
            ("i64_array", "") => ("text", "bigint[]"),
            ("strict", "") => ("strict", ""),
            ("clustered", "") => ("strict, without rowid", ""),
            ("collate_c", "") => ("", "collate \"C\""),
            ("skip_locked", "") => ("", "for update skip locked"),
            ("greatest", "") => ("max", "greatest"),
            ("least", "") => ("min", "least"),
            ("fillfactor", percent) if percent.parse::<u8>().is_ok() => {
                if self == Dialect::Postgres {
                    out.push_str(&format!("with (fillfactor = {percent})"));
                }
                return true;
            }
            ("in", parameter) if parameter.starts_with('$') => {
                out.push_str(&match self {
                    Dialect::Sqlite => format!("in (select value from rarray({parameter}))"),
                    Dialect::Postgres => format!("= any({parameter})"),
                });
                return true;
            }
            ("in_long", parameter) if parameter.starts_with('$') => {
                out.push_str(&match self {
                    Dialect::Sqlite => format!("in (select value from rarray({parameter}))"),
                    Dialect::Postgres => format!("in (select unnest({parameter}::bigint[]))"),
                });
                return true;
            }
            ("key", columns) => {
                let Some((columns, more)) = columns.split_once(" + ") else {
                    return false;
                };
                out.push_str(columns);
                if self == Dialect::Postgres {
                    out.push_str(", ");
                    out.push_str(more);
                }
                return true;
            }
            ("postgresql", text) if !text.is_empty() => {
                if self == Dialect::Postgres {
                    out.push_str(text);
                }
                return true;
            }
            ("sqlite", text) if !text.is_empty() => {
                if self == Dialect::Sqlite {
                    out.push_str(text);
                }
                return true;
            }
            _ => return false,
        };
        out.push_str(match self {
            Dialect::Sqlite => sqlite,
            Dialect::Postgres => postgres,
        });
        true
    }
}

/// The length of the quoted text at the start of `text`. A doubled quote counts as two texts.
fn quoted(text: &str, quote: char) -> usize {
    text[1..].find(quote).map_or(text.len(), |end| end + 2)
}

fn unknown(word: &str) -> DbError {
    DbError::Other(format!("unknown word in a statement: {{{word}"))
}
