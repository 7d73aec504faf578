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
    SecretUrl, Store, Target, distribution,
    timeline::{self, Range},
};

use crate::{
    Effort,
    failure::Failure,
    ingest::{Intake, add_source_of, page},
    pages::{self, RawPage},
    process::Process,
    rounds::Spread,
    table::Table,
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
    let (_own, url) = match &options.database_url {
        Some(url) => (None, url.clone()),
        None => {
            let cluster = Cluster::start()?;
            let url = cluster.url().to_owned();
            (Some(cluster), url)
        }
    };
    let pages = pages::forward(PAGES * u64::from(pages::LIMIT))?;
    let mut readable = (Vec::new(), Vec::new());
    let mut stalls = [(End::Killed, Vec::new()), (End::Vanished, Vec::new())];
    for round in 0..effort.rounds(9) {
        let schema = |part: &str| format!("stalls_{}_{part}_{round}", std::process::id());
        let open = |schema: &str| -> Result<Store, Failure> {
            let store = Store::open(target(&url, schema))?;
            if options.database_url.is_some() && !options.plain {
                let done = distribution::distribute(&store, options.shards, |_| ());
                done.map_err(|error| Failure::new(error.to_string()))?;
                store.close_blocking();
                return Ok(Store::open(target(&url, schema))?);
            }
            Ok(store)
        };
        let (waited, longest) = until_readable(&open(&schema("readable"))?, &pages)?;
        readable.0.push(waited);
        readable.1.push(longest);
        for (end, figures) in &mut stalls {
            let part = match end {
                End::Killed => "killed",
                End::Vanished => "vanished",
            };
            let store = open(&schema(part))?;
            figures.push(stall(
                &store,
                *end,
                (&url, &schema(part)),
                options.namespace.as_deref(),
                &pages,
            )?);
            store.close_blocking();
        }
    }
    let mut table = Table::new(
        format!("stalls: {WRITERS} writers of {} posts a page", pages::LIMIT),
        ["what", "seconds", "longest commit meanwhile, or before"],
    );
    table.row([
        "from a commit to its first page of the public timeline, at most".to_owned(),
        Spread::of(readable.0, 4).to_string(),
        Spread::of(readable.1, 4).to_string(),
    ]);
    for (end, figures) in stalls {
        let what = match end {
            End::Killed => "longest commit of the others after a SIGKILL",
            End::Vanished => "longest commit of the others after the machine vanished",
        };
        table.row([
            what.to_owned(),
            Spread::of(figures.iter().map(|stall| stall.after), 2).to_string(),
            Spread::of(figures.iter().map(|stall| stall.before), 2).to_string(),
        ]);
    }
    table.print();
    Ok(())
}

/// Commits pages of one instance, shared with others, until it is ended.
pub(crate) fn run_child(options: &ChildOptions) -> Result<(), Failure> {
    let pages = pages::forward(PAGES * u64::from(pages::LIMIT))?;
    let store = Store::open(target(&options.url, &options.schema))?;
    let mut intakes = intakes(&store, "child", |_| "shared".to_owned(), &pages)?;
    println!("ready");
    thread::scope(|scope| {
        for intake in &mut intakes {
            scope.spawn(|| -> Result<(), Failure> {
                for raw in pages.iter().cycle() {
                    intake.commit(page(raw)?)?;
                }
                Ok(())
            });
        }
    });
    Err(Failure::new("the commits ended"))
}

fn target(url: &str, schema: &str) -> Target {
    Target::Postgres {
        url: SecretUrl::new(url),
        schema: Some(schema.to_owned()),
    }
}

fn intakes(
    store: &Store,
    name: &str,
    host: impl Fn(usize) -> String,
    pages: &[RawPage],
) -> Result<Vec<Intake>, Failure> {
    let first_ms = pages.first().map_or(0, |page| page.at_ms);
    let intakes = (0..WRITERS).map(|number| {
        let origin = format!("https://{}.example", host(number));
        let source = add_source_of(store, &format!("{name}-{number}"), &origin)?;
        Intake::start(store, source, first_ms)
    });
    intakes.collect()
}

