//! Law 3: once a reader has seen an ID in a timeline, or a USN in a library, nothing smaller but history
//! appears there later, whatever the clocks of the writers say.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use driftline_core::{answer::LookUp, post::Post, timeline::Backfill};
use driftline_db::testing::Cluster;
use driftline_store::{
    SecretUrl, SourceId, SourceKey, Store, Target, export,
    source::{self, NewSource},
    timeline::{self, TimelinePost, Viewer},
};

use crate::world::{
    EVERYTHING, START_MS, World, add_source, new_source, on_both, page, post, read,
};

const SOURCES: usize = 3;
const PAGES: u64 = 60;

#[test]
fn threads_keep_the_order_that_readers_saw() {
    on_both(|store| threads_keep_the_order(store, Instances::One));
}

#[test]
fn threads_of_several_instances_keep_the_order_that_readers_saw() {
    on_both(|store| threads_keep_the_order(store, Instances::Own));
}

fn threads_keep_the_order(store: &Store, instances: Instances) {
    let sources = sources(store, instances);
    let readers = readers(store, &sources);
    let writers: Vec<JoinHandle<()>> = sources
        .iter()
        .enumerate()
        .map(|(n, source)| {
            let (store, source) = (store.clone(), *source);
            thread::spawn(move || write(&store, source, n as u64))
        })
        .collect();
    for writer in writers {
        writer.join().expect("a writer");
    }
    settle(store, &sources);
    readers.stop();
    check_whole(store, &sources);
    assert_eq!(store.stats().retries, 0, "writers locked each other out");
}

#[test]
fn history_in_work_hides_nothing_live_from_readers() {
    on_both(|store| history_is_at_its_time(store, Instances::One));
}

#[test]
fn history_of_several_instances_hides_nothing_live_from_readers() {
    on_both(|store| history_is_at_its_time(store, Instances::Own));
}

fn history_is_at_its_time(store: &Store, instances: Instances) {
    let live = sources(store, instances);
    let importing: Vec<SourceKey> = (0..2)
        .map(|n| added(store, &format!("importing{n}"), instances))
        .collect();
    let all = [&live[..], &importing[..]].concat();
    let readers = readers(store, &all);
    let mut writers: Vec<JoinHandle<()>> = Vec::new();
    for (n, source) in live.iter().copied().enumerate() {
        let store = store.clone();
        writers.push(thread::spawn(move || write(&store, source, n as u64)));
    }
    for (n, source) in importing.iter().copied().enumerate() {
        let store = store.clone();
        writers.push(thread::spawn(move || import(&store, source, n as u64)));
    }
    for writer in writers {
        writer.join().expect("a writer");
    }
    readers.stop();
    for source in importing {
        let posts = store
            .read_blocking(move |tx| timeline::source(tx, source, &EVERYTHING, Viewer::Anonymous));
        let posts = posts.expect("a timeline");
        assert_eq!(posts.len() as u64, FIRST + FILLS * 5 + FILLS);
        let (history, live): (Vec<_>, Vec<_>) = posts.iter().partition(|post| is_history(post));
        assert_eq!(posts[..live.len()].iter().collect::<Vec<_>>(), live);
        let ids = live.iter().map(|post| &post.upstream_id);
        assert!(
            ids.is_sorted_by(|a, b| a > b),
            "it is in its source's order"
        );
        let times = history.iter().map(|post| post.created_at_ms);
        assert!(
            times.is_sorted_by(|a, b| a >= b),
            "history is in order of time"
        );
    }
}

#[test]
fn processes_keep_the_order_that_readers_saw() {
    let cluster = Cluster::start().expect("a cluster");
    let store = open(cluster.url());
    let sources = sources(&store, Instances::One);
    let readers = readers(&store, &sources);
    let children: Vec<Child> = sources
        .iter()
        .enumerate()
        .map(|(n, source)| {
            Command::new(env::current_exe().expect("this program"))
                .args(["--exact", "order::a_process_that_writes"])
                .env(URL, cluster.url())
                .env(SOURCE, source.id.to_string())
                .env(NUMBER, n.to_string())
                .stdout(Stdio::null())
                .spawn()
                .expect("a process")
        })
        .collect();
    for mut child in children {
        assert!(child.wait().expect("an end").success());
    }
    settle(&store, &sources);
    readers.stop();
    check_whole(&store, &sources);
    store.close_blocking();
}

