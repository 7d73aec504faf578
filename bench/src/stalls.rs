//! `stalls`: how long a commit takes to become readable, and how long the others wait when a process is
//! killed, or its machine vanishes, in the middle of its commits.

use std::{
    env,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use driftline_db::testing::{Cluster, Link};
use driftline_store::{
    Store, Viewer,
    timeline::{self, Range},
};

use crate::{
    Effort,
    database::postgres_target,
    distributed::distribute,
    failure::Failure,
    ingest::{Intake, page},
    pages::{self, RawPage},
    process::Process,
    rounds::Rounds,
    table::Table,
    threads,
};

/// What it takes.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The database on a Citus cluster's coordinator, instead of one PostgreSQL:
    /// postgres://USER@HOST:PORT/DATABASE. A schema stays behind for each part of a round
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Into how many shards its stores are distributed
    #[arg(long, default_value_t = 8)]
    shards: u32,
    /// A network namespace in which the process runs whose machine vanishes, the address of this machine there, and
    /// the interface that is then taken down; without one a silent proxy stands for the network
    #[arg(long, num_args = 3, value_names = ["NAMESPACE", "ADDRESS", "INTERFACE"], requires = "database_url")]
    namespace: Option<Vec<String>>,
    /// The store is not distributed, though its database is named
    #[arg(long)]
    plain: bool,
}

/// What the process that is to end takes.
#[derive(Debug, Args)]
pub(crate) struct ChildOptions {
    url: String,
    schema: String,
}

/// How the other process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    Vanished,
}

/// Measures each part in each round.
pub(crate) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let own = match &options.database_url {
        Some(_) => None,
        None => Some(Cluster::start()?),
    };
    let own_url = own.as_ref().map_or("", Cluster::url);
    let url = options.database_url.as_deref().unwrap_or(own_url);
    let pages = pages::forward(PAGES * u64::from(pages::LIMIT))?;
    let mut rounds: Rounds<[f64; 2], 3> = Rounds::new();
    for round in 0..effort.rounds(9) {
        let parts = [
            (None, "readable"),
            (Some(End::Killed), "killed"),
            (Some(End::Vanished), "vanished"),
        ];
        rounds.round(parts, |(end, part)| {
            let schema = format!("stalls_{}_{part}_{round}", std::process::id());
            let target = postgres_target(url, Some(schema.clone()));
            if options.database_url.is_some() && !options.plain {
                distribute(&target, options.shards)?;
            }
            let store = Store::open(target)?;
            let namespace = options.namespace.as_deref();
            let figures = match end {
                None => until_readable(&store, &pages),
                Some(end) => stall(&store, end, (url, &schema), namespace, &pages),
            };
            store.close_blocking();
            figures
        })?;
    }
    let mut table = Table::new(
        format!("stalls: {WRITERS} writers of {} posts a page", pages::LIMIT),
        "what | seconds | longest commit meanwhile, or before",
    );
    let what = [
        (
            "from a commit to its first page of the public timeline, at most",
            4,
        ),
        ("longest commit of the others after a SIGKILL", 2),
        ("longest commit of the others after the machine vanished", 2),
    ];
    for (part, (what, digits)) in what.iter().enumerate() {
        let [figure, other] = [0, 1].map(|of| rounds.of(part, |figures| figures[of], *digits));
        table.row(format!("{what} | {figure} | {other}"));
    }
    table.print();
    Ok(())
}

/// Commits pages of one instance, shared with others, until it is ended.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    let pages = pages::forward(PAGES * u64::from(pages::LIMIT))?;
    let store = Store::open(postgres_target(&options.url, Some(options.schema.clone())))?;
    let mut intakes = intakes(&store, "child", |_| "shared".to_owned(), &pages)?;
    println!("ready");
    threads::each(&mut intakes, |intake| {
        let mut pages = pages.iter().cycle();
        pages.try_for_each(|raw| intake.commit(page(raw)?))
    })
    .map(drop)
}

fn intakes(
    store: &Store,
    name: &str,
    host: impl Fn(usize) -> String,
    pages: &[RawPage],
) -> Result<Vec<Intake>, Failure> {
    let intakes = (0..WRITERS)
        .map(|number| Intake::of_host(store, &format!("{name}-{number}"), &host(number), pages));
    intakes.collect()
}

/// The longest time from the end of a commit to the start of the read that shows its posts, and the longest
/// commit, in seconds.
fn until_readable(store: &Store, pages: &[RawPage]) -> Result<[f64; 2], Failure> {
    let mut intakes = intakes(store, "own", |number| format!("own-{number}"), pages)?;
    let times = Mutex::new(Vec::new());
    threads::each(&mut intakes, |intake| {
        for raw in pages.iter().take(READABLE_PAGES) {
            let newest = newest_of(raw)?;
            let instance = intake.source.instance;
            let begun = Instant::now();
            intake.commit(page(raw)?)?;
            let committed = Instant::now();
            let waited = loop {
                let looked = committed.elapsed();
                let range = Range {
                    limit: WRITERS as u16 * 3 * pages::LIMIT,
                    ..Range::default()
                };
                let shown = store
                    .read_blocking(move |tx| timeline::public(tx, &range, Viewer::Anonymous))?;
                let mut shown = shown.iter().filter(|post| post.upstream_id == newest);
                if shown.any(|post| post.instance == instance) {
                    break looked;
                }
                if looked > READABLE_AT_MOST {
                    return Err(Failure::new("a committed post is not shown"));
                }
            };
            note(&times, [waited, committed - begun]);
        }
        Ok(())
    })?;
    let times = times.into_inner().unwrap_or_default();
    Ok([0, 1].map(|of| longest(times.iter().map(|times: &[Duration; 2]| times[of]))))
}

