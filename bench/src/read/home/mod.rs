//! `home`: pages of home timelines over HTTP, next to a bare handler that finds the same posts by the same
//! statements, and a request with a token next to the same without.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use axum::{
    Router,
    extract::{Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use driftline_api::auth::PassphraseHasher;
use driftline_core::social::{AccountName, AccountState, HashCost, MailAddress, Passphrase, Role};
use driftline_store::{
    Store, StoreError, Target, Tx, local_ids,
    social::local_account::{self, NewAccount},
};
use reqwest::Client;
use rusqlite::{Connection, OpenFlags, params};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{
    CONNECTIONS, Site,
    client::{self, Asked, Endpoint, Load},
    fill,
};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// Measures pages of two readers in a small and a large store.
pub(crate) fn run(effort: Effort) -> Result<(), Failure> {
    let (small, large, requests) = match effort.quick {
        true => (2_000, 10_000, 200),
        false => (100_000, 1_000_000, 2_000),
    };
    let runtime = Runtime::new()?;
    let folder = tempfile::tempdir()?;
    let mut homes = Vec::new();
    for posts in [small, large] {
        let path = folder.path().join(format!("{posts}.db"));
        homes.push(Home::open(&runtime, &path, posts)?);
    }
    let cases = [
        Case::new("home, 500 follows", Reader::Few, CONNECTIONS, 10.0),
        Case::new("home, 5,000 follows, 4,990 silent", Reader::Many, 1, 20.0),
        Case::new(
            "home, 5,000 follows, 4,990 silent",
            Reader::Many,
            CONNECTIONS,
            50.0,
        ),
    ];
    let rounds = effort.rounds(3);
    let mut table = Table::new(
        format!("home: pages of 20 over loopback, {requests} requests a row and round, ms"),
        [
            "request",
            "connections",
            "posts",
            "Driftline p50",
            "p99",
            "bare p50",
            "p99",
            "ratio of p50",
            "target",
            "met",
        ],
    );
    let mut p99s: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        for home in &homes {
            let mut figures = Vec::new();
            for round in 0..rounds as u64 {
                let load = Load {
                    connections: case.connections,
                    requests,
                };
                figures.push(home.measure(case.reader, load, round)?);
            }
            let of = |figure: fn(&[Times; 2]) -> f64| Spread::of(figures.iter().map(figure), 2);
            let p99 = of(|[ours, _]| ours.p99);
            p99s.insert((number, home.posts), p99.median);
            table.row([
                case.name.to_owned(),
                case.connections.to_string(),
                home.posts.to_string(),
                of(|[ours, _]| ours.p50).to_string(),
                p99.to_string(),
                of(|[_, peer]| peer.p50).to_string(),
                of(|[_, peer]| peer.p99).to_string(),
                of(|[ours, peer]| ours.p50 / peer.p50).to_string(),
                format!("p99 < {} ms", case.target_ms),
                met(p99.median < case.target_ms),
            ]);
        }
    }
    table.print();
    let mut growth = Table::new(
        format!("home: p99 with {large} posts against {small}"),
        ["request", "times", "target", "met"],
    );
    for (number, case) in cases.iter().enumerate() {
        let p99 = |posts| p99s.get(&(number, posts)).copied().unwrap_or(f64::NAN);
        let times = p99(large) / p99(small);
        growth.row([
            format!("{}, {} connections", case.name, case.connections),
            format!("{times:.2}"),
            format!("<= {GROWTH_TARGET}"),
            met(times <= GROWTH_TARGET),
        ]);
    }
    growth.print();
    let mut tokens = Table::new(
        "home: pages of the public timeline with a token against the same without".to_owned(),
        ["posts", "requests/s, with/without", "target", "met"],
    );
    for home in &homes {
        let mut ratios = Vec::new();
        for round in 0..rounds as u64 {
            ratios.push(home.token_ratio(requests, round)?);
        }
        let ratio = Spread::of(ratios, 2);
        tokens.row([
            home.posts.to_string(),
            ratio.to_string(),
            format!(">= {TOKEN_TARGET}"),
            met(ratio.median >= TOKEN_TARGET),
        ]);
    }
    tokens.print();
    for home in homes {
        runtime.block_on(home.site.store.close());
    }
    Ok(())
}

/// Whose home timeline is read.
#[derive(Debug, Clone, Copy)]
enum Reader {
    /// Follows 500 authors.
    Few,
    /// Follows 5,000 authors, of whom ten write.
    Many,
}

impl Reader {
    const fn name(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::Many => "many",
        }
    }

    /// The authors that it follows; those above the number of authors write nothing.
    fn follows(self) -> Vec<i64> {
        match self {
            Self::Few => (0..500)
                .map(|number| 1 + number * (AUTHORS / 500))
                .collect(),
            Self::Many => {
                let writers = (0..10).map(|number| 2 + number * (AUTHORS / 10));
                let silent = (0..4_990).map(|number| AUTHORS + 1 + number);
                writers.chain(silent).collect()
            }
        }
    }
}