#[test]
fn a_process_that_writes() {
    let Ok(url) = env::var(URL) else { return };
    let var = |name| {
        env::var(name)
            .expect("a variable")
            .parse::<u64>()
            .expect("a number")
    };
    let store = open(&url);
    let id = SourceId::new(var(SOURCE));
    let source = store.read_blocking(move |tx| source::key(tx, id));
    let source = source.expect("a read").expect("the source");
    write(&store, source, var(NUMBER));
    assert_eq!(store.stats().retries, 0, "writers locked each other out");
    store.close_blocking();
}

fn open(url: &str) -> Store {
    Store::open(Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    })
    .expect("a store")
}

fn sources(store: &Store, instances: Instances) -> Vec<SourceKey> {
    (0..SOURCES)
        .map(|n| {
            let source = added(store, &format!("source{n}"), instances);
            World::of(store, source).poll(Vec::new());
            source
        })
        .collect()
}

/// Which instances sources are of.
#[derive(Clone, Copy)]
enum Instances {
    /// All of one: their writers hold it one after the other.
    One,
    /// Each of its own: their writers meet at the clock only.
    Own,
}

fn added(store: &Store, name: &str, instances: Instances) -> SourceKey {
    let origin = match instances {
        Instances::One => "https://sim.example".to_owned(),
        Instances::Own => format!("https://{name}.example"),
    };
    let new = NewSource {
        origin,
        ..new_source(name)
    };
    add_source(store, new)
}

/// A post of a source's instance, of which no other has a copy.
fn own(source: SourceKey, id: u64, text: &str) -> Post {
    Post {
        uri: Some(format!("https://{}.example/{id}", source.instance)),
        ..post(id, text)
    }
}

/// Polls a source whose pages overlap with those of the others and among themselves, and edits and
/// deletes posts on the way, of which some return; each writer's clock is seconds away from the others'.
fn write(store: &Store, source: SourceKey, number: u64) {
    let mut world = World::of(store, source);
    let mut random = number + 1;
    let mut roll = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) % below
    };
    for turn in 0..PAGES {
        world.now_ms = START_MS + turn as i64 * 10 - number as i64 * 4000 + roll(50) as i64;
        let top = turn * 4 + 4;
        let low = top.saturating_sub(4 + roll(8));
        let page: Vec<Post> = (low + 1..=top)
            .rev()
            .map(|id| {
                let edited = id % 5 == 0 && turn > id / 4 + 1;
                Post {
                    edited_at_ms: edited.then_some(START_MS),
                    ..own(source, id, if edited { "edited" } else { "text" })
                }
            })
            .collect();
        world.poll(page);
        if turn % 4 == 3 {
            let deleted = low + 1 + roll(top - low);
            world.look_up(&deleted.to_string(), LookUp::Gone);
        }
    }
}

/// Reads a history backward while new posts come; some posts say that they are older or newer than
/// they are.
fn import(store: &Store, source: SourceKey, number: u64) {
    let mut world = World::of(store, source);
    world.settings.backfill = Backfill::All;
    let base = base(number);
    let dated = |ids: std::ops::Range<u64>| -> Vec<Post> {
        let at = |id: u64| START_MS - (20_000 - id as i64 % 10_000 + id as i64 % 7 * 30) * 60_000;
        let dated = |id| Post {
            created_at_ms: Some(at(id)),
            ..own(source, id, "text")
        };
        ids.rev().map(dated).collect()
    };
    let (mut oldest, mut newest) = (base - FIRST, base);
    world.poll(dated(oldest..newest));
    for _ in 0..FILLS {
        let (request, below) = (world.fill_whatever_is_due(), oldest - 5..oldest);
        oldest = below.start;
        let answer = page(dated(below), world.now_ms);
        world.commit(&request, answer).expect("a commit");
        newest += 1;
        world.poll(dated(newest - 3..newest));
    }
}

/// The first post that is not history of the sources that import one.
fn base(number: u64) -> u64 {
    number * 10_000 + 15_000
}

/// Whether a post came as history: those of live sources have small IDs.
fn is_history(post: &TimelinePost) -> bool {
    let id: u64 = post.upstream_id.parse().expect("a number");
    id >= 10_000 && id % 10_000 < base(0) % 10_000
}

