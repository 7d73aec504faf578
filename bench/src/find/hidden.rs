//! Searches before and after a private source of somebody else got many hits: the same posts and cursors, and the times.

use std::{sync::Arc, time::Instant};

use driftline_api::{find::Search, transport::Address};
use driftline_core::{
    names::audience::Audience,
    predicate::{NameContext, Predicate},
};
use driftline_runtime::{IndexBacklog, now_ms};
use driftline_server::index_keeper::index_all;
use driftline_store::{
    LocalId, Owner, Store, Viewer,
    source::NewSource,
    timeline::{Range, TimelinePost},
};
use tokio::{runtime::Runtime, sync::watch};

use super::{
    SEARCHES, Site,
    fill::{Feed, Shown, at_ms, origin},
    searches::times,
};
use crate::{
    failure::Failure,
    ingest::new_source,
    read::reader,
    rounds::Times,
    table::{Table, met},
};

/// The table of the comparison.
pub(super) fn table() -> Table {
    Table::new(
        format!("find: a word of 1 %, without and with {HIDDEN} hits that the viewer may not see"),
        "database | viewer | search | posts | hidden hits | visible hits | parts | p50, ms | p99 | times before, p50 | same answers \
         and cursors",
    )
}

/// Adds the hidden hits to a filled store and compares.
///
/// # Errors
/// [`Failure`] if an answer or a cursor differs.
pub(super) fn measure(name: &str, site: &Site, table: &mut Table) -> Result<(), Failure> {
    let viewers = [Viewer::Anonymous, site.account];
    let cases: Vec<(Viewer, bool)> = viewers
        .into_iter()
        .flat_map(|viewer| [(viewer, false), (viewer, true)])
        .collect();
    let measure = |(viewer, all): &(Viewer, bool)| Measured::take(&site.store, *viewer, *all);
    let before: Vec<Measured> = cases.iter().map(measure).collect::<Result<_, _>>()?;
    add_hidden(site)?;
    let after: Vec<Measured> = cases.iter().map(measure).collect::<Result<_, _>>()?;
    for (at, (viewer, all)) in cases.iter().enumerate() {
        let search = if *all { "all pages of 20" } else { "newest 20" };
        let viewer = match viewer {
            Viewer::Anonymous => "world",
            _ => "account",
        };
        let is_same = before[at].parts == after[at].parts;
        for (hidden, measured) in [(0, &before[at]), (HIDDEN, &after[at])] {
            let Measured { parts, times } = measured;
            let hits: usize = parts.iter().map(|part| part.0.len()).sum();
            table.row(format!(
                "{name} | {viewer} | {search} | {} | {hidden} | {hits} | {} | {:.2} | {:.2} | {:.2} | {}",
                site.corpus.posts,
                parts.len(),
                times.p50,
                times.p99,
                times.p50 / before[at].times.p50,
                met(is_same),
            ));
        }
        if !is_same {
            return Err(Failure::new(format!(
                "{name}, {viewer}, {search}: hidden hits changed an answer or a cursor"
            )));
        }
    }
    Ok(())
}

/// The posts of a part of a search, and its cursor.
type Part = (Vec<LocalId>, Option<Range>);

/// The parts of a search, and the times of searches.
struct Measured {
    parts: Vec<Part>,
    times: Times,
}

impl Measured {
    fn take(store: &Store, viewer: Viewer, all: bool) -> Result<Measured, Failure> {
        let parts = pages(store, viewer, all)?;
        let count = if all { ROUNDS_OF_ALL } else { SEARCHES };
        let times = times(count, || pages(store, viewer, all).map(drop))?;
        Ok(Measured {
            parts,
            times: Times::of(times),
        })
    }
}

/// Reads the newest page, or page after page until the end.
fn pages(store: &Store, viewer: Viewer, all: bool) -> Result<Vec<Part>, Failure> {
    let names = NameContext {
        origin: "https://bench.example",
        viewer: None,
    };
    let predicate = Predicate::parse(WORD, &names)?;
    let search = Arc::new(Search::new(predicate, &Address::local())?);
    let mut parts = Vec::new();
    let mut next = Some(Range {
        limit: PAGE,
        ..Range::default()
    });
    while let Some(range) = next {
        let reading = Arc::clone(&search);
        let part = store.read_blocking(move |tx| reading.stretch(tx, &range, viewer, now_ms()))?;
        let ids: Vec<LocalId> = part
            .posts
            .iter()
            .map(|post: &TimelinePost| post.id)
            .collect();
        let page_end = ids.last().copied().filter(|_| all && part.rest.is_none());
        next = part.rest.or_else(|| {
            page_end.map(|last| Range {
                max: Some(last),
                limit: PAGE,
                ..Range::default()
            })
        });
        parts.push((ids, part.rest));
    }
    Ok(parts)
}

/// Adds and indexes a private source of another account, whose posts all have the word. They lie between the others.
fn add_hidden(site: &Site) -> Result<(), Failure> {
    let start = Instant::now();
    let owner = Owner::Account(reader::add_account(&site.store, "bob")?);
    let new = NewSource {
        owner,
        audience: Audience::Private,
        ..new_source("bob/hidden", &origin(SERVER))
    };
    let mut feed = Feed::start(&site.store, &site.corpus, SERVER, new)?.with_word(WORD);
    for begin in (0..HIDDEN).step_by(PER_PAGE as usize) {
        let posts = (begin..HIDDEN.min(begin + PER_PAGE)).map(|hidden| Shown {
            at_ms: at_ms(hidden * site.corpus.posts / HIDDEN) + 7,
            number: 2 * site.corpus.posts + hidden,
        });
        feed.commit(&posts.collect::<Vec<_>>())?;
    }
    let (_stop, is_stopped) = watch::channel(false);
    Runtime::new()?.block_on(index_all(
        &site.store,
        &IndexBacklog::default(),
        &is_stopped,
    ))?;
    eprintln!("{HIDDEN} hidden hits added in {:.0?}", start.elapsed());
    Ok(())
}

const WORD: &str = "雷雨";
const HIDDEN: u64 = 100_000;
const PAGE: u16 = 20;
const PER_PAGE: u64 = 2_000;
const ROUNDS_OF_ALL: usize = 3;
/// Neither a private source of the account nor a live one has this server.
const SERVER: u64 = 2_000;
