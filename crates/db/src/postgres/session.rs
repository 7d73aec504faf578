use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Client, Statement};

use super::error::{classify, is_ended};
use super::param::Param;
use crate::batch::Column;
use crate::error::DbError;
use crate::row::Row;
use crate::value::{ToValue, ValueRef};

/// A connection with its prepared statements.
pub(crate) struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
    broken: bool,
}

impl Session {
    pub(crate) fn new(client: Client) -> Session {
        Session {
            client,
            statements: HashMap::new(),
            broken: false,
        }
    }

    /// Runs a statement that gives no rows.
    pub(crate) fn execute(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
    ) -> Result<u64, DbError> {
        let statement = self.prepare(sql, params.len(), columns.len())?;
        if !statement.columns().is_empty() {
            return Err(DbError::Type(
                "`execute` ran a statement that gives rows: use `query`".into(),
            ));
        }
        let params = bind(params, columns);
        let result = self.client.execute(&statement, &references(&params));
        result.map_err(|error| self.failed(&error))
    }

    pub(crate) fn each(
        &mut self,
        sql: &str,
        params: &[&dyn ToValue],
        columns: &[Column<'_>],
        row: &mut dyn FnMut(&Row<'_>) -> Result<(), DbError>,
    ) -> Result<(), DbError> {
        let statement = self.prepare(sql, params.len(), columns.len())?;
        let params = bind(params, columns);
        let result = self.client.query(&statement, &references(&params));
        let rows = result.map_err(|error| self.failed(&error))?;
        rows.iter().try_for_each(|found| row(&Row::postgres(found)))
    }

    /// Runs statements without parameters.
    pub(crate) fn script(&mut self, sql: &str) -> Result<(), DbError> {
        self.client
            .batch_execute(sql)
            .map_err(|error| self.failed(&error))
    }

    /// Commits. Only an error that came from the server says that nothing was committed.
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

    /// Rolls back; if even that fails, the connection goes, and the transaction with it.
    pub(crate) fn roll_back(&mut self) {
        if !self.is_broken() && self.script("rollback").is_err() {
            self.broken = true;
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken || self.client.is_closed()
    }

    fn prepare(&mut self, sql: &str, params: usize, columns: usize) -> Result<Statement, DbError> {
        let statement = match self.statements.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self
                    .client
                    .prepare(sql)
                    .map_err(|error| self.failed(&error))?;
                if self.statements.len() >= STATEMENTS {
                    self.statements.clear();
                }
                self.statements.insert(sql.to_owned(), statement.clone());
                statement
            }
        };
        let wanted = statement.params().len();
        if wanted != params + columns {
            let wanted = wanted.saturating_sub(columns);
            return Err(DbError::Type(format!(
                "the statement has {wanted} parameters, but {params} were given"
            )));
        }
        Ok(statement)
    }

    fn failed(&mut self, error: &postgres::Error) -> DbError {
        let meaning = classify(error);
        if meaning == DbError::StalePlan {
            self.statements.clear();
        }
        if is_ended(&meaning) {
            self.broken = true;
        }
        meaning
    }
}

fn bind<'a>(params: &'a [&dyn ToValue], columns: &'a [Column<'a>]) -> Vec<Param<'a>> {
    let scalars = params.iter().map(|param| Param(param.to_value()));
    let lists = columns.iter().map(|column| Param(ValueRef::List(column)));
    scalars.chain(lists).collect()
}

fn references<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params
        .iter()
        .map(|param| param as &(dyn ToSql + Sync))
        .collect()
}

/// A program has fewer statements than this; if not, they are all prepared anew.
const STATEMENTS: usize = 256;
