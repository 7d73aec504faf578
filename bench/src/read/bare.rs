//! The peer: axum and rusqlite, which select the same rows by index and join their JSON as it is
//! stored.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;

use crate::failure::Failure;

type Pool = Arc<Mutex<Vec<Connection>>>;

/// Its routes over a database file.
pub(super) fn router(path: &Path) -> Result<Router, Failure> {
    let open = || -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Connection::open_with_flags(path, flags)
    };
    // As many as would be of use: one for each reader.
    let pool = (0..super::CONNECTIONS)
        .map(|_| open())
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Router::new()
        .route("/api/v1/timelines/public", get(public))
        .route("/api/v1/timelines/list/1", get(list))
        .with_state(Arc::new(Mutex::new(pool))))
}

#[derive(Deserialize)]
struct Bounds {
    since_id: Option<i64>,
    min_id: Option<i64>,
    limit: i64,
}

async fn public(State(pool): State<Pool>, Query(bounds): Query<Bounds>) -> Response {
    let [newest, lowest] = [
        "select raw from post where listed and coalesce(public_id, id) > ?1
         order by coalesce(public_id, id) desc limit ?2",
        "select raw from post where listed and coalesce(public_id, id) > ?1
         order by coalesce(public_id, id) limit ?2",
    ];
    page(pool, newest, lowest, bounds).await
}

async fn list(State(pool): State<Pool>, Query(bounds): Query<Bounds>) -> Response {
    let [newest, lowest] = [
        "select p.raw from entry e join post p on p.id = e.post_id
         where e.source_id = 1 and not e.gone and e.id > ?1 order by e.id desc limit ?2",
        "select p.raw from entry e join post p on p.id = e.post_id
         where e.source_id = 1 and not e.gone and e.id > ?1 order by e.id limit ?2",
    ];
    page(pool, newest, lowest, bounds).await
}

async fn page(pool: Pool, newest: &'static str, lowest: &'static str, bounds: Bounds) -> Response {
    let read = tokio::task::spawn_blocking(move || {
        let taken = pool.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(connection) = taken else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let body = match bounds.min_id {
            Some(id) => rows(&connection, lowest, id, bounds.limit, true),
            None => rows(
                &connection,
                newest,
                bounds.since_id.unwrap_or(0),
                bounds.limit,
                false,
            ),
        };
        pool.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(connection);
        body
    });
    match read.await {
        Ok(Ok(body)) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn rows(
    connection: &Connection,
    sql: &str,
    above: i64,
    limit: i64,
    upward: bool,
) -> rusqlite::Result<Vec<u8>> {
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_map([above, limit], |row| row.get::<_, String>(0))?;
    let mut posts = found.collect::<Result<Vec<_>, _>>()?;
    if upward {
        posts.reverse();
    }
    Ok(format!("[{}]", posts.join(",")).into_bytes())
}
