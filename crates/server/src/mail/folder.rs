use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use driftline_runtime::{FaultLog, Weight, now_ms};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

/// Writes each mail into a file of its own, which only its owner reads.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    faults: Mutex<FaultLog>,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            faults: Mutex::default(),
        }
    }

    pub(super) async fn deliver(&self, mail: Vec<u8>) {
        let path = self.path.clone();
        let written = spawn_blocking(move || write_now(&path, &mail)).await;
        match written {
            Ok(Ok(file)) => {
                tracing::info!(file = %file.display(), "a mail is in its folder");
                self.faults.lock().succeeded(now_ms());
            }
            Ok(Err(error)) => {
                if self.faults.lock().failed(Weight::Lasting, now_ms()) {
                    tracing::warn!(%error, "no mail can be written");
                }
            }
            Err(_) => tracing::warn!("a mail was not written: the process ends"),
        }
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
