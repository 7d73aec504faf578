use std::time::{Duration, Instant};

use xshell::cmd;

use crate::error::TaskError;
use crate::test::{self, TestArgs};
use crate::workspace::{Workspace, run as run_program};
use crate::{setup, tidy};

/// Runs every step in turn and stops at the first that fails.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let mut report = Vec::new();
    for (name, step) in STEPS {
        eprintln!("ci: {name}");
        let start = Instant::now();
        let outcome = step(workspace);
        report.push((name, start.elapsed(), outcome.is_ok()));
        if let Err(error) = outcome {
            print_report(&report);
            return Err(TaskError::Step {
                step: name,
                error: Box::new(error),
            });
        }
    }
    print_report(&report);
    Ok(())
}

fn print_report(report: &[(&str, Duration, bool)]) {
    for (name, took, ok) in report {
        let outcome = if *ok { "ok" } else { "FAILED" };
        eprintln!("ci: {name:<7} {:>7.1} s  {outcome}", took.as_secs_f64());
    }
}

fn format(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    run_program(cmd!(shell, "cargo fmt --all -- --check"))
}

fn clippy(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    run_program(cmd!(
        shell,
        "cargo clippy --workspace --all-targets --all-features --locked -- -D warnings"
    ))
}

/// The benchmarks stand in a workspace of their own, which nothing else builds.
fn bench(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    run_program(cmd!(
        shell,
        "cargo check --manifest-path bench/Cargo.toml --locked"
    ))
}

fn doc(workspace: &Workspace) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let doc = cmd!(shell, "cargo doc --workspace --no-deps --locked");
    run_program(doc.env("RUSTDOCFLAGS", "-D warnings"))
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

type Step = fn(&Workspace) -> Result<(), TaskError>;

const README_LINE: &str = "$ cargo xtask test";
const STEPS: [(&str, Step); 7] = [
    ("setup", setup::run),
    ("fmt", format),
    ("tidy", tidy::run),
    ("clippy", clippy),
    ("bench", bench),
    ("doc", doc),
    ("test", test),
];
