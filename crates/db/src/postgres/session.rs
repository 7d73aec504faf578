use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::maybe_done;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row as ServerRow, Statement};

use super::error::{classify, is_lost_statement};
use super::param::{Encoded, Param};
use super::server::Traits;
use super::statement::Text;
use super::wire::Wire;
use crate::batch::Column;
use crate::error::DbError;
use crate::migrate::when_free;
use crate::row::Row;
use crate::tx::Tx;
use crate::value::{ToValue, ValueRef};

/// A connection with its prepared statements.
///
/// Statements whose result is not awaited are queued and sent with the next query that is awaited.
/// That costs one round trip for any number of statements.
pub(crate) struct Session {
    wire: Wire,
    statements: HashMap<String, Text>,
    waiting: Vec<Waiting>,
    /// The rows of queries that were sent with others and have not been read, by ticket.
    answers: HashMap<u64, Vec<ServerRow>>,
    tickets: u64,
    round_trips: u64,
    traits: Traits,
    /// True if the transaction's plans use keys only; `None` if the connection never needs that.
    goes_by_keys: Option<bool>,
    broken: bool,
}

/// A statement that is sent with the next awaited one.
enum Waiting {
    Begin(String),
    Script(&'static str),
    Statement {
        text: Text,
        params: Vec<Encoded>,
        outcome: Outcome,
    },
}

/// The use of a queued statement's result.
enum Outcome {
    Ignored,
    /// It must return a row. Otherwise this is the error.
    Required(DbError),
    /// Its rows are kept under this ticket.
    Kept(u64),
}

impl Session {
    /// Makes a session. With `by_keys`, a transaction turns off plans that read whole tables before
    /// its first statement over a batch or a list. Such a statement may get its plan, and keep it,
    /// while its tables are small or have no statistics. It would then still read them whole when
    /// they have grown.
    pub(super) fn new(wire: Wire, traits: Traits, by_keys: bool) -> Session {
        Session {
            wire,
            statements: HashMap::new(),
            waiting: Vec::new(),
            answers: HashMap::new(),
            tickets: 0,
            round_trips: 0,
            traits,
            goes_by_keys: by_keys.then_some(false),
            broken: false,
        }
    }

    /// Runs a statement that returns no rows; returns the number of rows that it changed. If
    /// `is_later` is true, it runs at the latest before the next answer or the commit. These fail
    /// if the statement fails, and this function returns 0.
    pub(crate) fn execute(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        is_later: bool,
    ) -> Result<u64, DbError> {
        let text = self.prepare(sql, params.len(), columns.len())?;
        if matches!(&text, Text::Named(statement) if !statement.columns().is_empty()) {
            return Err(DbError::gives_rows());
        }
        if is_later {
            let kept = self.keep_back(text, params, columns, Outcome::Ignored);
            return kept.map(|()| 0);
        }
        let params = bind(params, columns);
        self.plan_by_keys(&params);
        let params = params.iter().map(|param| (param, param.own_type()));
        let (rows, changed) = self.ask(async |client| text.run(client, params).await)?;
        match rows.is_empty() {
            true => Ok(changed),
            false => Err(DbError::gives_rows()),
        }
    }

    /// Runs a query later, as [`Session::execute`] does. The transaction fails if it returns no
    /// row.
    pub(crate) fn require_later(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        else_missing: DbError,
    ) -> Result<(), DbError> {
        let text = self.prepare(sql, params.len(), 0)?;
        self.keep_back(text, params, &[], Outcome::Required(else_missing))
    }

    /// Runs a query later, as [`Session::execute`] does. Returns the ticket by which
    /// [`Session::answer`] reads its rows.
    pub(crate) fn query_later(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
    ) -> Result<u64, DbError> {
        let text = self.prepare(sql, params.len(), columns.len())?;
        self.tickets += 1;
        let ticket = self.tickets;
        self.keep_back(text, params, columns, Outcome::Kept(ticket))?;
        Ok(ticket)
    }

