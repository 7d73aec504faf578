//! `queues`: the same work in queue engines, which know IDs alone.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use driftline_core::refresh::Policy;

use super::{Options, beanstalkd, database::SqliteFile, fill::Width, ours::Worker, schedule};
use crate::{
    Effort,
    failure::Failure,
    rounds::Spread,
    table::{Table, met},
};

/// Measures Driftline on SQLite, beanstalkd and apalis in turns.
pub(super) fn run(options: &Options, effort: Effort) -> Result<(), Failure> {
    let jobs = options.posts(effort);
    let due = jobs.min(DUE);
    let few = due.min(DUE_SYNCED);
    let file = SqliteFile::fill(jobs, Width::Full)?;
    let mut systems = [
        System::new("Driftline, SQLite", jobs, jobs, "-"),
        System::new(
            "beanstalkd, binlog, synced every 50 ms",
            jobs,
            due,
            NO_POSTS,
        ),
        System::new(
            "beanstalkd, binlog, synced at every write",
            few,
            few,
            NO_POSTS,
        ),
        System::new(
            "apalis-sqlite, as it sets itself up (never synced)",
            jobs,
            due.min(APALIS_DUE),
            NO_PLACE,
        ),
        System::new(
            "apalis-sqlite, synchronous = full",
            jobs,
            due.min(APALIS_DUE),
            NO_PLACE,
        ),
    ];
    for _ in 0..effort.rounds(3) {
        for (number, system) in systems.iter_mut().enumerate() {
            let figures = match number {
                0 => driftline(&file, jobs)?,
                1 => beanstalk(system, 50)?,
                2 => beanstalk(system, 0)?,
                3 => apalis(&options.apalis, system, false)?,
                _ => apalis(&options.apalis, system, true)?,
            };
            system.rounds.push(figures);
        }
    }
    print(&systems, jobs);
    println!(
        "{}; apalis-sqlite 1.0 run with its own statements, a batch a transaction, not by its \
         workers",
        beanstalkd::Server::version()?
    );
    for system in systems
        .iter()
        .filter(|system| system.of(|f| f.idle_ms).median > 0.0)
    {
        println!(
            "{}: a fetch when nothing is due takes {} ms with {} delayed jobs",
            system.name,
            system.of_digits(|figures| figures.idle_ms, 1),
            system.delayed + system.due
        );
    }
    Ok(())
}

fn print(systems: &[System], jobs: u64) {
    let mut table = Table::new(
        format!(
            "refresh queues: {jobs} delayed jobs put, then due ones leased, completed and put off in batches of 100"
        ),
        [
            "system",
            "delayed",
            "due",
            "put/s",
            "cycles/s",
            "Driftline/it, put",
            "Driftline/it, cycles",
            "target",
            "met",
            "does not store",
        ],
    );
    let [ours, others @ ..] = systems else {
        return;
    };
    let figure = |system: &System| {
        [
            system.name.to_owned(),
            system.delayed.to_string(),
            system.due.to_string(),
            system.of(|figures| figures.put_per_s).to_string(),
            system.of(|figures| figures.cycles_per_s).to_string(),
        ]
    };
    let compared = |system: &System, comparison: [String; 4]| {
        let lacks = system.lacks.to_owned();
        figure(system).into_iter().chain(comparison).chain([lacks])
    };
    table.row(compared(ours, Default::default()));
    for system in others {
        let ratio = |of: fn(&Figures) -> f64| {
            let pairs = ours.rounds.iter().zip(&system.rounds);
            Spread::of(pairs.map(|(ours, its)| of(ours) / of(its)), 2)
        };
        let put_ratio = ratio(|figures| figures.put_per_s).to_string();
        let cycles_ratio = ratio(|figures| figures.cycles_per_s);
        let (target, is_met) = match system.name.starts_with("apalis") {
            true => (format!(">= {TARGET}"), met(cycles_ratio.median >= TARGET)),
            false => Default::default(),
        };
        let comparison = [put_ratio, cycles_ratio.to_string(), target, is_met];
        table.row(compared(system, comparison));
    }
    table.print();
}

