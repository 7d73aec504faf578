//! Names the commit in `driftline --version`: that of `DRIFTLINE_COMMIT`, or in a release build
//! git's, if the sources are a work tree. Other builds do not ask git: each commit would build the
//! program again.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DRIFTLINE_COMMIT");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let named = env::var("DRIFTLINE_COMMIT").ok();
    let commit = named.filter(|commit| !commit.is_empty()).or_else(of_git);
    let shown = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=DRIFTLINE_VERSION={shown}");
}

/// The commit of a release build in the project's own work tree.
fn of_git() -> Option<String> {
    if env::var("PROFILE").ok()? != "release" {
        return None;
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").ok()?).join("../..");
    let root = fs::canonicalize(root).ok()?;
    // A source archive may lie in a work tree of something else.
    let top = fs::canonicalize(git(&root, &["rev-parse", "--show-toplevel"])?).ok()?;
    if top != root {
        return None;
    }
    // Written by each commit and each checkout.
    let log = git(
        &root,
        &[
            "rev-parse",
            "--path-format=absolute",
            "--git-path",
            "logs/HEAD",
        ],
    )?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&root, &["rev-parse", "--short=12", "HEAD"])
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(arguments)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
