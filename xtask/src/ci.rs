use std::time::{Duration, Instant};

use crate::error::TaskError;
use crate::test::{self, TestArgs};
use crate::workspace::{Workspace, run as run_program};
use crate::{setup, tidy};

/// Runs every step in turn and stops at the first that fails.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let mut report = Vec::new();
    let mut outcome = Ok(());
    for (name, step) in STEPS {
        eprintln!("ci: {name}");
        let start = Instant::now();
        outcome = step
            .run(workspace)
            .map_err(|error| TaskError::message(format!("ci: step `{name}` failed: {error}")));
        report.push((name, start.elapsed(), outcome.is_ok()));
        if outcome.is_err() {
            break;
        }
    }
    print_report(&report);
    outcome
}

fn print_report(report: &[(&str, Duration, bool)]) {
    for (name, took, ok) in report {
        let outcome = if *ok { "ok" } else { "FAILED" };
        eprintln!("ci: {name:<7} {:>7.1} s  {outcome}", took.as_secs_f64());
    }
}

/// The README gives the test command, which must not rot there.
fn test(workspace: &Workspace) -> Result<(), TaskError> {
    let readme = workspace.shell.read_file("README.md")?;
    if !readme.lines().any(|line| line == README_LINE) {
        return Err(TaskError::message(format!(
            "README.md has no line `{README_LINE}`: add one"
        )));
    }
    test::run(workspace, &TestArgs::default())
}

enum Step {
    /// A command of cargo, a word after each space.
    Cargo(&'static str),
    Task(fn(&Workspace) -> Result<(), TaskError>),
}

impl Step {
    fn run(&self, workspace: &Workspace) -> Result<(), TaskError> {
        match self {
            Self::Cargo(line) => {
                let cargo = workspace.shell.cmd("cargo").args(line.split(' '));
                run_program(cargo.env("RUSTDOCFLAGS", "-D warnings"))
            }
            Self::Task(task) => task(workspace),
        }
    }
}

const README_LINE: &str = "$ cargo xtask test";
#[rustfmt::skip]
const STEPS: [(&str, Step); 8] = [
    ("setup", Step::Task(setup::run)),
    ("fmt", Step::Cargo("fmt --all -- --check")),
    ("tidy", Step::Task(tidy::run)),
    ("clippy", Step::Cargo("clippy --workspace --all-targets --all-features --locked -- -D warnings")),
    ("lean", Step::Cargo("check -p driftline-id -p driftline-core --no-default-features --locked")),
    // A workspace of its own. In this one's folder it shares what clippy made of the dependencies.
    ("bench", Step::Cargo("check --manifest-path bench/Cargo.toml --locked --target-dir target")),
    ("doc", Step::Cargo("doc --workspace --no-deps --all-features --locked")),
    ("test", Step::Task(test)),
];