struct System {
    name: &'static str,
    delayed: u64,
    due: u64,
    lacks: &'static str,
    rounds: Vec<Figures>,
}

struct Figures {
    put_per_s: f64,
    cycles_per_s: f64,
    /// 0 where it was not measured.
    idle_ms: f64,
}

impl System {
    const fn new(name: &'static str, delayed: u64, due: u64, lacks: &'static str) -> Self {
        Self {
            name,
            delayed,
            due,
            lacks,
            rounds: Vec::new(),
        }
    }

    fn of(&self, figure: fn(&Figures) -> f64) -> Spread {
        self.of_digits(figure, 0)
    }

    fn of_digits(&self, figure: fn(&Figures) -> f64, digits: usize) -> Spread {
        Spread::of(self.rounds.iter().map(figure), digits)
    }
}

fn driftline(file: &SqliteFile, jobs: u64) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir()?;
    let (put, put_time) = schedule::sqlite(&folder.path().join("new.db"), jobs)?;
    let copy = file.copy()?;
    let store = copy.store()?;
    let (done, time) = Worker::new(&store, file.instance, Policy::default()).work_off()?;
    store.close_blocking();
    Ok(Figures {
        put_per_s: put as f64 / put_time.as_secs_f64(),
        cycles_per_s: done as f64 / time.as_secs_f64(),
        idle_ms: 0.0,
    })
}

fn beanstalk(system: &System, sync_ms: u32) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir()?;
    let server = beanstalkd::Server::start(folder.path(), sync_ms)?;
    let mut client = server.connect()?;
    let start = Instant::now();
    client.put(system.delayed, LATER_S, BATCH)?;
    let put_per_s = system.delayed as f64 / start.elapsed().as_secs_f64();
    client.put(system.due, 0, BATCH)?;
    let start = Instant::now();
    let batches = system.due / BATCH;
    for _ in 0..batches {
        client.cycle(BATCH, LATER_S)?;
    }
    let cycles_per_s = (batches * BATCH) as f64 / start.elapsed().as_secs_f64();
    Ok(Figures {
        put_per_s,
        cycles_per_s,
        idle_ms: 0.0,
    })
}

fn apalis(program: &Path, system: &System, is_full: bool) -> Result<Figures, Failure> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program);
    command
        .arg(folder.path().join("apalis.db"))
        .args([system.delayed.to_string(), system.due.to_string()])
        .args(is_full.then_some("full"));
    let output = command.output().map_err(|error| {
        let program = program.display();
        Failure::new(format!(
            "{program} could not be started ({error}): build it with `cargo build --release \
             --manifest-path bench/apalis/Cargo.toml`, or say where it is with --apalis"
        ))
    })?;
    let said = String::from_utf8(output.stdout)?;
    let words: Vec<f64> = said
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match words.as_slice() {
        &[put_per_s, cycles_per_s, idle_ms] => Ok(Figures {
            put_per_s,
            cycles_per_s,
            idle_ms,
        }),
        _ => Err(Failure::new(format!(
            "{} says {said:?} and {:?}",
            program.display(),
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

/// Where its own workspace builds it, unless configured otherwise.
pub(super) fn apalis_default() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/apalis/target/release/driftline-bench-apalis"
    ))
}

const NO_POSTS: &str = "posts, history, freshness, USNs; in memory, the log is for restarts";
const NO_PLACE: &str = "posts, history, freshness, USNs";
const BATCH: u64 = 100;
const LATER_S: u64 = 7_200;
/// Jobs that are cycled at most.
const DUE: u64 = 200_000;
const DUE_SYNCED: u64 = 2_000;
const APALIS_DUE: u64 = 5_000;
const TARGET: f64 = 5.0;
