//! `backup`: a copy of the store that is proven.

mod check;
mod folder;
pub mod manifest;
pub mod watched;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use bytesize::ByteSize;
use clap::{Args, Subcommand};
use driftline_runtime::now_ms;
use driftline_server::server_keys::KEY_FILE;
use driftline_store::{StoreError, Target, backup};
use rustix::fs::statvfs;

use self::{
    folder::{PartFolder, wrong},
    manifest::{Database, Manifest},
    watched::watched,
};
use crate::{
    backup_record::BackupRecord, config::Config, data_dir::DataDir, durable, error::CliError,
    output, shown, stop,
};

/// Copies the store into a new folder, of one moment, and proves the copy before it gets its name.
///
/// It works while `serve` or `mirror` runs, and without. The folder has the database, the records of ID
/// nodes, and `manifest.json` with counts and digests. Of PostgreSQL the copy is an archive of pg_dump.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Backup {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// The folder to make.
    #[arg(required = true)]
    dir: Option<PathBuf>,
    /// Also copy the key of stored credentials; whoever has the backup then has these credentials.
    #[arg(long)]
    with_key: bool,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Check that a backup is whole, as its manifest says.
    Check {
        /// The backup's folder.
        dir: PathBuf,
    },
}

impl Backup {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends; then there is no folder.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if let Some(BackupCommand::Check { dir }) = self.command {
            return check::run(&dir, json).await;
        }
        let Some(dir) = self.dir else {
            return Err(CliError::usage("name the folder to make"));
        };
        let data_dir = DataDir::new(&config.store)?;
        data_dir.require()?;
        let stop = stop::on_signal()?;
        let folder = PartFolder::make(&dir)?;
        let taken_at_ms = now_ms();
        let database = match data_dir.target() {
            Target::Sqlite { .. } => Database::Sqlite,
            Target::Postgres { .. } => Database::Postgresql,
        };
        let target = data_dir.target().clone();
        let copy = folder.path().join(database.file());
        let to = copy.clone();
        let beside = folder.path().to_owned();
        let snapshot = watched(stop.clone(), "copied", move |watch| {
            check_room(&target, &beside)?;
            Ok(backup::copy(&target, &to, watch)?)
        })
        .await?;
        let key_file = config.key_file(data_dir.data());
        let mut manifest = Manifest::new(database, taken_at_ms, &snapshot);
        let names = copy_files(data_dir.data(), &key_file, folder.path(), self.with_key)?;
        let failed = |error: io::Error| wrong(folder.path(), &error);
        manifest.has_key = names.iter().any(|name| name == KEY_FILE);
        for name in [database.file().to_owned()].iter().chain(&names) {
            manifest.add(folder.path(), name).map_err(failed)?;
        }
        let found = watched(stop, "verified", move |watch| {
            Ok(backup::read(database.kind(), &copy, watch).map_err(StoreError::from)?)
        })
        .await?;
        if let Some(difference) = backup::difference(&snapshot.tables, &found) {
            return Err(CliError::failed(format!(
                "the copy is not what was copied, so it was removed: {difference}; check the disk"
            )));
        }
        manifest.write(folder.path()).map_err(failed)?;
        folder.publish()?;
        if !data_dir.is_read_only() {
            remember(data_dir.data(), &dir, taken_at_ms);
        }
        if !self.with_key && key_file.exists() {
            output::note(&format!(
                "driftline: the backup is without {KEY_FILE}, which unseals stored credentials: keep that file elsewhere, or add --with-key"
            ));
        }
        output::reply(json, &manifest, |manifest| vec![summary(manifest, &dir)])
    }
}

fn summary(manifest: &Manifest, dir: &Path) -> String {
    let secret = match manifest.has_key {
        true => "; keep it secret, it has the key of stored credentials",
        false => "",
    };
    format!(
        "{} has the store of {}: {} in {}, {}, verified{secret}",
        dir.display(),
        shown::time(manifest.taken_at_ms),
        shown::count(manifest.rows(), "row"),
        shown::count(manifest.tables.len() as u64, "table"),
        ByteSize::b(manifest.bytes()),
    )
}

/// Lets the server know of a verified backup, as far as the data folder can be written.
fn remember(data: &Path, dir: &Path, taken_at_ms: i64) {
    let folder = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let record = BackupRecord {
        taken_at_ms,
        folder: folder.display().to_string(),
    };
    if data.is_dir()
        && let Err(error) = record.keep(data)
    {
        tracing::info!(%error, "the data folder does not remember the backup");
    }
}

/// Copies what belongs to the store and is not in the database; returns the names in the folder.
fn copy_files(
    data: &Path,
    key_file: &Path,
    to: &Path,
    with_key: bool,
) -> Result<Vec<String>, CliError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(data.join(IDS)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        // Locks belong to processes.
        if name.ends_with(".window") || name.ends_with(".store") {
            names.push(format!("{IDS}/{name}"));
        }
    }
    names.sort();
    if with_key {
        if key_file.exists() {
            names.push(KEY_FILE.to_owned());
        } else {
            output::note(&format!(
                "driftline: there is no {}: no server was ever started",
                key_file.display()
            ));
        }
    }
    if names.iter().any(|name| name.starts_with(IDS)) {
        fs::create_dir(to.join(IDS)).map_err(|error| wrong(to, &error))?;
    }
    for name in &names {
        let from = match name == KEY_FILE {
            true => key_file.to_owned(),
            false => data.join(name),
        };
        copy_file(&from, &to.join(name)).map_err(|error| wrong(&to.join(name), &error))?;
    }
    if to.join(IDS).exists() {
        durable::sync_folder(&to.join(IDS)).map_err(|error| wrong(to, &error))?;
    }
    Ok(names)
}

/// Copies a small file durably, with its mode.
///
/// # Errors
/// That of the system.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    fs::File::open(to)?.sync_all()
}

/// Checks that the disk has room for a copy.
fn check_room(target: &Target, folder: &Path) -> Result<(), CliError> {
    let size = backup::size(target).map_err(StoreError::from)?;
    let needed = match target {
        Target::Sqlite { .. } => size,
        // An archive is packed.
        Target::Postgres { .. } => size / 4,
    };
    need_room(folder, needed)
}

/// Checks that the disk of a folder has that much room.
///
/// # Errors
/// [`CliError::Failed`] if it has less.
pub fn need_room(folder: &Path, needed: u64) -> Result<(), CliError> {
    let Ok(disk) = statvfs(folder) else {
        return Ok(());
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    match free < needed {
        false => Ok(()),
        true => Err(CliError::failed(format!(
            "the disk of {} has {} free, and about {} are needed: make room, or name a folder on another disk",
            durable::parent(folder).display(),
            ByteSize::b(free),
            ByteSize::b(needed)
        ))),
    }
}

/// Where a data folder has the records of ID nodes.
pub const IDS: &str = "ids";
