//! The peer: axum with rusqlite, or tokio-postgres, which finds the same posts by the same statements and joins their
//! JSON as it is stored.

use std::{
    net::SocketAddr,
    path::Path,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use futures_util::future::try_join_all;
use rusqlite::{Connection, OpenFlags, params, types::Value, vtab::array};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio_postgres::{Client, NoTls, Statement};

use super::{database::Place, reader::Reader};
use crate::failure::Failure;

/// Serves a database.
pub(super) async fn serve(place: &Place) -> Result<SocketAddr, Failure> {
    let source = match place {
        Place::File(path) => Source::File(path.as_path().into()),
        Place::Url(url) => {
            let mut sessions = Vec::new();
            for _ in 0..super::CONNECTIONS {
                sessions.push(Mutex::new(Session::connect(url).await?));
            }
            Source::Sessions(sessions.into(), Arc::default())
        }
    };
    super::super::serve(router(source)).await
}

#[derive(Clone)]
enum Source {
    File(Arc<Path>),
    Sessions(Arc<[Mutex<Session>]>, Arc<AtomicUsize>),
}

#[derive(Deserialize)]
struct Bound {
    max_id: i64,
}

fn router(source: Source) -> Router {
    let of = |reader: Reader| {
        get(
            async move |State(source): State<Source>, Query(bound): Query<Bound>| {
                page(source, reader, bound.max_id).await
            },
        )
    };
    Router::new()
        .route("/few", of(Reader::Few))
        .route("/many", of(Reader::Many))
        .with_state(source)
}

async fn page(source: Source, reader: Reader, below: i64) -> Response {
    let body = match source {
        Source::File(path) => of_file(path, reader, below).await,
        Source::Sessions(sessions, next) => {
            let number = next.fetch_add(1, Ordering::Relaxed) % sessions.len();
            let session = sessions[number].lock().await;
            session.page(reader, below).await.ok()
        }
    };
    match body {
        Some(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn of_file(path: Arc<Path>, reader: Reader, below: i64) -> Option<String> {
    let read = tokio::task::spawn_blocking(move || {
        CONNECTION.with_borrow_mut(|known| {
            if known.as_ref().is_none_or(|(of, _)| *of != path) {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let opened = Connection::open_with_flags(&path, flags)?;
                array::load_module(&opened)?;
                *known = Some((Arc::clone(&path), opened));
            }
            match known {
                Some((_, connection)) => rows(connection, reader, below),
                None => Err(rusqlite::Error::InvalidQuery),
            }
        })
    });
    read.await.ok()?.ok()
}

thread_local! {
    static CONNECTION: std::cell::RefCell<Option<(Arc<Path>, Connection)>> =
        const { std::cell::RefCell::new(None) };
}

const FOLLOWED: &str = "select other_id from relation
     where account_id = (select id from local_account where name_key = $1)
         and outgoing = 'following'";
const ENTRIES: &str = "select id, post_id from entry
     where account_id = $1 and not gone and id < $2
         and id >= $3
     order by id desc limit $4";

/// Beyond the nearest places of 20 authors there is nothing of the page.
fn last_of(nearest: &[(i64, i64)]) -> i64 {
    nearest.get(19).map_or(i64::MIN, |(place, _)| *place)
}

/// The nearest entry of each followed author, and the entries of those whose nearest are among the first.
fn rows(connection: &Connection, reader: Reader, below: i64) -> rusqlite::Result<String> {
    let mut followed = connection.prepare_cached(FOLLOWED)?;
    let followed = followed.query_map([reader.name()], |row| row.get::<_, Value>(0))?;
    let followed: Vec<Value> = followed.collect::<Result<_, _>>()?;
    let followed = Rc::new(followed);
    let mut nearest = connection.prepare_cached(
        "select place, author from (
             select author.value as author, (
                 select id from entry
                 where account_id = author.value and not gone and id < ?2
                 order by id desc limit 1
             ) as place
             from rarray(?1) author limit -1
         ) where place is not null",
    )?;
    let nearest = nearest.query_map(params![followed, below], |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    let mut nearest: Vec<(i64, i64)> = nearest.collect::<Result<_, _>>()?;
    nearest.sort_unstable_by(|one, other| other.cmp(one));
    nearest.truncate(20);
    let above = last_of(&nearest);
    let mut entries = connection.prepare_cached(ENTRIES)?;
    let mut places: Vec<(i64, i64)> = Vec::new();
    for (_, author) in nearest {
        let found = entries.query_map([author, below, above, 20], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
        for found in found {
            places.push(found?);
        }
    }
    places.sort_unstable_by(|one, other| other.cmp(one));
    places.truncate(20);
    let mut raw = connection.prepare_cached("select raw from post where id = ?1")?;
    let posts = places
        .iter()
        .map(|(_, id)| raw.query_row([id], |row| row.get::<_, String>(0)));
    let posts: Vec<String> = posts.collect::<Result<_, _>>()?;
    Ok(format!("[{}]", posts.join(",")))
}

/// A connection with its statements.
struct Session {
    client: Client,
    followed: Statement,
    nearest: Statement,
    entries: Statement,
    posts: Statement,
}

impl Session {
    async fn connect(url: &str) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let nearest = "select found.* from unnest($1::bigint[]) as of(author)
             cross join lateral (
                 select id, account_id from entry
                 where account_id = of.author and not gone and id < $2
                 order by id desc limit 1
             ) as found";
        Ok(Self {
            followed: client.prepare(FOLLOWED).await?,
            nearest: client.prepare(nearest).await?,
            entries: client.prepare(ENTRIES).await?,
            posts: client
                .prepare("select id, raw from post where id = any($1::bigint[])")
                .await?,
            client,
        })
    }

    async fn page(&self, reader: Reader, below: i64) -> Result<String, tokio_postgres::Error> {
        let followed = self.client.query(&self.followed, &[&reader.name()]).await?;
        let followed: Vec<i64> = followed.iter().map(|row| row.get(0)).collect();
        let nearest = self
            .client
            .query(&self.nearest, &[&followed, &below])
            .await?;
        let mut nearest: Vec<(i64, i64)> =
            nearest.iter().map(|row| (row.get(0), row.get(1))).collect();
        nearest.sort_unstable_by(|one, other| other.cmp(one));
        nearest.truncate(20);
        let above = last_of(&nearest);
        // All are sent before the first is answered.
        let asked = nearest.iter().map(async |(_, author)| {
            self.client
                .query(&self.entries, &[author, &below, &above, &20_i64])
                .await
        });
        let found = try_join_all(asked).await?;
        let mut places: Vec<(i64, i64)> = found
            .iter()
            .flatten()
            .map(|row| (row.get(0), row.get(1)))
            .collect();
        places.sort_unstable_by(|one, other| other.cmp(one));
        places.truncate(20);
        let ids: Vec<i64> = places.iter().map(|(_, id)| *id).collect();
        let mut posts = self.client.query(&self.posts, &[&ids]).await?;
        posts.sort_unstable_by_key(|row| std::cmp::Reverse(row.get::<_, i64>(0)));
        let posts: Vec<&str> = posts.iter().map(|row| row.get(1)).collect();
        Ok(format!("[{}]", posts.join(",")))
    }
}
