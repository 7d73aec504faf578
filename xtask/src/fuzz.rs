use clap::Args;
use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::{Workspace, run as run_program};

/// The arguments of `cargo xtask fuzz`.
#[derive(Debug, Args)]
pub(crate) struct FuzzArgs {
    /// The seconds for which each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// One target, instead of all
    target: Option<String>,
}

/// Builds the targets of `fuzz/` with the coverage that libFuzzer needs, which stable Rust can do without
/// sanitizers, and runs them one after the other. What a run has learned is kept for the next one.
pub(crate) fn run(workspace: &Workspace, args: &FuzzArgs) -> Result<(), TaskError> {
    let shell = &workspace.shell;
    let version = cmd!(shell, "rustc -vV").read()?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| TaskError::message("rustc names no host".to_owned()))?;
    // With a target, the flags are not those of build scripts and macros.
    run_program(
        cmd!(
            shell,
            "cargo build --release --manifest-path {MANIFEST} --target {host}"
        )
        .env("RUSTFLAGS", COVERAGE.join(" ")),
    )?;
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(workspace.root.join(MANIFEST))
        .no_deps()
        .exec()?;
    let folder = metadata.target_directory.into_std_path_buf();
    let seconds = args.seconds.to_string();
    for target in TARGETS {
        if args.target.as_deref().is_some_and(|only| only != target) {
            continue;
        }
        let program = folder.join(host).join("release").join(target);
        let [corpus, findings] =
            ["corpus", "findings"].map(|kind| folder.join("fuzz").join(kind).join(target));
        for made in [&corpus, &findings] {
            shell.create_dir(made)?;
        }
        let findings = format!("-artifact_prefix={}/", findings.display());
        run_program(cmd!(
            shell,
            "{program} {corpus} {findings} -dict={DICTIONARY} -max_total_time={seconds} -max_len=4096 -timeout=10 -print_final_stats=1"
        ))?;
    }
    Ok(())
}

const MANIFEST: &str = "fuzz/Cargo.toml";
const DICTIONARY: &str = "fuzz/predicate.dict";
const TARGETS: [&str; 2] = ["predicate_text", "predicate_json"];
const COVERAGE: [&str; 7] = [
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];
