use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use driftline_runtime::now_ms;
use tokio::task::spawn_blocking;

/// Writes a mail into a file of its own, which only its owner reads.
pub(super) async fn write(folder: PathBuf, mail: Vec<u8>) {
    let written = spawn_blocking(move || write_now(&folder, &mail)).await;
    match written {
        Ok(Ok(file)) => tracing::info!(file = %file.display(), "a mail is in its folder"),
        Ok(Err(error)) => tracing::warn!(%error, "a mail could not be written"),
        Err(_) => tracing::warn!("a mail was not written: the process ends"),
    }
}

fn write_now(folder: &Path, mail: &[u8]) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{}-{}-{number}", now_ms(), std::process::id());
    // Under another name until it is whole.
    let (part, file) = (
        folder.join(format!("{name}.part")),
        folder.join(format!("{name}.eml")),
    );
    let mut options = OpenOptions::new();
    let mut writing = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)?;
    writing.write_all(mail)?;
    writing.sync_all()?;
    std::fs::rename(&part, &file)?;
    Ok(file)
}
