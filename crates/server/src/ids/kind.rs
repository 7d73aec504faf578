//! Whether a folder's nodes are its own, or a store's.
//!
//! A store knows nothing of the nodes that a folder hands out, nor the folder of the store's: with
//! both in use, two holders would have one node. The first lease from a store leaves a mark in
//! the folder, and from then on the folder hands out none.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use driftline_id::Layout;

use super::HoldError;

/// Marks that nodes of the layout are leased from a store.
///
/// # Errors
/// [`HoldError::HeldInFolder`] if a process holds one in the folder.
pub(super) fn mark_store(folder: &Path, layout: &Layout) -> Result<(), HoldError> {
    let mark = mark(folder, layout);
    let wrong = |error| HoldError::Mark {
        path: mark.clone(),
        error,
    };
    fs::create_dir_all(folder).map_err(wrong)?;
    let is_new = match File::create_new(&mark) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(wrong(error)),
    };
    // After the mark: who takes a node of the folder looks for it after taking.
    match held(folder, layout).map_err(wrong)? {
        None => Ok(()),
        Some(path) => {
            if is_new {
                fs::remove_file(&mark).map_err(wrong)?;
            }
            Err(HoldError::HeldInFolder { path })
        }
    }
}

/// Whether nodes of the layout may be taken from the folder: to be asked once one is taken.
///
/// # Errors
/// [`HoldError::LeasedFromStore`] if they are leased from a store.
pub fn check_folder(folder: &Path, layout: &Layout) -> Result<(), HoldError> {
    let path = mark(folder, layout);
    if path.exists() {
        return Err(HoldError::LeasedFromStore {
            path,
            layout: layout.name(),
        });
    }
    Ok(())
}

/// The lock of a node that somebody holds.
fn held(folder: &Path, layout: &Layout) -> io::Result<Option<PathBuf>> {
    let first = format!("{}-", layout.name());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if !name.is_some_and(|name| name.starts_with(&first) && name.ends_with(".lock")) {
            continue;
        }
        match File::open(&path)?.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Some(path)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

fn mark(folder: &Path, layout: &Layout) -> PathBuf {
    folder.join(format!("{}.store", layout.name()))
}
