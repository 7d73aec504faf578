//! The folder of a replica.

use std::{
    fs::{DirBuilder, File, TryLockError},
    io,
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    time::Duration,
};

use crate::ReplicaError;

/// Makes the folder, for its owner only.
///
/// # Errors
/// [`ReplicaError::File`] if it cannot be made.
pub(crate) fn make(folder: &Path) -> Result<(), ReplicaError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| ReplicaError::file("be made", folder, &error))
}

/// Checks that the folder has a replica.
///
/// # Errors
/// [`ReplicaError::NoReplica`] if it has none; [`ReplicaError::File`] if it cannot be read.
pub(crate) fn check(folder: &Path) -> Result<(), ReplicaError> {
    match folder.join(DATABASE).try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(ReplicaError::NoReplica(folder.display().to_string())),
        Err(error) => Err(ReplicaError::file("be opened", folder, &error)),
    }
}

/// Takes the folder's lock: this process alone syncs the replica until the file is dropped. Others may read and edit meanwhile.
/// Waits up to 5 s for another process that keeps it.
///
/// # Errors
/// [`ReplicaError::Locked`] if it keeps it for longer; [`ReplicaError::File`] if the lock's file cannot be used.
pub(crate) async fn lock(folder: &Path) -> Result<File, ReplicaError> {
    let path = folder.join("lock");
    let failed = |error: io::Error| ReplicaError::file("be locked", &path, &error);
    let mut options = File::options();
    let options = options.create(true).truncate(false).read(true).write(true);
    let lock = options.open(&path).map_err(failed)?;
    for _ in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_PAUSE).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(ReplicaError::Locked(folder.display().to_string()))
}

/// The database's file.
pub(crate) const DATABASE: &str = "replica.db";
/// 5 s: other processes keep the lock for one sync, or one round of `watch`.
const LOCK_TRIES: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
