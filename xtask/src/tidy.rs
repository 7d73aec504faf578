//! The rules of the house that no compiler checks.

mod edges;
mod english;
mod functions;
mod manifest;
mod offence;
mod purity;
mod source;

use std::fs;

use cargo_metadata::{Metadata, MetadataCommand};
use xshell::cmd;

use crate::error::TaskError;
use crate::workspace::Workspace;
use offence::Offence;

/// Prints one line per offence, and fails if there are any.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let metadata = MetadataCommand::new()
        .current_dir(&workspace.root)
        .no_deps()
        .exec()?;
    let mut offences = check_crates(workspace, &metadata)?;
    offences.extend(check_files(workspace)?);
    offences.sort();
    offences.dedup();
    for offence in &offences {
        println!("{offence}");
    }
    match offences.len() {
        0 => Ok(()),
        count => Err(TaskError::message(format!("tidy: {count} offences"))),
    }
}

fn check_crates(workspace: &Workspace, metadata: &Metadata) -> Result<Vec<Offence>, TaskError> {
    let mut offences = Vec::new();
    for package in metadata.workspace_packages() {
        let path = &package.manifest_path;
        let path = path.strip_prefix(&workspace.root).unwrap_or(path).as_str();
        let text = workspace.shell.read_file(path)?;
        offences.extend(edges::check(package, path, &text));
        offences.extend(manifest::check_lints(path, &text));
        for found in purity::unwanted(workspace, package.name.as_str())? {
            offences.push(Offence::new(path, 1, found));
        }
    }
    for path in CLOCKLESS {
        let text = workspace.shell.read_file(path).unwrap_or_default();
        offences.extend(manifest::check_clippy(path, &text));
    }
    Ok(offences)
}

/// Looks at every file that git has or would add.
fn check_files(workspace: &Workspace) -> Result<Vec<Offence>, TaskError> {
    let shell = &workspace.shell;
    let list = cmd!(
        shell,
        "git ls-files -z --cached --others --exclude-standard"
    );
    let list = list.quiet().read()?;
    let mut offences = Vec::new();
    let mut files = english::Files::new();
    for path in list.split('\0').filter(|path| !path.is_empty()) {
        offences.extend(source::check_name(path));
        // Deleted, a link to a folder, or not text.
        let Ok(text) = fs::read_to_string(workspace.root.join(path)) else {
            continue;
        };
        offences.extend(source::check(path, &text));
        files.insert(path.to_owned(), text);
    }
    offences.extend(english::check(&files));
    Ok(offences)
}

/// The clippy settings that reject clocks in the pure crates.
const CLOCKLESS: [&str; 2] = ["crates/core/clippy.toml", "crates/id/clippy.toml"];