/// Each source shows everything at the end, what was deleted too.
fn settle(store: &Store, sources: &[SourceKey]) {
    for turn in 0..2 {
        for source in sources {
            let mut world = World::of(store, *source);
            world.now_ms = START_MS + (turn + 1) * 3_600_000;
            let all = (1..=PAGES * 4).rev();
            world.poll(all.map(|id| own(*source, id, "text")).collect());
        }
    }
}

struct Readers {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Readers {
    fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for reader in self.threads {
            assert!(reader.join().expect("a reader") > 3, "it read too seldom");
        }
    }
}

fn readers(store: &Store, sources: &[SourceKey]) -> Readers {
    let stop = Arc::new(AtomicBool::new(false));
    let public = "the public timeline";
    let mut threads = vec![reader(store, &stop, public, |store| {
        let posts = store.read_blocking(|tx| timeline::public(tx, &EVERYTHING, Viewer::Anonymous));
        in_order(&posts.expect("a timeline"))
    })];
    for source in sources.iter().copied() {
        threads.push(reader(store, &stop, "a list", move |store| {
            let posts = store.read_blocking(move |tx| {
                timeline::source(tx, source, &EVERYTHING, Viewer::Anonymous)
            });
            in_order(&posts.expect("a timeline"))
        }));
        threads.push(reader(store, &stop, "a library", move |store| {
            read(store, move |tx| export::rows(tx, source, 0, u32::MAX))
                .iter()
                .map(|row| (row.usn.unsigned_abs(), false))
                .collect()
        }));
    }
    Readers { stop, threads }
}

/// The posts' IDs, each with whether it came as history.
fn in_order(posts: &[TimelinePost]) -> BTreeMap<u64, bool> {
    posts
        .iter()
        .map(|post| (post.id.raw(), is_history(post)))
        .collect()
}

/// Reads all there is again and again: what was not there before must be above all that was, unless it is
/// history.
fn reader(
    store: &Store,
    stop: &Arc<AtomicBool>,
    what: &'static str,
    read: impl Fn(&Store) -> BTreeMap<u64, bool> + Send + 'static,
) -> JoinHandle<u64> {
    let (store, stop) = (store.clone(), Arc::clone(stop));
    thread::spawn(move || {
        let mut seen: BTreeSet<u64> = BTreeSet::new();
        let mut reads = 0;
        loop {
            let last = stop.load(Ordering::Relaxed);
            let now = read(&store);
            if let Some(newest) = seen.last().copied() {
                let live = now.iter().filter(|(_, is_history)| !**is_history);
                for (appeared, _) in live.filter(|(id, _)| !seen.contains(id)) {
                    assert!(*appeared > newest, "{appeared} in {what} below {newest}");
                }
            }
            seen.extend(now.into_keys());
            reads += 1;
            if last {
                return reads;
            }
        }
    })
}

fn check_whole(store: &Store, sources: &[SourceKey]) {
    let all: BTreeSet<String> = (1..=PAGES * 4).map(|id| id.to_string()).collect();
    for id in sources.iter().copied() {
        let posts = read(store, move |tx| {
            timeline::source(tx, id, &EVERYTHING, Viewer::Anonymous)
        });
        let names: BTreeSet<String> = posts.iter().map(|post| post.upstream_id.clone()).collect();
        assert_eq!(names, all);
        assert_eq!(posts.len(), all.len());
        let found = read(store, move |tx| source::by_id(tx, id.id)).expect("the source");
        let rows = read(store, move |tx| export::rows(tx, id, 0, u32::MAX));
        let usns: BTreeSet<i64> = rows.iter().map(|row| row.usn).collect();
        assert_eq!(usns.len(), rows.len());
        assert_eq!(usns.last().copied(), Some(found.update_count));
    }
    let public = read(store, |tx| {
        timeline::public(tx, &EVERYTHING, Viewer::Anonymous)
    });
    let instances: BTreeSet<_> = sources.iter().map(|source| source.instance).collect();
    assert_eq!(public.len(), all.len() * instances.len());
}

const FIRST: u64 = 8;
const FILLS: u64 = 40;
const URL: &str = "DRIFTLINE_TEST_ORDER_URL";
const SOURCE: &str = "DRIFTLINE_TEST_ORDER_SOURCE";
const NUMBER: &str = "DRIFTLINE_TEST_ORDER_NUMBER";