    /// Sends the queued locks.
    pub(crate) fn take_locks(&mut self) -> Result<(), DbError> {
        let is_lock = |waiting: &Waiting| {
            let Waiting::Statement { outcome, .. } = waiting else {
                return false;
            };
            matches!(outcome, Outcome::Required(_))
        };
        match self.waiting.iter().any(is_lock) {
            true => self.ask(async |_| Ok(())),
            false => Ok(()),
        }
    }

    /// Reads the rows of a query that was sent with others. Sends it first if it is still queued.
    pub(crate) fn answer(
        &mut self,
        ticket: u64,
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        if !self.answers.contains_key(&ticket) {
            self.ask(async |_| Ok(()))?;
        }
        let Some(rows) = self.answers.remove(&ticket) else {
            return Err(DbError::Type(
                "these rows are of another transaction".into(),
            ));
        };
        rows.iter().try_for_each(|found| row(&Row::postgres(found)))
    }

    pub(crate) fn each(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let text = self.prepare(sql, params.len(), columns.len())?;
        let params = bind(params, columns);
        self.plan_by_keys(&params);
        let params = params.iter().map(|param| (param, param.own_type()));
        let (rows, _) = self.ask(async |client| text.run(client, params).await)?;
        rows.iter().try_for_each(|found| row(&Row::postgres(found)))
    }

    /// Runs a `copy … to stdout`, and passes on its rows, each with the line's end.
    pub(crate) fn copy_out(
        &mut self,
        sql: &str,
        row: &mut dyn FnMut(&[u8]) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        self.ask(async |client| {
            let mut rows = pin!(client.copy_out(sql).await?);
            let mut cut = Vec::new();
            while let Some(part) = rows.next().await {
                let part = part?;
                for line in part.split_inclusive(|byte| *byte == b'\n') {
                    cut.extend_from_slice(line);
                    if line.ends_with(b"\n") {
                        if let Err(error) = row(&cut) {
                            return Ok(Err(error));
                        }
                        cut.clear();
                    }
                }
            }
            Ok(Ok(()))
        })?
    }

    /// True if a connection pooler is between this process and the server.
    pub(crate) fn is_pooled(&self) -> bool {
        self.traits.is_pooled
    }

    /// Runs statements without parameters.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DbError> {
        self.ask(async |client| client.batch_execute(sql).await)
    }

    /// Begins a transaction together with its first statement.
    pub(crate) fn begin(&mut self, command: &str) {
        self.waiting.clear();
        self.answers.clear();
        let begin = format!("{command}{}", self.traits.settings);
        self.waiting.push(Waiting::Begin(begin));
        self.goes_by_keys = self.goes_by_keys.map(|_| false);
    }

    /// Begins a transaction that excludes other processes that migrate the same schema. Waits at
    /// most `max_wait` for one.
    pub(crate) fn begin_migration(&mut self, max_wait: Duration) -> Result<(), DbError> {
        when_free("another process migrates the database", max_wait, || {
            self.begin("begin");
            let locked =
                Tx::postgres(self).query_one(MIGRATION_LOCK, &[], |row| row.bool("locked"));
            if locked.as_ref().is_ok_and(|locked| *locked) {
                return Ok(());
            }
            self.roll_back();
            locked.and(Err(DbError::Busy(format!(
                "another process has been migrating it for {} s: wait until it has finished, or \
                 end it if it hangs, and then start this program again",
                max_wait.as_secs()
            ))))
        })
    }

