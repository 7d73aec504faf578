//! The peer: axum with rusqlite, or tokio-postgres, which finds the same posts by index and joins their JSON as it is
//! stored.

use std::{
    net::SocketAddr,
    path::PathBuf,
    rc::Rc,
    sync::{
        Arc, Mutex, PoisonError,
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
use rusqlite::{Connection, OpenFlags, Params, Row, params, types::Value, vtab::array};
use serde::Deserialize;
use tokio::{runtime::Runtime, sync};
use tokio_postgres::{Client, NoTls, Statement};

use crate::{database::Place, failure::Failure, http};

/// Serves a database: home timelines, and of SQLite the others too.
pub(super) fn serve(runtime: &Runtime, place: &Place) -> Result<SocketAddr, Failure> {
    let source = match place {
        Place::File(path) => Source::File(Arc::new((path.clone(), Mutex::default()))),
        Place::Url(url) => runtime.block_on(async {
            let sessions = (0..super::CONNECTIONS).map(|_| Session::connect(url));
            let sessions = try_join_all(sessions).await?;
            Ok::<_, Failure>(Source::Sessions(sessions.into(), Arc::default()))
        })?,
    };
    let of = |page: Page| {
        get(
            async move |State(source): State<Source>, Query(bounds): Query<Bounds>| {
                source.answer(page, bounds).await
            },
        )
    };
    let routes = Router::new()
        .route("/api/v1/timelines/public", of(Page::Public))
        .route("/api/v1/timelines/list/1", of(Page::List))
        .route("/few", of(Page::Home("few")))
        .route("/many", of(Page::Home("many")));
    http::serve(runtime, routes.with_state(source))
}

/// A kind of page.
#[derive(Clone, Copy)]
enum Page {
    Public,
    List,
    /// The home timeline of an account of that name.
    Home(&'static str),
}

#[derive(Deserialize)]
struct Bounds {
    since_id: Option<i64>,
    min_id: Option<i64>,
    max_id: Option<i64>,
}

/// The database, with connections that wait for a page.
#[derive(Clone)]
enum Source {
    File(Arc<(PathBuf, Mutex<Vec<Connection>>)>),
    Sessions(Arc<[sync::Mutex<Session>]>, Arc<AtomicUsize>),
}

impl Source {
    async fn answer(self, page: Page, bounds: Bounds) -> Response {
        let posts = match (self, page) {
            (Self::File(file), _) => {
                let read = tokio::task::spawn_blocking(move || of_file(&file, page, &bounds));
                read.await.ok().and_then(Result::ok)
            }
            (Self::Sessions(sessions, next), Page::Home(reader)) => {
                let number = next.fetch_add(1, Ordering::Relaxed) % sessions.len();
                let session = sessions[number].lock().await;
                session
                    .home(reader, bounds.max_id.unwrap_or(i64::MAX))
                    .await
                    .ok()
            }
            _ => None,
        };
        match posts {
            Some(posts) => {
                let body = format!("[{}]", posts.join(","));
                ([(CONTENT_TYPE, "application/json")], body).into_response()
            }
            None => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// The JSON of a page's posts.
fn of_file(
    (path, waiting): &(PathBuf, Mutex<Vec<Connection>>),
    page: Page,
    bounds: &Bounds,
) -> rusqlite::Result<Vec<String>> {
    let waiting = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = waiting().pop();
    let connection = match taken {
        Some(connection) => connection,
        None => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let opened = Connection::open_with_flags(path, flags)?;
            array::load_module(&opened)?;
            opened
        }
    };
    let posts = match page {
        Page::Home(reader) => home(&connection, reader, bounds.max_id.unwrap_or(i64::MAX)),
        Page::Public => {
            let of = "post p where listed and coalesce(public_id, id) >";
            above(&connection, of, "coalesce(public_id, id)", bounds)
        }
        Page::List => {
            let of = "entry e join post p on p.id = e.post_id
                 where e.source_id = 1 and not e.gone and e.id >";
            above(&connection, of, "e.id", bounds)
        }
    };
    waiting().push(connection);
    posts
}

/// The newest posts above an ID, or those that are the nearest to it.
fn above(
    connection: &Connection,
    of: &str,
    id: &str,
    bounds: &Bounds,
) -> rusqlite::Result<Vec<String>> {
    let order = if bounds.min_id.is_some() { "" } else { "desc" };
    let sql = format!("select p.raw from {of} ?1 order by {id} {order} limit 40");
    let bound = bounds.min_id.or(bounds.since_id).unwrap_or(0);
    let mut posts = all(connection, &sql, [bound], |row| row.get(0))?;
    if bounds.min_id.is_some() {
        posts.reverse();
    }
    Ok(posts)
}

fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_map(values, read)?.collect()
}

const FOLLOWED: &str = "select other_id from relation
     where account_id = (select id from local_account where name_key = $1)
         and outgoing = 'following'";
const ENTRIES: &str = "select id, post_id from entry
     where account_id = $1 and not gone and id < $2
         and id >= $3
     order by id desc limit $4";

/// The highest 20.
fn highest(mut places: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    places.sort_unstable_by(|one, other| other.cmp(one));
    places.truncate(20);
    places
}

/// Beyond the nearest places of 20 authors there is nothing of the page.
fn last_of(nearest: &[(i64, i64)]) -> i64 {
    nearest.get(19).map_or(i64::MIN, |(place, _)| *place)
}

/// The nearest entry of each followed author, and the entries of those whose nearest are among the first.
fn home(connection: &Connection, reader: &str, below: i64) -> rusqlite::Result<Vec<String>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let followed: Vec<Value> = all(connection, FOLLOWED, [reader], |row| row.get(0))?;
    let nearest = "select place, author from (
             select author.value as author, (
                 select id from entry
                 where account_id = author.value and not gone and id < ?2
                 order by id desc limit 1
             ) as place
             from rarray(?1) author limit -1
         ) where place is not null";
    let nearest = highest(all(
        connection,
        nearest,
        params![Rc::new(followed), below],
        pair,
    )?);
    let above = last_of(&nearest);
    let mut places = Vec::new();
    for (_, author) in nearest {
        places.extend(all(connection, ENTRIES, [author, below, above, 20], pair)?);
    }
    let mut raw = connection.prepare_cached("select raw from post where id = ?1")?;
    let places = highest(places).into_iter();
    places
        .map(|(_, id)| raw.query_row([id], |row| row.get(0)))
        .collect()
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
    async fn connect(url: &str) -> Result<sync::Mutex<Self>, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        let nearest = "select found.* from unnest($1::bigint[]) as of(author)
             cross join lateral (
                 select id, account_id from entry
                 where account_id = of.author and not gone and id < $2
                 order by id desc limit 1
             ) as found";
        let posts = "select raw from post where id = any($1::bigint[]) order by id desc";
        Ok(sync::Mutex::new(Self {
            followed: client.prepare(FOLLOWED).await?,
            nearest: client.prepare(nearest).await?,
            entries: client.prepare(ENTRIES).await?,
            posts: client.prepare(posts).await?,
            client,
        }))
    }

    async fn home(&self, reader: &str, below: i64) -> Result<Vec<String>, tokio_postgres::Error> {
        let pair = |row: &tokio_postgres::Row| (row.get(0), row.get(1));
        let followed = self.client.query(&self.followed, &[&reader]).await?;
        let followed: Vec<i64> = followed.iter().map(|row| row.get(0)).collect();
        let nearest = self
            .client
            .query(&self.nearest, &[&followed, &below])
            .await?;
        let nearest = highest(nearest.iter().map(pair).collect());
        let above = last_of(&nearest);
        // All are sent before the first is answered.
        let asked = nearest.iter().map(async |(_, author)| {
            self.client
                .query(&self.entries, &[author, &below, &above, &20_i64])
                .await
        });
        let found = try_join_all(asked).await?;
        let places = highest(found.iter().flatten().map(pair).collect());
        let ids: Vec<i64> = places.iter().map(|(_, id)| *id).collect();
        let posts = self.client.query(&self.posts, &[&ids]).await?;
        Ok(posts.iter().map(|row| row.get(0)).collect())
    }
}
