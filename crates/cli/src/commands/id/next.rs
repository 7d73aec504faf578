//! `id next`: IDs for scripts.

use std::io::{self, BufWriter, Write as _};

use clap::Args;
use driftline_id::{
    Layout,
    file::{FileError, LocalIds},
};
use driftline_id_service::check_folder;

use crate::{
    config::Config,
    data_dir::DataDir,
    error::CliError,
    options::id_options::{ADOPT, IdOptions, folder},
    options::id_place::LeaseStore,
    output,
};

/// Prints new IDs, one a line, each larger than the one before, as their layout writes them; with
/// --json also in decimal.
///
/// The node is the configured one, or node 0: a service that has it is better
/// asked itself. With --lease file it is the lowest of the data folder that no
/// process holds.
#[derive(Debug, Args)]
pub struct Next {
    /// How many.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    count: u64,
    #[command(flatten)]
    id_options: IdOptions,
}

impl Next {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let data_dir = DataDir::new(&config.store)?;
        data_dir.make()?;
        let id_options = self.id_options.or(&config.id)?;
        if id_options.lease == Some(LeaseStore::Store) {
            return Err(CliError::usage(
                "id next leases no node from the store; ask the service, as with curl -X POST",
            ));
        }
        let count = self.count;
        let folder = folder(data_dir.data());
        tokio::task::spawn_blocking(move || print(&id_options, &folder, count, json))
            .await
            .map_err(CliError::failed)?
    }
}

fn print(
    id_options: &IdOptions,
    folder: &std::path::Path,
    count: u64,
    json: bool,
) -> Result<(), CliError> {
    let layout = id_options.generating_layout()?;
    check_folder(folder, &layout).map_err(CliError::failed)?;
    let opened = match id_options.lease {
        Some(_) => LocalIds::open(folder, layout),
        None => LocalIds::open_node(folder, id_options.node_or_first()?),
    };
    let ids = opened.map_err(|error| {
        let help = match &error {
            FileError::Copied { .. } => ADOPT,
            FileError::Held { .. } => " (--lease file takes another of this folder)",
            _ => "",
        };
        let text = format!("{error}{help}");
        match error {
            FileError::Held { .. } => CliError::Locked(text),
            _ => CliError::Failed(text),
        }
    })?;
    // Again: a store may have been leased from in between.
    check_folder(folder, &layout).map_err(CliError::failed)?;
    let outcome = write(&ids, &layout, count, json);
    ids.close().map_err(CliError::failed)?;
    outcome
}

fn write(ids: &LocalIds, layout: &Layout, mut left: u64, json: bool) -> Result<(), CliError> {
    let broken = |error: io::Error| output::broken(&error);
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        out.write_all(b"[").map_err(broken)?;
    }
    while left > 0 {
        let length = usize::try_from(left).unwrap_or(usize::MAX);
        for id in ids.reserve_waiting(length).map_err(CliError::failed)? {
            left -= 1;
            let text = layout.print(u128::from(id));
            let written = match json {
                true => {
                    let comma = if left == 0 { "" } else { "," };
                    write!(out, r#"{{"id":"{text}","decimal":"{id}"}}{comma}"#)
                }
                false => writeln!(out, "{text}"),
            };
            written.map_err(broken)?;
        }
    }
    if json {
        out.write_all(b"]\n").map_err(broken)?;
    }
    out.flush().map_err(broken)
}
