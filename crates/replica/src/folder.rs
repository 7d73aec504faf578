use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::ReplicaError;

/// A replica's folder.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

/// The lock of a replica's folder: this process alone syncs it until this is dropped. Others may read and edit meanwhile.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _file: File,
}

impl Folder {
    /// Makes the folder, for its owner only.
    ///
    /// # Errors
    /// [`ReplicaError::File`] if it cannot be made.
    pub(crate) fn make(path: &Path) -> Result<Self, ReplicaError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| ReplicaError::file("be made", path, &error))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// Finds a folder that has a replica.
    ///
    /// # Errors
    /// [`ReplicaError::NoReplica`] if it has none; [`ReplicaError::File`] if it cannot be read.
    pub(crate) fn open(path: &Path) -> Result<Self, ReplicaError> {
        match path.join(DATABASE).try_exists() {
            Ok(true) => Ok(Self {
                path: path.to_owned(),
            }),
            Ok(false) => Err(ReplicaError::NoReplica(path.display().to_string())),
            Err(error) => Err(ReplicaError::file("be opened", path, &error)),
        }
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file of the database.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// Takes the lock. Waits up to 5 s for another process that keeps it.
    ///
    /// # Errors
    /// [`ReplicaError::Locked`] if it keeps it for longer; [`ReplicaError::File`] if the lock's file cannot be used.
    pub(crate) async fn lock(&self) -> Result<FolderLock, ReplicaError> {
        let file = self.path.join("lock");
        let failed = |error: io::Error| ReplicaError::file("be locked", &file, &error);
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(&file).map_err(failed)?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(FolderLock { _file: lock }),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(ReplicaError::Locked(self.path.display().to_string()))
    }
}

const DATABASE: &str = "replica.db";
/// 5 s: other processes keep the lock for one sync, or one round of `watch`.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
