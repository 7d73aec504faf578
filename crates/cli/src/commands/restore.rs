//! `restore`: a store from a backup.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use driftline_id::{Layout, file::NodeFolder, window::WindowConfig};
use driftline_runtime::{now_ms, show_ms};
use driftline_store::{Target, backup};
use serde_json::json;

use crate::{
    commands::backup::{
        IDS, copy_file,
        manifest::{Database, Manifest},
        need_room,
        watched::watched,
    },
    config::Config,
    data_dir::DataDir,
    durable,
    error::CliError,
    output, shown, stop,
};

/// Restores a backup into the data folder, which must be empty or absent, or into an empty schema of the
/// database that --database-url names.
///
/// The restored store goes its own way: no ID that was given after the backup is given again, if this
/// machine's clock is right. You promise that the store that was backed up is used no more. The backup's
/// own files are compared with their digests in any case.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup's folder.
    dir: PathBuf,
    /// Compare each table with what was backed up, before the restored store can be used.
    #[arg(long)]
    verify: bool,
}

impl Restore {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends; then there is no store, and the same can be tried again.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let manifest = Manifest::read(&self.dir)?;
        let data_dir = DataDir::new(&config.store)?;
        fits(&manifest, &data_dir)?;
        let behind_ms = manifest.taken_at_ms - now_ms();
        if behind_ms > 0 {
            return Err(CliError::failed(format!(
                "this machine's clock is {} behind the one that the backup was made by, so IDs could repeat: set it first",
                show_ms(behind_ms)
            )));
        }
        let stop = stop::on_signal()?;
        let lock = data_dir.lock(", which is to be empty; end it").await?;
        let marker = clear(&data_dir, &manifest)?;
        // Until it gets another name, nothing takes the folder for a store.
        let target = match data_dir.target() {
            Target::Sqlite { .. } => Target::Sqlite {
                path: marker.clone(),
            },
            postgres @ Target::Postgres { .. } => {
                File::create(&marker).map_err(|error| wrong(&marker, &error))?;
                postgres.clone()
            }
        };
        let (from, of, verify) = (self.dir.clone(), manifest.clone(), self.verify);
        let room = data_dir.data().to_owned();
        let restored = watched(stop, "restored", move |watch| {
            let faults = of.faults(&from);
            if let Some(fault) = faults.first() {
                return Err(CliError::failed(format!(
                    "the backup in {} is not whole: {fault}",
                    from.display()
                )));
            }
            if of.database == Database::Sqlite {
                need_room(&room, of.bytes())?;
            }
            let copy = from.join(of.database.file());
            backup::restore(&copy, &of.snapshot(), &target, (verify, now_ms()), watch).map_err(
                |error| match error.is_not_empty() {
                    true => {
                        CliError::usage(format!("{error}; a backup is restored into an empty one"))
                    }
                    false => error.into(),
                },
            )
        })
        .await;
        let finished = restored.and_then(|()| self.finish(&manifest, &data_dir, &marker));
        if let Err(error) = finished {
            remove_leftovers(data_dir.data(), &manifest, &marker);
            return Err(error);
        }
        drop(lock);
        let answer = json!({
            "database": data_dir.shown(),
            "data": data_dir.data(),
            "taken_at_ms": manifest.taken_at_ms,
            "rows": manifest.rows(),
            "verified": self.verify,
        });
        output::reply(json, &answer, |_| self.lines(&manifest, &data_dir))
    }

    /// Puts the other files there, then gives the database its name.
    fn finish(
        &self,
        manifest: &Manifest,
        data_dir: &DataDir,
        marker: &Path,
    ) -> Result<(), CliError> {
        let data = data_dir.data();
        let others = manifest.files.iter().map(|file| file.name.as_str());
        for name in others.filter(|name| *name != manifest.database.file()) {
            let to = data.join(name);
            fs::create_dir_all(durable::parent(&to)).map_err(|error| wrong(&to, &error))?;
            copy_file(&self.dir.join(name), &to).map_err(|error| wrong(&to, &error))?;
        }
        let ids = data.join(IDS);
        if ids.is_dir() {
            for layout in Layout::ALL {
                let adopted = NodeFolder::new(&ids, *layout, WindowConfig::default()).adopt();
                adopted.map_err(|error| {
                    CliError::failed(format!(
                        "the records of ID nodes cannot be adopted: {error}"
                    ))
                })?;
            }
        }
        let named = match data_dir.database_file() {
            Some(file) => durable::rename(marker, file),
            None => fs::remove_file(marker).and_then(|()| durable::sync_folder(data)),
        };
        named.map_err(|error| wrong(marker, &error))
    }

    fn lines(&self, manifest: &Manifest, data_dir: &DataDir) -> Vec<String> {
        let verified = match self.verify {
            true => ", verified",
            false => "",
        };
        let database = match data_dir.database_file() {
            Some(file) => file.display().to_string(),
            None => data_dir.shown().to_owned(),
        };
        let mut lines = vec![format!(
            "{database} has the store of {}: {} in {}{verified}",
            shown::time(manifest.taken_at_ms),
            shown::count(manifest.rows(), "row"),
            shown::count(manifest.tables.len() as u64, "table"),
        )];
        if !manifest.has_key {
            lines.push(format!(
                "the backup has no key of stored credentials: if there are any, put credentials.key into {}, or add them again",
                data_dir.data().display()
            ));
        }
        lines
    }
}

/// Checks that the backup is of the kind of database that is configured.
fn fits(manifest: &Manifest, data_dir: &DataDir) -> Result<(), CliError> {
    match (manifest.database, data_dir.database_file()) {
        (Database::Sqlite, Some(_)) | (Database::Postgresql, None) => Ok(()),
        (Database::Sqlite, None) => Err(CliError::usage(
            "the backup is of a database file, which no PostgreSQL database takes: leave --database-url out",
        )),
        (Database::Postgresql, Some(_)) => Err(CliError::usage(
            "the backup is of a PostgreSQL database: name an empty one with --database-url",
        )),
    }
}

/// Makes sure that the folder has nothing but what an earlier restore left unfinished, and removes that;
/// returns the name that the database has until it is whole.
fn clear(data_dir: &DataDir, manifest: &Manifest) -> Result<PathBuf, CliError> {
    let data = data_dir.data();
    let marker = data_dir.unfinished_restore();
    if marker.exists() {
        remove_leftovers(data, manifest, &marker);
    }
    let entries = fs::read_dir(data).map_err(|error| {
        CliError::failed(format!(
            "the folder {} cannot be read: {error}",
            data.display()
        ))
    })?;
    let mut names = entries.flatten().map(|entry| entry.file_name());
    match names.find(|name| name != "lock") {
        None => Ok(marker),
        Some(name) => Err(CliError::usage(format!(
            "the data folder {} has {} in it, and a backup is restored into an empty one: name another folder with --data",
            data.display(),
            name.display()
        ))),
    }
}

/// Removes what a restore has put there; the marker last, which says that it is one's.
fn remove_leftovers(data: &Path, manifest: &Manifest, marker: &Path) {
    for file in &manifest.files {
        if file.name != manifest.database.file() {
            let _ = fs::remove_file(data.join(&file.name));
        }
    }
    for entry in fs::read_dir(data.join(IDS)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".lock") || name.ends_with(".draft") {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(data.join(IDS));
    for ending in ["-journal", "-wal", "-shm", ""] {
        let mut path = marker.as_os_str().to_owned();
        path.push(ending);
        let _ = fs::remove_file(path);
    }
}

fn wrong(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("{} cannot be written: {error}", path.display()))
}