/// The longest time from the end of a commit to the start of the read that shows its posts, and the longest
/// commit, in seconds.
fn until_readable(store: &Store, pages: &[RawPage]) -> Result<(f64, f64), Failure> {
    let mut intakes = intakes(store, "own", |number| format!("own-{number}"), pages)?;
    let longest = Mutex::new((0.0_f64, 0.0_f64));
    thread::scope(|scope| {
        let writing: Vec<_> = intakes
            .iter_mut()
            .map(|intake| {
                let longest = &longest;
                scope.spawn(move || -> Result<(), Failure> {
                    for raw in pages.iter().take(READABLE_PAGES) {
                        let newest = newest_of(raw)?;
                        let origin = intake.source();
                        let begun = Instant::now();
                        intake.commit(page(raw)?)?;
                        let committed = Instant::now();
                        let waited = loop {
                            let looked = committed.elapsed();
                            let range = Range {
                                limit: WRITERS as u16 * 3 * pages::LIMIT,
                                ..Range::default()
                            };
                            let shown = store.read_blocking(move |tx| {
                                timeline::public(tx, &range, driftline_store::Viewer::Anonymous)
                            })?;
                            if shown.iter().any(|post| {
                                post.upstream_id == newest && post.instance == origin.instance
                            }) {
                                break looked;
                            }
                            if looked > READABLE_AT_MOST {
                                return Err(Failure::new("a committed post is not shown"));
                            }
                        };
                        if let Ok(mut longest) = longest.lock() {
                            let commit = committed - begun;
                            longest.0 = longest.0.max(waited.as_secs_f64());
                            longest.1 = longest.1.max(commit.as_secs_f64());
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        join(writing)
    })?;
    store.clone().close_blocking();
    longest
        .into_inner()
        .map_err(|_| Failure::new("a writer panicked"))
}

fn newest_of(raw: &RawPage) -> Result<String, Failure> {
    let newest = page(raw)?.listed.into_iter().next();
    newest
        .map(|listed| listed.post.id.as_str().to_owned())
        .ok_or_else(|| Failure::new("a page without posts"))
}

/// The longest commit before the end of the other process, and after it, in seconds.
struct Stall {
    before: f64,
    after: f64,
}

/// Half of the writers share an instance with those of the process that ends.
fn stall(
    store: &Store,
    end: End,
    (url, schema): (&str, &str),
    namespace: Option<&[String]>,
    pages: &[RawPage],
) -> Result<Stall, Failure> {
    let link = Link::delayed(url, Duration::ZERO)?;
    let namespace = namespace.filter(|_| end == End::Vanished);
    let host = |number: usize| match number % 2 {
        0 => "shared".to_owned(),
        _ => format!("own-{number}"),
    };
    let mut intakes = intakes(store, "parent", host, pages)?;
    let mut other = match (end, namespace) {
        (End::Killed, _) => start_other(url, schema, None)?,
        (End::Vanished, None) => start_other(link.url(), schema, None)?,
        (End::Vanished, Some(namespace)) => start_other(url, schema, Some(namespace))?,
    };
    let is_over = AtomicBool::new(false);
    let commits = Mutex::new(Vec::new());
    let ended = thread::scope(|scope| {
        let writing: Vec<_> = intakes
            .iter_mut()
            .map(|intake| {
                let (is_over, commits) = (&is_over, &commits);
                scope.spawn(move || -> Result<(), Failure> {
                    for raw in pages.iter().cycle() {
                        if is_over.load(Ordering::Relaxed) {
                            break;
                        }
                        let begun = Instant::now();
                        intake.commit(page(raw)?)?;
                        if let Ok(mut commits) = commits.lock() {
                            commits.push((begun, Instant::now()));
                        }
                    }
                    Ok(())
                })
            })
            .collect();
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
        join(writing).and(outcome).map(|()| ended)
    })?;
    let commits = commits
        .into_inner()
        .map_err(|_| Failure::new("a writer panicked"))?;
    let longest = |of: &dyn Fn(&(Instant, Instant)) -> bool| {
        let of = commits.iter().filter(|commit| of(commit));
        of.map(|(begun, done)| (*done - *begun).as_secs_f64())
            .fold(0.0, f64::max)
    };
    Ok(Stall {
        before: longest(&|(_, done)| *done < ended),
        after: longest(&|(_, done)| *done >= ended),
    })
}

fn join(writing: Vec<thread::ScopedJoinHandle<'_, Result<(), Failure>>>) -> Result<(), Failure> {
    writing.into_iter().try_for_each(|writer| {
        writer
            .join()
            .unwrap_or_else(|_| Err(Failure::new("a writer panicked")))
    })
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
