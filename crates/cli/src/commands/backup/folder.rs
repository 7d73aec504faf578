//! The folder of a backup while it is being written.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use crate::{durable, error::CliError, output};

/// A folder under a temporary name, which is removed unless it is published.
///
/// It is locked while its process lives: the next backup removes those of processes that were killed.
pub struct PartFolder {
    target: PathBuf,
    part: PathBuf,
    _lock: File,
}

impl PartFolder {
    /// Makes one, next to its target, and removes what killed backups left there.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the target is there already, or has no name; [`CliError::Locked`] if another
    /// process writes it.
    pub fn make(target: &Path) -> Result<Self, CliError> {
        let shown = target.display();
        let Some(name) = target.file_name() else {
            return Err(CliError::usage(format!(
                "{shown} is no name of a folder to make"
            )));
        };
        match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => {
                return Err(CliError::usage(format!(
                    "{shown} is there already; each backup takes a new folder, such as {shown}-2"
                )));
            }
        }
        let parent = durable::parent(target);
        fs::create_dir_all(parent).map_err(|error| wrong(parent, &error))?;
        remove_abandoned(parent);
        let mut part = name.to_owned();
        part.push(ENDING);
        let part = parent.join(part);
        match DirBuilder::new().mode(0o700).create(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(CliError::locked(format!(
                    "another process writes the backup {shown}, in {}",
                    part.display()
                )));
            }
            made => made.map_err(|error| wrong(&part, &error))?,
        }
        let lock = File::open(&part).and_then(|lock| {
            lock.try_lock().map_err(io::Error::from)?;
            Ok(lock)
        });
        let lock = lock.map_err(|error| wrong(&part, &error))?;
        Ok(Self {
            target: target.to_owned(),
            part,
            _lock: lock,
        })
    }

    /// The folder as it is called now.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Gives it its name, for good.
    ///
    /// # Errors
    /// [`CliError`] if that cannot be done; then it is removed.
    pub fn publish(self) -> Result<(), CliError> {
        durable::sync_folder(&self.part)
            .and_then(|()| durable::rename(&self.part, &self.target))
            .map_err(|error| wrong(&self.target, &error))
    }
}

impl Drop for PartFolder {
    fn drop(&mut self) {
        // Nothing once it has its name.
        let _ = fs::remove_dir_all(&self.part);
    }
}

/// Removes folders under temporary names whose processes are dead.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_part = entry.file_name().to_string_lossy().ends_with(ENDING);
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_part || !is_folder {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = File::open(&path) else {
            continue;
        };
        match folder.try_lock() {
            Ok(()) if fs::remove_dir_all(&path).is_ok() => output::note(&format!(
                "driftline: removed {}, which an earlier backup left unfinished",
                path.display()
            )),
            Ok(()) | Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

pub fn wrong(path: &Path, error: &io::Error) -> CliError {
    let path = path.display();
    CliError::failed(format!("{path} cannot be written: {error}"))
}

const ENDING: &str = ".backup-part";
