use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::ReplicaError;

/// A replica's folder, with its lock: this process alone works with it until this is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder, for its owner only, and takes its lock.
    ///
    /// # Errors
    /// [`ReplicaError::File`] if it cannot be made; [`ReplicaError::Locked`] if another process keeps it.
    pub(crate) async fn make(path: &Path) -> Result<Self, ReplicaError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| ReplicaError::file("be made", path, &error))?;
        Self::lock(path).await
    }

    /// Takes the lock of a folder that has a replica.
    ///
    /// # Errors
    /// [`ReplicaError::NoReplica`] if it has none; [`ReplicaError::Locked`] if another process keeps the lock.
    pub(crate) async fn open(path: &Path) -> Result<Self, ReplicaError> {
        match path.join(DATABASE).try_exists() {
            Ok(true) => Self::lock(path).await,
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

    async fn lock(path: &Path) -> Result<Self, ReplicaError> {
        let file = path.join("lock");
        let failed = |error: io::Error| ReplicaError::file("be locked", &file, &error);
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        let lock = options.open(&file).map_err(failed)?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => {
                    return Ok(Self {
                        path: path.to_owned(),
                        _lock: lock,
                    });
                }
                Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(ReplicaError::Locked(path.display().to_string()))
    }
}

const DATABASE: &str = "replica.db";
/// 5 s: other processes keep the lock for one command, or one round of `watch`.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