fn note<T>(all: &Mutex<Vec<T>>, one: T) {
    if let Ok(mut all) = all.lock() {
        all.push(one);
    }
}

/// In seconds.
fn longest(times: impl Iterator<Item = Duration>) -> f64 {
    times.max().unwrap_or_default().as_secs_f64()
}

fn newest_of(raw: &RawPage) -> Result<String, Failure> {
    let newest = page(raw)?.listed.into_iter().next();
    newest
        .map(|listed| listed.post.id.as_str().to_owned())
        .ok_or_else(|| Failure::new("a page without posts"))
}

/// The longest commit after the end of the other process, and before it, in seconds. Half of the writers share an
/// instance with those of the process that ends.
fn stall(
    store: &Store,
    end: End,
    (url, schema): (&str, &str),
    namespace: Option<&[String]>,
    pages: &[RawPage],
) -> Result<[f64; 2], Failure> {
    let link = Link::delayed(url, Duration::ZERO)?;
    let namespace = namespace.filter(|_| end == End::Vanished);
    let host = |number: usize| match number % 2 {
        0 => "shared".to_owned(),
        _ => format!("own-{number}"),
    };
    let mut intakes = intakes(store, "parent", host, pages)?;
    let mut other = match (end, namespace) {
        (End::Vanished, None) => start_other(link.url(), schema, None)?,
        _ => start_other(url, schema, namespace)?,
    };
    let is_over = AtomicBool::new(false);
    let commits = Mutex::new(Vec::new());
    let ended = thread::scope(|scope| {
        let writing = scope.spawn(|| {
            threads::each(&mut intakes, |intake| {
                let goes_on = |_: &_| !is_over.load(Ordering::Relaxed);
                pages
                    .iter()
                    .cycle()
                    .take_while(goes_on)
                    .try_for_each(|raw| {
                        let begun = Instant::now();
                        intake.commit(page(raw)?)?;
                        note(&commits, (begun, Instant::now()));
                        Ok(())
                    })
            })
        });
        thread::sleep(RUN_BEFORE);
        let ended = Instant::now();
        match (end, namespace) {
            (End::Vanished, Some([_, _, interface])) => interface_is(interface, "down")?,
            (End::Vanished, _) => link.fall_silent(),
            (End::Killed, _) => {}
        }
        let outcome = other.kill();
        thread::sleep(match end {
            End::Killed => RUN_AFTER_KILL,
            End::Vanished => RUN_AFTER_VANISHING,
        });
        is_over.store(true, Ordering::Relaxed);
        if let Some([_, _, interface]) = namespace {
            interface_is(interface, "up")?;
        }
        writing
            .join()
            .map_err(|_| Failure::new("a writer panicked"))??;
        outcome.map(|()| ended)
    })?;
    let commits: Vec<(Instant, Instant)> = commits.into_inner().unwrap_or_default();
    let (after, before): (Vec<_>, Vec<_>) = commits.iter().partition(|(_, done)| *done >= ended);
    Ok([after, before].map(|of| longest(of.iter().map(|(begun, done)| *done - *begun))))
}

fn interface_is(interface: &str, state: &str) -> Result<(), Failure> {
    let mut command = Command::new("ip");
    match command.args(["link", "set", interface, state]).status()? {
        status if status.success() => Ok(()),
        status => Err(Failure::new(format!(
            "ip link set {interface} {state}: {status}"
        ))),
    }
}

/// The process that ends.
fn start_other(url: &str, schema: &str, namespace: Option<&[String]>) -> Result<Process, Failure> {
    let mut url = url.to_owned();
    let mut command = Command::new(env::current_exe()?);
    if let Some([name, address, _]) = namespace {
        url = url.replace("127.0.0.1", address);
        command = Command::new("ip");
        command
            .args(["netns", "exec", name])
            .arg(env::current_exe()?);
    }
    command.args(["commit-until-killed", &url, schema]);
    Process::start(&mut command)?.until_ready()
}

/// Of each process.
const WRITERS: usize = 4;
const PAGES: u64 = 1_000;
const READABLE_PAGES: usize = 40;
const READABLE_AT_MOST: Duration = Duration::from_secs(20);
const RUN_BEFORE: Duration = Duration::from_secs(2);
const RUN_AFTER_KILL: Duration = Duration::from_secs(3);
const RUN_AFTER_VANISHING: Duration = Duration::from_secs(8);
