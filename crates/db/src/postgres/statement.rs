use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio_postgres::types::{BorrowToSql, Type};
use tokio_postgres::{Client, Error, Row as ServerRow, Statement};

/// A statement as a connection runs it.
#[derive(Clone)]
pub(super) enum Text {
    /// Prepared under a name, which the server keeps.
    Named(Statement),
    /// Sent with each use, for poolers that give each transaction another server connection.
    Unnamed(Arc<str>),
}

impl Text {
    /// Runs the statement; returns its rows, and the number of rows that it returned or changed.
    pub(super) async fn run<P: BorrowToSql>(
        &self,
        client: &Client,
        params: impl ExactSizeIterator<Item = (P, Type)>,
    ) -> Result<(Vec<ServerRow>, u64), Error> {
        let rows = match self {
            Text::Named(statement) => {
                let params = params.map(|(param, _)| param);
                client.query_raw(statement, params).await?
            }
            Text::Unnamed(sql) => client.query_typed_raw(sql, params).await?,
        };
        let mut rows = pin!(rows);
        let mut found = Vec::new();
        while let Some(row) = rows.try_next().await? {
            found.push(row);
        }
        Ok((found, rows.rows_affected().unwrap_or(0)))
    }
}