    /// Commits. Only an error from the server proves that nothing was committed.
    pub(crate) fn commit(&mut self) -> Result<(), DbError> {
        match self.script("commit") {
            Err(DbError::ConnectionLost(_)) => Err(DbError::CommitUnknown),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Ends a transaction that has only read. Does not wait for the answer, because all results
    /// have arrived.
    pub(super) fn end_read(&mut self) {
        let is_begun = !matches!(self.waiting.first(), Some(Waiting::Begin(_)));
        self.waiting.clear();
        if is_begun && !self.is_broken() {
            self.wire.send("commit");
        }
    }

    /// Rolls back. If that fails, the connection is dropped, which ends the transaction.
    pub(crate) fn roll_back(&mut self) {
        let is_begun = !matches!(self.waiting.first(), Some(Waiting::Begin(_)));
        self.waiting.clear();
        if is_begun && !self.is_broken() && self.script("rollback").is_err() {
            self.broken = true;
        }
    }

    /// The number of awaited answers since the last call.
    pub(super) fn take_round_trips(&mut self) -> u64 {
        mem::take(&mut self.round_trips)
    }

    /// True if the connection is open, as far as is known.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.wire.listen();
        !self.is_broken()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken || self.wire.is_closed()
    }

    /// Sends the queued statements and then the question, and waits for all answers. The first
    /// failure counts: in a transaction, later ones follow from it.
    fn ask<T>(
        &mut self,
        question: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, DbError> {
        let waiting = mem::take(&mut self.waiting);
        self.round_trips += 1;
        let (before, answer) = self.wire.wait(async |client| {
            let mut requests: Vec<_> = waiting
                .iter()
                .map(|waiting| Box::pin(maybe_done(waiting.run(client))))
                .collect();
            let mut question = pin!(maybe_done(question(client)));
            // A request is sent when it is first polled, and answers arrive in the same order.
            poll_fn(|context| {
                for request in &mut requests {
                    let _ = request.as_mut().poll(context);
                }
                let _ = question.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
            let mut before = Vec::with_capacity(requests.len());
            for request in &mut requests {
                request.as_mut().await;
                before.extend(request.as_mut().take_output());
            }
            question.as_mut().await;
            let answer = question.as_mut().take_output().expect("it was awaited");
            (before, answer)
        });
        for (waiting, given) in waiting.into_iter().zip(before) {
            let (rows, count) = given.map_err(|error| self.failed(&error))?;
            let Waiting::Statement { outcome, .. } = waiting else {
                continue;
            };
            match outcome {
                Outcome::Required(missing) if count == 0 => return Err(missing),
                Outcome::Required(_) | Outcome::Ignored => {}
                Outcome::Kept(ticket) => {
                    self.answers.insert(ticket, rows);
                }
            }
        }
        answer.map_err(|error| self.failed(&error))
    }

    fn keep_back(
        &mut self,
        text: Text,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        outcome: Outcome,
    ) -> Result<(), DbError> {
        if self.waiting.len() >= MAX_WAITING {
            self.ask(async |_| Ok(()))?;
        }
        let params = bind(params, columns);
        self.plan_by_keys(&params);
        let kinds: Vec<Type> = match &text {
            Text::Named(statement) => statement.params().to_vec(),
            Text::Unnamed(_) => params.iter().map(Param::own_type).collect(),
        };
        let params = params.iter().zip(kinds).map(|(param, kind)| {
            Encoded::encode(param, kind).map_err(|error| DbError::Type(error.to_string()))
        });
        let params = params.collect::<Result<_, _>>()?;
        self.waiting.push(Waiting::Statement {
            text,
            params,
            outcome,
        });
        Ok(())
    }

    fn plan_by_keys(&mut self, params: &[Param<'_>]) {
        let is_list = |param: &Param<'_>| matches!(param.0, ValueRef::List(_));
        if self.goes_by_keys == Some(false) && params.iter().any(is_list) {
            self.goes_by_keys = Some(true);
            self.waiting.push(Waiting::Script(BY_KEYS));
        }
    }

    fn prepare(&mut self, sql: &str, params: usize, columns: usize) -> Result<Text, DbError> {
        if !self.traits.keeps_statements() {
            return Ok(Text::Unnamed(sql.into()));
        }
        let text = match self.statements.get(sql) {
            Some(text) => text.clone(),
            None => {
                // If connections share their statements, statements of transactions that plan by
                // keys are kept apart.
                let mark = match self.goes_by_keys.is_some() && self.traits.is_pooled {
                    true => "/* by keys */ ",
                    false => "",
                };
                let marked = format!("{mark}{sql}");
                let statement = self.prepare_now(&marked)?;
                if self.statements.len() >= STATEMENTS {
                    self.statements.clear();
                }
                let text = Text::Named(statement);
                self.statements.insert(sql.to_owned(), text.clone());
                text
            }
        };
        if let Text::Named(statement) = &text
            && statement.params().len() != params + columns
        {
            let expected = statement.params().len().saturating_sub(columns);
            return Err(DbError::wrong_count(params, expected));
        }
        Ok(text)
    }

    /// Prepares a statement, without sending the queue: no lock is taken before its answer arrives.
    fn prepare_now(&mut self, sql: &str) -> Result<Statement, DbError> {
        // Behind a pooler the transaction's own settings determine the schema of names.
        let is_unbegun = matches!(self.waiting.first(), Some(Waiting::Begin(_)));
        if self.traits.is_pooled && is_unbegun {
            return self.ask(async |client| client.prepare(sql).await);
        }
        self.round_trips += 1;
        let prepared = self.wire.wait(async |client| client.prepare(sql).await);
        prepared.map_err(|error| self.failed(&error))
    }

    fn failed(&mut self, error: &Error) -> DbError {
        let meaning = classify(error);
        if meaning == DbError::StalePlan {
            self.statements.clear();
        }
        if is_lost_statement(error) {
            self.traits.lose_statements();
        }
        // The server has ended the connection.
        if matches!(meaning, DbError::ConnectionLost(_)) {
            self.broken = true;
        }
        meaning
    }
}

impl Waiting {
    /// Runs the statement; returns its rows, and the number of rows that it returned or changed.
    async fn run(&self, client: &Client) -> Result<(Vec<ServerRow>, u64), Error> {
        let nothing = |()| (Vec::new(), 0);
        match self {
            Waiting::Begin(sql) => client.batch_execute(sql).await.map(nothing),
            Waiting::Script(sql) => client.batch_execute(sql).await.map(nothing),
            Waiting::Statement { text, params, .. } => {
                let params = params.iter().map(|param| (param, param.kind.clone()));
                text.run(client, params).await
            }
        }
    }
}

fn bind<'a>(params: &'a [&dyn ToValue], columns: &'a [Column<'a>]) -> Vec<Param<'a>> {
    let scalars = params.iter().map(|param| Param(param.to_value()));
    let lists = columns.iter().map(|column| Param(ValueRef::List(column)));
    scalars.chain(lists).collect()
}

/// Held until the commit. The first number is this program's own.
const MIGRATION_LOCK: &str = "select pg_try_advisory_xact_lock(1147365958, \
    current_schema()::regnamespace::oid::int4) as locked";
/// One statement, because each costs time on the server.
const BY_KEYS: &str = "select set_config('enable_seqscan', 'off', true), \
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)";
/// A program has fewer statements than this. If it has more, all are prepared again.
const STATEMENTS: usize = 256;
/// Limits the queue in memory.
const MAX_WAITING: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migrate::MAX_OPENING_WAIT;
    use crate::options::Target;
    use crate::postgres::{Server, SessionPurpose};
    use crate::testing::Fresh;

    #[test]
    fn a_migration_waits_for_another_ones_and_not_for_ever() {
        let Target::Postgres { url, schema } = Fresh::postgres().target else {
            unreachable!("it is PostgreSQL");
        };
        let server = Server::new(&url, schema.as_deref()).expect("a good URL");
        server.prepare().expect("a schema");
        let connect = || server.connect(SessionPurpose::Migrate).expect("a session");
        let (mut first, mut second) = (connect(), connect());
        first.begin_migration(MAX_OPENING_WAIT).expect("it is free");
        let refused = second.begin_migration(Duration::from_millis(40));
        assert!(
            matches!(&refused, Err(DbError::Busy(advice)) if advice.contains("end it if it hangs")),
            "{refused:?}"
        );
        first.commit().expect("a commit");
        second
            .begin_migration(MAX_OPENING_WAIT)
            .expect("it is free");
    }
}
