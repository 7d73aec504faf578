use std::format;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::vec::Vec;

use crate::file::FileError;
use crate::file::error::at;
use crate::file::folder_identity::{FolderIdentity, number};
use crate::node::Node;
use crate::window::Record;

/// The files of a node, and the lock on them.
#[derive(Debug)]
pub(super) struct Files {
    /// Canonical, so that it stays the same folder when the process changes its working directory.
    folder: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) record: PathBuf,
    /// A record while it is being written.
    draft: PathBuf,
    /// The open lock file. Closing it releases the lock. It is never unlocked explicitly: in a
    /// forked process that would free the parent's node.
    held: File,
}

impl Files {
    /// Locks the node's files in `folder`, which is made if it does not exist.
    pub(super) fn lock(folder: &Path, node: &Node) -> Result<Self, FileError> {
        make_folder(folder)?;
        let folder = fs::canonicalize(folder).map_err(at(folder))?;
        let path = |ending: &str| {
            let name = node.layout().name();
            folder.join(format!("{name}-{}.{ending}", node.number()))
        };
        let (lock, record, draft) = (path("lock"), path("window"), path("draft"));
        for _ in 0..MAX_LOCKS {
            let held = OpenOptions::new()
                .create(true)
                // Windows locks no file that is opened for appending only.
                .read(cfg!(windows))
                .append(true)
                .open(&lock)
                .map_err(at(&lock))?;
            match held.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(FileError::Held { path: lock }),
                Err(TryLockError::Error(error)) => return Err(at(&lock)(error)),
            }
            // Between opening and locking, the file may have been removed and made again.
            if is_at(&held, &lock).map_err(at(&lock))? {
                return Ok(Self {
                    folder,
                    lock,
                    record,
                    draft,
                    held,
                });
            }
        }
        Err(FileError::Held { path: lock })
    }

    pub(super) fn folder_identity(&self) -> Result<FolderIdentity, FileError> {
        FolderIdentity::read(&self.folder).map_err(at(&self.folder))
    }

    /// True if the lock file in the folder is still the locked one.
    pub(super) fn is_locked(&self) -> Result<bool, FileError> {
        is_at(&self.held, &self.lock).map_err(at(&self.lock))
    }

    pub(super) fn read(&self) -> Result<Option<Record>, FileError> {
        let bytes = match fs::read(&self.record) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&self.record)(error)),
        };
        let text = std::string::String::from_utf8_lossy(&bytes);
        let record = Record::parse(&text).map_err(|error| FileError::Record {
            path: self.record.clone(),
            error,
        })?;
        Ok(Some(record))
    }

    /// Writes the record durably: syncs the draft before renaming it to the record, and then the
    /// folder. The rename replaces the whole record, so a crash leaves the old one or the new one.
    pub(super) fn write(&self, record: &Record) -> Result<(), FileError> {
        let mut draft = File::create(&self.draft).map_err(at(&self.draft))?;
        let written = write!(draft, "{record}").and_then(|()| draft.sync_all());
        written.map_err(at(&self.draft))?;
        drop(draft);
        fs::rename(&self.draft, &self.record).map_err(at(&self.record))?;
        sync_folder(&self.folder)
    }
}

/// True if `path` names the open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(found) => Ok(number(&held) == number(&found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes the folder if it does not exist. Durable: its parent, which contains its name, is synced
/// too.
fn make_folder(folder: &Path) -> Result<(), FileError> {
    let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let missing: Vec<&Path> = folder.ancestors().take_while(is_missing).collect();
    fs::create_dir_all(folder).map_err(at(folder))?;
    for made in missing {
        let parent = fs::canonicalize(made).map_err(at(made))?;
        parent.parent().map_or(Ok(()), sync_folder)?;
    }
    Ok(())
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> Result<(), FileError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(at(folder))
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> Result<(), FileError> {
    Ok(())
}

/// The limit on attempts, because repeated removal of the lock file must not block a caller for
/// ever.
const MAX_LOCKS: u32 = 16;
