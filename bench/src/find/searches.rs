//! Searches through the code of `GET /api/driftline/v1/find`, and the peer: a scan of all texts with `like`.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use driftline_api::{find::Search, transport::Address};
use driftline_core::predicate::{NameContext, Predicate};
use driftline_runtime::now_ms;
use driftline_store::{LocalId, Store, Viewer, timeline::Range};

use super::corpus::{IN_NICKNAMES, TAG};
use crate::{database::Place, failure::Failure};

/// A kind of search.
pub(super) struct Kind {
    pub(super) name: &'static str,
    query: String,
    /// The texts that the peer looks for.
    patterns: Vec<&'static str>,
    pub(super) is_count: bool,
    /// The number of the world's posts that it finds: so many of 10,000, or so many in all.
    hits: Hits,
    /// The limit of p99.
    pub(super) max_ms: f64,
    /// The limit of p50 with ten times as many posts, times that before.
    pub(super) max_growth: f64,
}

enum Hits {
    OfTenThousand(u64),
    InAll(u64),
    /// Nicknames add some.
    Unknown,
}

/// All kinds of searches.
pub(super) fn kinds() -> Vec<Kind> {
    let newest = |name, query: &str, patterns: &[&'static str], hits| Kind {
        name,
        query: query.to_owned(),
        patterns: patterns.to_vec(),
        is_count: false,
        hits,
        max_ms: PAGE_MS,
        max_growth: 1.5,
    };
    let word = |name, word, rate| newest(name, word, &[word], Hits::OfTenThousand(rate));
    vec![
        word("ja, 0.01 %", "灯台", 1),
        word("ja, 0.1 %", "津波", 10),
        word("ja, 1 %", "雷雨", 100),
        word("ja, 10 %", "電車", 1_000),
        word("ja, 30 %", "猫舌", 3_000),
        word("latin, 0.01 %", "lighthouse", 1),
        word("latin, 1 %", "carpenter", 100),
        Kind {
            max_ms: TWO_WORDS_MS,
            max_growth: 3.0,
            ..newest(
                "two of 10 %, both 0.01 %",
                "祭礼 桜花",
                &["祭礼", "桜花"],
                Hits::OfTenThousand(1),
            )
        },
        newest(
            "ja, 0.1 %, in 1,000 nicknames",
            IN_NICKNAMES,
            &[IN_NICKNAMES],
            Hits::Unknown,
        ),
        Kind {
            max_ms: TAG_MS,
            ..newest(
                "tag of 5 posts",
                &format!("#{TAG}"),
                &["#tidalatlas"],
                Hits::InAll(5),
            )
        },
        Kind {
            is_count: true,
            max_ms: COUNT_MS,
            ..word("count of ja, 3 %", "紅茶", 300)
        },
    ]
}

impl Kind {
    /// Searches once; returns the number of posts and of the parts that were read.
    pub(super) fn find(&self, store: &Store, viewer: Viewer) -> Result<Found, Failure> {
        let limit = if self.is_count { COUNTED_AT_ONCE } else { PAGE };
        let mut all = Found::default();
        let mut below = None;
        loop {
            let found = find(store, &self.query, viewer, below, limit)?;
            all.posts += found.posts;
            all.parts += found.parts;
            below = found.last;
            if !self.is_count || found.posts < u64::from(limit) {
                return Ok(all);
            }
        }
    }

    /// Fails unless a search found what the corpus has.
    pub(super) fn check(&self, found: &Found, viewer: Viewer, posts: u64) -> Result<(), Failure> {
        let hits = match self.hits {
            Hits::OfTenThousand(rate) if posts.is_multiple_of(10_000) => posts / 10_000 * rate,
            Hits::InAll(hits) => hits,
            _ => return Ok(()),
        };
        let expected = if self.is_count {
            hits
        } else {
            hits.min(PAGE.into())
        };
        let is_met = match viewer {
            Viewer::Anonymous => found.posts == expected,
            _ => found.posts >= expected,
        };
        let (name, found) = (self.name, found.posts);
        let failure = || Failure::new(format!("{name}: {found} posts instead of {expected}"));
        is_met.then_some(()).ok_or_else(failure)
    }

    /// The same with `like`.
    pub(super) fn scan(&self, peer: &mut Peer) -> Result<(), Failure> {
        let patterns = self
            .patterns
            .iter()
            .map(|word| format!("text like '%{word}%'"));
        let condition = patterns.collect::<Vec<_>>().join(" and ");
        peer.read(&match self.is_count {
            true => format!("select count(*) from post_text where {condition}"),
            false => format!(
                "select p.raw from (select post_id, instance_id from post_text where {condition}
                     order by post_id desc limit {PAGE}) t
                 join post p on p.id = t.post_id and p.instance_id = t.instance_id"
            ),
        })
    }
}

#[derive(Default)]
pub(super) struct Found {
    pub(super) posts: u64,
    /// Over HTTP a search is refused after 50 parts.
    pub(super) parts: usize,
    last: Option<LocalId>,
}

fn find(
    store: &Store,
    query: &str,
    viewer: Viewer,
    below: Option<LocalId>,
    limit: u16,
) -> Result<Found, Failure> {
    let names = NameContext {
        origin: "https://bench.example",
        viewer: None,
    };
    let predicate = Predicate::parse(query, &names)?;
    let search = Arc::new(Search::new(predicate, &Address::local())?);
    let mut found = Found::default();
    let mut next = Some(Range {
        max: below,
        limit,
        ..Range::default()
    });
    while let Some(range) = next {
        let search = Arc::clone(&search);
        let part = store.read_blocking(move |tx| search.stretch(tx, &range, viewer, now_ms()))?;
        found.parts += 1;
        found.posts += part.posts.len() as u64;
        found.last = part.posts.last().map(|post| post.id);
        next = part.rest;
    }
    Ok(found)
}

/// A connection to the same database with a plain driver.
pub(super) enum Peer {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Client>, HashMap<String, postgres::Statement>),
}

impl Peer {
    pub(super) fn open(place: &Place) -> Result<Peer, Failure> {
        Ok(match place {
            Place::File(path) => {
                let connection = rusqlite::Connection::open(path)?;
                // As the product's readers.
                connection.execute_batch("pragma cache_size = -8192")?;
                Peer::Sqlite(connection)
            }
            Place::Url(url) => {
                let client = postgres::Client::connect(url, postgres::NoTls)?;
                Peer::Postgres(Box::new(client), HashMap::new())
            }
        })
    }

    fn read(&mut self, sql: &str) -> Result<(), Failure> {
        match self {
            Peer::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql)?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
            }
            Peer::Postgres(client, statements) => {
                if !statements.contains_key(sql) {
                    statements.insert(sql.to_owned(), client.prepare(sql)?);
                }
                client.query(&statements[sql], &[])?;
            }
        }
        Ok(())
    }
}

/// Repeats until there are so many times, or it has taken long; at least once.
pub(super) fn times(
    count: usize,
    mut once: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<Duration>, Failure> {
    let (begin, mut times) = (Instant::now(), Vec::with_capacity(count));
    while times.is_empty() || times.len() < count && begin.elapsed() < ROUND {
        let start = Instant::now();
        once()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

const PAGE: u16 = 20;
/// As `driftline find --count` asks.
const COUNTED_AT_ONCE: u16 = 1_000;
const PAGE_MS: f64 = 20.0;
const TWO_WORDS_MS: f64 = 50.0;
const TAG_MS: f64 = 10.0;
const COUNT_MS: f64 = 300.0;
const ROUND: Duration = Duration::from_secs(2);
