pub(crate) mod cluster;
pub(crate) mod programs;
mod scratch;
mod wasm;

use std::collections::VecDeque;
use std::env;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;

use crate::error::TaskError;
use crate::setup::{self, node, python};
use crate::workspace::Workspace;
use cluster::{Cluster, ServerUrl};
use programs::{Built, Program};
use scratch::Scratch;

/// What `cargo xtask test` takes.
#[derive(Debug, Default, Args)]
pub(crate) struct TestArgs {
    /// Runs only the tests whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// Uses the PostgreSQL server of this URL, and no cluster of the tests' own
    #[arg(long, value_name = "URL")]
    database_url: Option<ServerUrl>,
    /// Distributes the tests' stores: the server is the coordinator of a Citus cluster
    #[arg(long, requires = "database_url")]
    distribute: bool,
    /// Lists the ten tests that took longest, those of the documentation aside
    #[arg(long)]
    slowest: bool,
}

/// Sets the machine up and runs every test of the workspace.
///
/// These are the tests of a plain `cargo test --workspace`, built as it builds them; but several test programs run at a time,
/// those first that wait for clocks and processes, with more threads. The conformance vectors of the sync protocol run in
/// WebAssembly, too. Temporary files are kept in memory if there is room. All share one throw-away PostgreSQL cluster, or the
/// server that is named: by the option, or by `DRIFTLINE_TEST_POSTGRES_URL`.
pub(crate) fn run(workspace: &Workspace, args: &TestArgs) -> Result<(), TaskError> {
    setup::run(workspace)?;
    let filter = args.filter.as_deref();
    // Before all is built: it may be of no use.
    let named = ServerUrl::or_of_environment(args.database_url.as_ref())
        .map(|url| Cluster::named(&cluster::program(workspace)?, url))
        .transpose()?;
    let Built {
        mut programs,
        cluster,
    } = programs::build(workspace, filter)?;
    if args.slowest {
        programs.iter_mut().for_each(Program::time_tests);
    }
    programs.push(Program::documentation(workspace, filter));
    let mut not_run = "";
    if filter.is_none_or(|filter| wasm::NAME.contains(filter)) {
        match wasm::program(workspace)? {
            Some(program) => programs.push(program),
            None => not_run = wasm::NOT_RUN,
        }
    }
    let scratch = Scratch::make(workspace)?;
    let cluster = match named {
        Some(cluster) => cluster,
        None => Cluster::start(&cluster, scratch.variable())?,
    };
    for program in &mut programs {
        let command = &mut program.command;
        command
            .env(python::VARIABLE, python::interpreter(workspace))
            .env(node::VARIABLE, node::modules(workspace))
            .envs(scratch.variable())
            .envs(cluster.variables());
        if env::var_os(DRAWN_FROM).is_none() {
            command.env(DRAWN_FROM, SEED);
        }
        if args.distribute {
            command.env(DISTRIBUTE, "1");
        }
        if is_waiting(&program.name) {
            command.env("RUST_TEST_THREADS", (cores() * THREADS_A_CORE).to_string());
        }
    }
    // The programs that take longest begin.
    programs.sort_by_key(|program| !is_waiting(&program.name));
    let all = programs.len();
    let ended = run_all(programs);
    let mut failed = Vec::new();
    let mut tally = Tally::default();
    for program in &ended {
        tally.add(&program.output);
        if !program.succeeded {
            failed.push(program.name.as_str());
        }
    }
    for (seconds, name) in slowest(&ended).iter().take(MAX_SLOWEST) {
        eprintln!("test: {seconds:>7.2} s  {name}");
    }
    eprintln!(
        "test: {all} programs: {} tests passed, {} failed, {} ignored{not_run}",
        tally.passed, tally.failed, tally.ignored
    );
    match failed.is_empty() {
        true => Ok(()),
        false => Err(TaskError::message(format!(
            "tests failed in {}",
            failed.join(", ")
        ))),
    }
}

/// A program that has ended.
struct Ended {
    name: String,
    succeeded: bool,
    took: Duration,
    output: String,
}

