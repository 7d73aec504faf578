use std::time::{Duration, Instant};

use xshell::cmd;

use crate::error::TaskError;
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

/// Runs the test command as the README gives it, so that it cannot rot there.
fn test(workspace: &Workspace) -> Result<(), TaskError> {
    let readme = workspace.read("README.md")?;
    let line = readme_test_command(&readme).ok_or_else(|| {
        TaskError::message("README.md has no fenced block with a line `cargo xtask test`: add one")
    })?;
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or("cargo");
    run_program(workspace.shell.cmd(program).args(words))
}

/// The first line of a fenced block that is the test command, without a prompt before it and a
/// comment after it.
fn readme_test_command(readme: &str) -> Option<&str> {
    let mut in_block = false;
    for line in readme.lines().map(str::trim) {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            let command = line.split(" #").next().unwrap_or(line).trim();
            if command == COMMAND || command.starts_with(&format!("{COMMAND} ")) {
                return Some(command);
            }
        }
    }
    None
}

type Step = fn(&Workspace) -> Result<(), TaskError>;

const COMMAND: &str = "cargo xtask test";
const STEPS: [(&str, Step); 7] = [
    ("setup", setup::run),
    ("fmt", format),
    ("tidy", tidy::run),
    ("clippy", clippy),
    ("bench", bench),
    ("doc", doc),
    ("test", test),
];

#[cfg(test)]
mod tests {
    use super::readme_test_command;

    #[test]
    fn the_command_stands_in_a_fenced_block() {
        let readme = "# D\ncargo xtask test --no\n```sh\ncargo xtask testing\n  cargo xtask test --filter a  # all\n```\n";
        assert_eq!(
            readme_test_command(readme),
            Some("cargo xtask test --filter a")
        );
    }

    #[test]
    fn a_prompt_is_not_part_of_the_command() {
        let readme = "```console\n$ cargo xtask test\nok\n```\n";
        assert_eq!(readme_test_command(readme), Some("cargo xtask test"));
    }

    #[test]
    fn a_readme_without_it_has_none() {
        assert_eq!(readme_test_command("cargo xtask test"), None);
        assert_eq!(readme_test_command("```\nx\n```\ncargo xtask test\n"), None);
    }
}