struct Case {
    name: &'static str,
    reader: Reader,
    connections: usize,
    target_ms: f64,
}

impl Case {
    const fn new(name: &'static str, reader: Reader, connections: usize, target_ms: f64) -> Self {
        Self {
            name,
            reader,
            connections,
            target_ms,
        }
    }
}

/// Quantiles of one round, ms.
#[derive(Debug, Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
}

/// A store with two readers, served by Driftline and by the bare handler.
struct Home {
    posts: usize,
    site: Site,
    bare: std::net::SocketAddr,
    tokens: [Arc<str>; 2],
}

impl Home {
    fn open(runtime: &Runtime, path: &Path, posts: usize) -> Result<Self, Failure> {
        let filled = fill::timeline(path, posts, AUTHORS)?;
        let readers = [Reader::Few, Reader::Many];
        let hasher = PassphraseHasher::new(CHEAP, 1);
        for reader in readers {
            add_reader(runtime, &hasher, path, reader)?;
        }
        let site = runtime.block_on(Site::open(filled))?;
        let bare = runtime.block_on(super::serve(bare(path)))?;
        let token = |reader| runtime.block_on(log_in(&site, reader));
        Ok(Self {
            posts,
            tokens: [token(Reader::Few)?, token(Reader::Many)?],
            site,
            bare,
        })
    }

    fn measure(&self, reader: Reader, load: Load, round: u64) -> Result<[Times; 2], Failure> {
        let ours = Asked {
            target: ours,
            endpoint: Endpoint::PublicSince,
            token: Some(Arc::clone(&self.tokens[reader as usize])),
            min_bytes: MIN_BYTES,
        };
        let theirs = Asked {
            target: match reader {
                Reader::Few => bare_few,
                Reader::Many => bare_many,
            },
            token: None,
            ..ours.clone()
        };
        Ok([
            self.times(self.site.ours, &ours, load, round)?,
            self.times(self.bare, &theirs, load, round)?,
        ])
    }

    fn times(
        &self,
        address: std::net::SocketAddr,
        asked: &Asked,
        load: Load,
        round: u64,
    ) -> Result<Times, Failure> {
        // Below all of these there are full pages of both readers.
        let ids = &self.site.filled.ids;
        let upper: Arc<Vec<i64>> = Arc::new(ids[ids.len() / 2..].to_vec());
        let warm = Load {
            requests: (load.requests / 10).max(load.connections),
            ..load
        };
        client::read(address, asked, &upper, warm, round + 1_000)?;
        let mut times = client::read(address, asked, &upper, load, round)?;
        times.sort_unstable();
        let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
        Ok(Times {
            p50: at(50),
            p99: at(99),
        })
    }

    fn token_ratio(&self, requests: usize, round: u64) -> Result<f64, Failure> {
        let without = Asked::from(Endpoint::PublicSince);
        let with = Asked {
            token: Some(Arc::clone(&self.tokens[0])),
            ..without.clone()
        };
        let load = Load {
            connections: CONNECTIONS,
            requests,
        };
        let rate = |asked: &Asked| -> Result<f64, Failure> {
            let start = std::time::Instant::now();
            client::read(self.site.ours, asked, &self.site.filled.ids, load, round)?;
            Ok(requests as f64 / start.elapsed().as_secs_f64())
        };
        rate(&without)?;
        // Each goes first in half of the rounds.
        let (with, without) = match round % 2 {
            0 => {
                let with = rate(&with)?;
                (with, rate(&without)?)
            }
            _ => {
                let without = rate(&without)?;
                (rate(&with)?, without)
            }
        };
        Ok(with / without)
    }
}

fn ours(_: Endpoint, id: i64) -> String {
    format!("/api/v1/timelines/home?max_id={id}&limit=20")
}

fn bare_few(_: Endpoint, id: i64) -> String {
    format!("/few?max_id={id}")
}

fn bare_many(_: Endpoint, id: i64) -> String {
    format!("/many?max_id={id}")
}