/// Runs all programs, several at a time, whether or not some fail. Prints the whole output of failed programs. One
/// lane begins with the last programs, which compute, so that the cores have work while others wait.
fn run_all(programs: Vec<Program>) -> Vec<Ended> {
    let waiting = Mutex::new(VecDeque::from(programs));
    let ended = Mutex::new(Vec::new());
    let next = |lane: usize| {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match lane {
            0 => waiting.pop_back(),
            _ => waiting.pop_front(),
        }
    };
    thread::scope(|scope| {
        let (next, ended) = (&next, &ended);
        for lane in 0..cores() + MORE_LANES {
            scope.spawn(move || {
                while let Some(program) = next(lane) {
                    let program = run_one(program);
                    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                    show(&program);
                    ended.push(program);
                }
            });
        }
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// True for programs whose tests wait for clocks and processes most of their time.
fn is_waiting(program: &str) -> bool {
    WAITING.iter().any(|waiting| program.starts_with(waiting))
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn run_one(mut program: Program) -> Ended {
    let begun = Instant::now();
    let (succeeded, output) = match program.command.output() {
        Ok(output) => {
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            (output.status.success(), text)
        }
        Err(error) => (false, format!("it could not be started: {error}\n")),
    };
    Ended {
        name: program.name,
        succeeded,
        took: begun.elapsed(),
        output,
    }
}

fn show(program: &Ended) {
    let outcome = if program.succeeded { "ok" } else { "FAILED" };
    let seconds = program.took.as_secs_f64();
    eprintln!("test: {seconds:>6.1} s  {outcome:<6}  {}", program.name);
    if !program.succeeded {
        eprintln!("{}", program.output);
    }
}

/// The tests of programs that time them, with the seconds that they took, the longest first.
fn slowest(programs: &[Ended]) -> Vec<(f64, String)> {
    let mut tests: Vec<(f64, String)> = Vec::new();
    for program in programs {
        tests.extend(program.output.lines().filter_map(|line| {
            let (test, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
            let seconds = outcome.split_once(" <")?.1.strip_suffix("s>")?;
            Some((seconds.parse().ok()?, format!("{} {test}", program.name)))
        }));
    }
    tests.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    tests
}

/// What the test programs say that they did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    fn add(&mut self, output: &str) {
        let results = output
            .lines()
            .filter_map(|line| line.strip_prefix("test result: "));
        for result in results {
            for part in result.split([';', '.']) {
                let mut words = part.split_whitespace();
                let number = words.next().and_then(|word| word.parse::<u64>().ok());
                match (number, words.next()) {
                    (Some(number), Some("passed")) => self.passed += number,
                    (Some(number), Some("failed")) => self.failed += number,
                    (Some(number), Some("ignored")) => self.ignored += number,
                    _ => {}
                }
            }
        }
    }
}

/// The seed from which property tests draw. It is the same in each run, so that a change passes or fails alike
/// everywhere; `cargo test` and `cargo xtask soak` draw anew.
const DRAWN_FROM: &str = "PROPTEST_RNG_SEED";
const SEED: &str = "1";
/// Tells the tests to distribute their stores.
pub(crate) const DISTRIBUTE: &str = "DRIFTLINE_TEST_DISTRIBUTED";
/// Programs at a time beyond the number of cores.
const MORE_LANES: usize = 2;
/// The packages whose tests wait for clocks and processes most of their time, and how many of their
/// tests run at a time.
const WAITING: [&str; 2] = ["cli/", "server/"];
const THREADS_A_CORE: usize = 2;
const MAX_SLOWEST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_test_is_the_first() {
        let program = |name: &str, output: &str| Ended {
            name: name.into(),
            succeeded: true,
            took: Duration::ZERO,
            output: output.into(),
        };
        let found = slowest(&[
            program(
                "core/laws",
                "\ntest a::b ... ok <0.500s>\ntest result: ok. 2 passed\n",
            ),
            program("cli/kill", "test c ... FAILED <12.034s>\ntest d ... ok\n"),
        ]);
        let expected = [
            (12.034, "cli/kill c".to_owned()),
            (0.5, "core/laws a::b".to_owned()),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_programs_say_is_counted() {
        let mut tally = Tally::default();
        tally.add("test a ... ok\n\ntest result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 1.70s\n");
        tally.add("test result: FAILED. 19 passed; 6 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n");
        let expected = Tally {
            passed: 25,
            failed: 6,
            ignored: 1,
        };
        assert_eq!(tally, expected);
    }
}
