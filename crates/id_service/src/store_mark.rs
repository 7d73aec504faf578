//! Marks folders whose nodes are leased from a store.
//!
//! A store and a folder do not know of each other's nodes: with both in use, two processes would have
//! one node. The first lease from a store marks the folder, which then leases none.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use driftline_id::Layout;

use super::HeldNodeError;

/// Marks that nodes of the layout are leased from a store.
///
/// # Errors
/// [`HeldNodeError::HeldInFolder`] if a process holds one in the folder.
pub(super) fn mark_store(folder: &Path, layout: &Layout) -> Result<(), HeldNodeError> {
    let mark = mark(folder, layout);
    let wrong = |error| HeldNodeError::Mark {
        path: mark.clone(),
        error,
    };
    fs::create_dir_all(folder).map_err(wrong)?;
    let is_new = match File::create_new(&mark) {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(wrong(error)),
    };
    // Only after the mark: a process that leases a node of the folder checks the mark afterwards.
    match held_lock(folder, layout).map_err(wrong)? {
        None => Ok(()),
        Some(path) => {
            if is_new {
                fs::remove_file(&mark).map_err(wrong)?;
            }
            Err(HeldNodeError::HeldInFolder { path })
        }
    }
}

/// Checks that the folder may lease nodes of the layout. Call it again after leasing one.
///
/// # Errors
/// [`HeldNodeError::LeasedFromStore`] if they are leased from a store.
pub fn check_folder(folder: &Path, layout: &Layout) -> Result<(), HeldNodeError> {
    let path = mark(folder, layout);
    if path.exists() {
        return Err(HeldNodeError::LeasedFromStore {
            path,
            layout: layout.name(),
        });
    }
    Ok(())
}

/// The lock of a node of the folder that a process holds.
fn held_lock(folder: &Path, layout: &Layout) -> io::Result<Option<PathBuf>> {
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