fn add_reader(
    runtime: &Runtime,
    hasher: &PassphraseHasher,
    path: &Path,
    reader: Reader,
) -> Result<(), Failure> {
    let passphrase = Passphrase::choose(&PASSPHRASE.to_owned().into())
        .map_err(|error| Failure::new(error.to_string()))?;
    let hash = runtime.block_on(hasher.hash(passphrase));
    let hash = hash.map_err(|_| Failure::new("no passphrase is hashed"))?;
    let name = reader.name();
    let new = NewAccount {
        name: AccountName::new(name).map_err(|error| Failure::new(error.to_string()))?,
        mail: MailAddress::new(format!("{name}@mail.example"))
            .map_err(|error| Failure::new(error.to_string()))?,
        passphrase: hash,
        role: Role::Member,
        awaits_approval: false,
        reason: String::new(),
    };
    let store = Store::open(Target::Sqlite {
        path: path.to_owned(),
    })?;
    let now_ms = driftline_runtime::now_ms();
    let create = move |tx: &mut Tx<'_>| {
        let created = local_account::create(tx, &new, now_ms)?;
        Ok::<_, StoreError>(created.map(|account| account.id))
    };
    let created = runtime.block_on(store.write(local_ids::root(), create))?;
    let id = created.map_err(|error| Failure::new(error.to_string()))?;
    let activate = move |tx: &mut Tx<'_>| local_account::change_state(tx, id, AccountState::Active);
    let activated = runtime.block_on(store.write(local_account::root(id), activate))?;
    activated.map_err(|error| Failure::new(error.to_string()))?;
    runtime.block_on(store.close());
    let mut connection = Connection::open(path)?;
    let tx = connection.transaction()?;
    for author in reader.follows() {
        tx.prepare_cached(
            "insert into relation (account_id, other_id, outgoing, outgoing_id, incoming,
                 incoming_id, show_boosts, notify)
             values (?1, ?2, 'following', ?2, 'none', 0, 1, 0)",
        )?
        .execute(params![i64::try_from(id.raw())?, author])?;
    }
    tx.commit()?;
    Ok(())
}

async fn log_in(site: &Site, reader: Reader) -> Result<Arc<str>, Failure> {
    let body = json!({ "who": reader.name(), "passphrase": PASSPHRASE, "device": "bench" });
    let url = format!("http://{}/api/driftline/v1/log-in", site.ours);
    let request = Client::builder().no_proxy().build()?.post(url);
    let request = request.header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await?)?;
    match answer["token"].as_str() {
        Some(token) => Ok(token.into()),
        None => Err(Failure::new(format!("no log-in: {answer}"))),
    }
}

#[derive(Deserialize)]
struct Bound {
    max_id: i64,
}

fn bare(path: &Path) -> Router {
    let path: Arc<Path> = path.into();
    let of = |reader: Reader| {
        get(
            async move |State(path): State<Arc<Path>>, Query(bound): Query<Bound>| {
                page(path, reader, bound.max_id).await
            },
        )
    };
    Router::new()
        .route("/few", of(Reader::Few))
        .route("/many", of(Reader::Many))
        .with_state(path)
}

async fn page(path: Arc<Path>, reader: Reader, below: i64) -> Response {
    let read = tokio::task::spawn_blocking(move || {
        CONNECTION.with_borrow_mut(|known| {
            if known.as_ref().is_none_or(|(of, _)| *of != path) {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let opened = Connection::open_with_flags(&path, flags)?;
                *known = Some((Arc::clone(&path), opened));
            }
            match known {
                Some((_, connection)) => rows(connection, reader, below),
                None => Err(rusqlite::Error::InvalidQuery),
            }
        })
    });
    match read.await {
        Ok(Ok(body)) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

thread_local! {
    static CONNECTION: std::cell::RefCell<Option<(Arc<Path>, Connection)>> =
        const { std::cell::RefCell::new(None) };
}

/// The nearest entry of each followed author, and the entries of those whose nearest are among the first.
fn rows(connection: &Connection, reader: Reader, below: i64) -> rusqlite::Result<String> {
    let mut followed = connection.prepare_cached(
        "select other_id from relation
         where account_id = (select id from local_account where name_key = ?1)
             and outgoing = 'following'",
    )?;
    let followed = followed.query_map([reader.name()], |row| row.get::<_, i64>(0))?;
    let followed: Vec<i64> = followed.collect::<Result<_, _>>()?;
    let mut entries = connection.prepare_cached(
        "select coalesce(place_id, id), post_id from entry
         where account_id = ?1 and not gone and coalesce(place_id, id) < ?2
         order by coalesce(place_id, id) desc limit ?3",
    )?;
    let mut of = |author: i64, count: i64| -> rusqlite::Result<Vec<(i64, i64)>> {
        let found =
            entries.query_map([author, below, count], |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.collect()
    };
    let mut nearest = Vec::new();
    for author in followed {
        nearest.extend(of(author, 1)?.first().map(|(place, _)| (*place, author)));
    }
    nearest.sort_unstable_by(|one, other| other.cmp(one));
    nearest.truncate(20);
    let mut places = Vec::new();
    for (_, author) in nearest {
        places.extend(of(author, 20)?);
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

/// As many authors write in turn.
const AUTHORS: i64 = 10_000;
/// 20 posts of 2 to 3 kB; a small store has fewer of the followed.
const MIN_BYTES: usize = 1_500;
const GROWTH_TARGET: f64 = 1.5;
const TOKEN_TARGET: f64 = 0.9;
const PASSPHRASE: &str = "correct horse battery";
const CHEAP: HashCost = HashCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};
