//! The statements that a database's transactions send to PostgreSQL, and their plans.

use std::panic::Location;

use crate::batch::Column;
use crate::error::DbError;
use crate::options::Target;
use crate::postgres::{Server, Session, SessionPurpose};
use crate::tx::{Beside, Tx};
use crate::value::{ToValue, ValueRef};

/// A statement on its way to PostgreSQL.
#[derive(Clone, Copy)]
pub struct SentStatement<'a> {
    /// Its text as the server gets it.
    pub sql: &'a str,
    /// Where the transaction was asked to send it.
    pub caller: &'static Location<'static>,
    params: &'a [&'a dyn ToValue],
    columns: &'a [Column<'a>],
}

impl SentStatement<'_> {
    /// Its parameters, each as SQL text that can stand for a value of any type.
    pub fn literals(&self) -> Vec<String> {
        let scalars = self.params.iter().map(|param| literal(param.to_value()));
        let lists = self.columns.iter().map(|column| literal_list(column));
        scalars.chain(lists).collect()
    }

    /// How many values its lists have together.
    pub fn list_length(&self) -> usize {
        let of_param = |param: &&dyn ToValue| match param.to_value() {
            ValueRef::List(column) => column.len(),
            _ => 0,
        };
        let in_params: usize = self.params.iter().map(of_param).sum();
        in_params + self.columns.iter().map(Column::len).sum::<usize>()
    }
}

/// Is told of each statement before it is sent: see [`crate::Db::watch_statements`].
pub type StatementWatcher = Box<dyn Fn(SentStatement<'_>) + Send + Sync>;

/// Whom a transaction tells of a statement, and who asked for it.
pub(crate) struct Sender<'a> {
    watcher: Option<&'a StatementWatcher>,
    caller: &'static Location<'static>,
}

impl<'a> Sender<'a> {
    #[track_caller]
    pub(crate) fn of(beside: Option<&'a dyn Beside>) -> Sender<'a> {
        Sender {
            watcher: beside.and_then(Beside::watcher),
            caller: Location::caller(),
        }
    }

    /// A batch without rows is not sent.
    pub(crate) fn sends(&self, sql: &str, params: &[&dyn ToValue], columns: &[Column<'_>]) {
        if let Some(watcher) = self.watcher
            && !columns.first().is_some_and(Column::is_empty)
        {
            watcher(SentStatement {
                sql,
                caller: self.caller,
                params,
                columns,
            });
        }
    }
}

/// The server's plan of each statement with the values that its parameters have, as
/// [`SentStatement::literals`] gives them: the plan's lines, or why the server has none. Changes nothing.
///
/// # Errors
/// If PostgreSQL cannot be reached. A SQLite file has no such plans.
pub fn explain(
    target: &Target,
    statements: &[(&str, &[String])],
) -> Result<Vec<Result<Vec<String>, DbError>>, DbError> {
    let Target::Postgres { url, schema } = target else {
        return Err(DbError::Type("only PostgreSQL's plans are read".into()));
    };
    let mut session = Server::new(url, schema.as_deref())?.connect(SessionPurpose::Read)?;
    // Other values may mean another plan.
    session.script("set plan_cache_mode = force_custom_plan")?;
    let plans = statements
        .iter()
        .enumerate()
        .map(|(number, (sql, literals))| {
            session.begin("begin");
            let mut tx = Tx::postgres(&mut session);
            let name = format!("explained_{number}");
            let plan = tx
                .script(&format!("prepare {name} as {sql}"))
                .and_then(|()| {
                    let values = match literals.is_empty() {
                        true => String::new(),
                        false => format!("({})", literals.join(", ")),
                    };
                    lines(&mut tx, &format!("execute {name}{values}"))
                });
            session.roll_back();
            match plan {
                // Citus plans some statements for no parameters when it explains them.
                Err(_) if !literals.is_empty() => {
                    let types = types(&mut session, &name)?;
                    session.begin("begin");
                    let sql = with_values(sql, literals, &types);
                    let plan = lines(&mut Tx::postgres(&mut session), &sql);
                    session.roll_back();
                    Ok(plan)
                }
                plan => Ok(plan),
            }
        });
    plans.collect()
}

fn lines(tx: &mut Tx<'_>, statement: &str) -> Result<Vec<String>, DbError> {
    let explain = format!("explain (costs off) {statement}");
    tx.query(&explain, &[], |row| row.text("QUERY PLAN"))
}

/// The types of a prepared statement's parameters; none if it could not be prepared.
fn types(session: &mut Session, name: &str) -> Result<Vec<String>, DbError> {
    session.begin("begin");
    let types = Tx::postgres(session).query(
        "select of_one::text as type from pg_prepared_statements
         cross join unnest(parameter_types) with ordinality as all_types(of_one, number)
         where name = $1 order by number",
        &[&name],
        |row| row.text("type"),
    );
    session.roll_back();
    types
}

/// A statement with each parameter's value in its place.
fn with_values(sql: &str, literals: &[String], types: &[String]) -> String {
    let mut parts = sql.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        let (number, rest) = part.split_at(end);
        let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
        let value = index.and_then(|index| Some((literals.get(index)?, types.get(index)?)));
        match value {
            Some((literal, kind)) => out.push_str(&format!("cast({literal} as {kind}){rest}")),
            None => out.push_str(&format!("${part}")),
        }
    }
    out
}

fn literal(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::I64(number) => format!("'{number}'"),
        ValueRef::Text(text) => quoted(text),
        ValueRef::Blob(bytes) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("'\\x{digits}'")
        }
        ValueRef::Bool(is) => format!("'{is}'"),
        ValueRef::List(column) => literal_list(column),
    }
}

