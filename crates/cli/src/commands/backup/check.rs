//! `backup check`: whether a backup is whole.

use std::path::Path;

use driftline_store::{StoreError, backup};
use serde::Serialize;

use super::{manifest::Manifest, watched::watched};
use crate::{error::CliError, output, shown, stop};

/// What was found.
#[derive(Debug, Serialize)]
struct Checked {
    taken_at_ms: i64,
    files: usize,
    tables: usize,
    rows: u64,
    bytes: u64,
    /// What is not as the manifest says.
    faults: Vec<String>,
}

/// Checks a folder, and says what is wrong with it.
///
/// # Errors
/// [`CliError::Failed`] if it is not whole.
pub async fn run(dir: &Path, json: bool) -> Result<(), CliError> {
    let shown = dir.display();
    let manifest = Manifest::read(dir)?;
    let stop = stop::on_signal()?;
    let (folder, of) = (dir.to_owned(), manifest.clone());
    let faults = watched(stop, "checked", move |watch| {
        let mut faults = of.faults(&folder);
        if faults.is_empty() {
            let copy = folder.join(of.database.file());
            match backup::read(of.database.kind(), &copy, watch) {
                Ok(found) => faults.extend(backup::difference(&of.snapshot().tables, &found)),
                Err(error) => match StoreError::from(error) {
                    error if error.is_interrupted() => return Err(error.into()),
                    error => faults.push(format!("{}: {error}", of.database.file())),
                },
            }
        }
        Ok(faults)
    })
    .await?;
    let checked = Checked {
        taken_at_ms: manifest.taken_at_ms,
        files: manifest.files.len(),
        tables: manifest.tables.len(),
        rows: manifest.rows(),
        bytes: manifest.bytes(),
        faults,
    };
    output::reply(json, &checked, |checked| {
        let mut lines = checked.faults.clone();
        lines.push(format!(
            "the store of {}: {}, {} in {}, {} bytes: {}",
            shown::time(checked.taken_at_ms),
            shown::count(checked.files as u64, "file"),
            shown::count(checked.rows, "row"),
            shown::count(checked.tables as u64, "table"),
            checked.bytes,
            match checked.faults.len() as u64 {
                0 => "all as the manifest says".to_owned(),
                faults => shown::count(faults, "fault"),
            }
        ));
        lines
    })?;
    match checked.faults.is_empty() {
        true => Ok(()),
        false => Err(CliError::failed(format!(
            "the backup in {shown} is not whole"
        ))),
    }
}
