//! Files and folders that are whole at any time, also after the power went.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use serde::Serialize;

/// Replaces a file by one with this value as JSON.
///
/// # Errors
/// That of the write: then the file is as it was.
pub fn replace_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let mut file = File::create(&part)?;
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    rename(part.as_ref(), path)
}

/// Gives a file or folder another name, for good.
///
/// # Errors
/// That of the system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_folder(parent(to))
}

/// Makes what a folder lists durable.
///
/// # Errors
/// That of the system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that something lies in.
pub fn parent(path: &Path) -> &Path {
    let parent = path.parent();
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