fn literal_list(column: &Column<'_>) -> String {
    let element = |index| match column.value(index) {
        ValueRef::I64(number) => number.to_string(),
        ValueRef::Bool(is) => is.to_string(),
        ValueRef::Text(text) => {
            let escaped = text.replace('\\', r"\\").replace('"', "\\\"");
            format!("\"{escaped}\"")
        }
        ValueRef::Null | ValueRef::Blob(_) | ValueRef::List(_) => "NULL".to_owned(),
    };
    let elements: Vec<String> = (0..column.len()).map(element).collect();
    quoted(&format!("{{{}}}", elements.join(",")))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::options::Root;
    use crate::testing::Fresh;

    #[test]
    fn literals_are_what_postgresql_reads() {
        let texts = Column::text([Some(r#"it's "a\b""#), None]);
        assert_eq!(literal(ValueRef::I64(-5)), "'-5'");
        assert_eq!(literal(ValueRef::Null), "null");
        assert_eq!(literal(ValueRef::Text("it's")), "'it''s'");
        assert_eq!(literal(ValueRef::Blob(&[0, 255])), r"'\x00ff'");
        assert_eq!(literal(ValueRef::Bool(true)), "'true'");
        let list = r#"'{"it''s \"a\\b\"",NULL}'"#;
        assert_eq!(literal(ValueRef::List(&texts)), list);
        assert_eq!(literal_list(&Column::i64([Some(1), None])), "'{1,NULL}'");
    }

    #[test]
    fn values_take_the_places_of_parameters() {
        let literals = ["'1'".to_owned(), "'{$1}'".to_owned()];
        let types = ["bigint".to_owned(), "text[]".to_owned()];
        let text = with_values("select $2, $1::int4 from t where a=$1", &literals, &types);
        let one = "cast('1' as bigint)";
        let expected = format!("select cast('{{$1}}' as text[]), {one}::int4 from t where a={one}");
        assert_eq!(text, expected);
        assert_eq!(
            with_values("select '$', $3", &literals, &types),
            "select '$', $3"
        );
    }

    #[test]
    fn a_watcher_hears_of_what_is_sent_and_by_whom() {
        let fresh = Fresh::postgres();
        let db = fresh.open(&[]);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&heard);
        db.watch_statements(Box::new(move |sent| {
            let of_this_file = sent.caller.file() == file!();
            let mut list = list.lock().expect("no panic");
            list.push((sent.sql.to_owned(), sent.literals(), of_this_file));
        }));
        let sql = "select cast($1 as bigint) as n where cast(2 as bigint) {in $2}";
        let numbers = db.write_blocking(Root::none(), move |tx| {
            let none = Column::i64(Vec::<i64>::new());
            tx.execute_many("select 1 from {rows as r(a)}", &[], &[none])?;
            tx.query(sql, &[&7_i64, &Column::i64([1, 2])], |row| row.i64("n"))
        });
        assert_eq!(numbers, Ok(vec![7]));
        let heard = heard.lock().expect("no panic").clone();
        let (sql, literals, _) = &heard[0];
        assert_eq!(
            sql,
            "select cast($1 as bigint) as n where cast(2 as bigint) = any($2)"
        );
        assert_eq!(literals, &["'7'", "'{1,2}'"]);
        assert!(heard[0].2 && heard.len() == 1, "{heard:?}");
        let plans = explain(&fresh.target, &[(sql, literals), ("select missing", &[])]);
        let plans = plans.expect("a connection");
        let plan = plans[0].as_ref().expect("a plan").join("\n");
        assert!(plan.contains("Result"), "{plan}");
        assert!(plans[1].is_err());
        db.close_blocking();
    }
}
