//! The disk of the database file: its free space, and the reserve that intake leaves free.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    time::Duration,
};

use bytesize::ByteSize;
use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::{
    clock::now_ms,
    metrics::{
        DISK_FREE, DISK_RESERVE, DISK_TOTAL, INTAKE_PAUSED, STORE_DATABASE_BYTES, STORE_WAL_BYTES,
    },
    span::show_ms,
};

/// The state of the database file's disk for intake. Clones share it.
///
/// Intake is the work that stores more: polls, streams, and refreshes of posts. Intake pauses below
/// the reserve, so that readers and the operator's commands still work.
#[derive(Debug, Clone, Default)]
pub struct StoreDisk(Arc<watch::Sender<Option<LowDisk>>>);

/// A disk with less room than its reserve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LowDisk {
    /// The folder of the database file.
    pub folder: PathBuf,
    /// The bytes that may still be written.
    pub free_bytes: u64,
    /// The bytes that intake leaves free.
    pub reserve_bytes: u64,
    /// The time since which intake pauses, in Unix ms.
    pub since_ms: i64,
}

/// The size and free space of a disk at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Room {
    free_bytes: u64,
    total_bytes: u64,
}

impl StoreDisk {
    /// Watches the disk of this database file while a clone exists. The first check happens before
    /// this returns, so that nothing begins on a full disk.
    ///
    /// The default reserve is a twentieth of the disk, at most 256 MiB; 0 disables it. Must be
    /// called within a Tokio runtime.
    pub fn watch(database_file: &Path, reserve_bytes: Option<u64>) -> Self {
        let disk = Self::default();
        let mut watched = Watched {
            database_file: database_file.to_owned(),
            reserve_bytes,
            has_failed: false,
            low: Arc::downgrade(&disk.0),
        };
        watched.look();
        tokio::spawn(async move {
            // A file system that hangs blocks only its own thread.
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                let looked = tokio::task::spawn_blocking(move || watched.look().then_some(watched));
                match looked.await {
                    Ok(Some(again)) => watched = again,
                    Ok(None) | Err(_) => return,
                }
            }
        });
        disk
    }

    /// The reason why intake pauses now; `None` if the disk has room.
    pub fn low(&self) -> Option<LowDisk> {
        self.0.borrow().clone()
    }

    /// Waits until the disk has room.
    pub async fn has_room(&self) {
        // This value owns the sender.
        let _ = self.0.subscribe().wait_for(Option::is_none).await;
    }

    /// Waits until the disk is low.
    pub async fn runs_low(&self) {
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }

    /// Sets the state, for tests.
    #[cfg(feature = "testing")]
    pub fn set(&self, low: Option<LowDisk>) {
        self.0.send_replace(low);
    }
}

struct Watched {
    database_file: PathBuf,
    reserve_bytes: Option<u64>,
    has_failed: bool,
    low: Weak<watch::Sender<Option<LowDisk>>>,
}

impl Watched {
    /// Checks the disk; returns `false` once all clones are dropped.
    fn look(&mut self) -> bool {
        let Some(low) = self.low.upgrade() else {
            return false;
        };
        let folder = self.database_file.parent().unwrap_or(Path::new("."));
        self.show_sizes();
        match room(folder) {
            Ok(room) => {
                self.has_failed = false;
                let reserve_bytes = reserve(self.reserve_bytes, room.total_bytes);
                let before = low.borrow().clone();
                let after = judge(before.as_ref(), folder, room, reserve_bytes);
                show(room, reserve_bytes, after.is_some());
                log(before.as_ref(), after.as_ref(), room);
                low.send_if_modified(|known| {
                    let is_news = known.is_some() != after.is_some();
                    *known = after;
                    is_news
                });
            }
            // The state of a disk that cannot be checked is unknown, so intake stays as it is.
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let folder = folder.display();
                    tracing::warn!(%error, "the room on the disk of {folder} is not known");
                }
            }
        }
        true
    }

    fn show_sizes(&self) {
        let mut wal = self.database_file.as_os_str().to_owned();
        wal.push("-wal");
        let size = |file: &Path| file.metadata().map_or(0, |file| file.len()) as f64;
        STORE_DATABASE_BYTES.set(size(&self.database_file));
        STORE_WAL_BYTES.set(size(Path::new(&wal)));
    }
}

fn room(folder: &Path) -> io::Result<Room> {
    let disk = statvfs(folder)?;
    Ok(Room {
        free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        total_bytes: disk.f_blocks.saturating_mul(disk.f_frsize),
    })
}

fn reserve(configured: Option<u64>, total_bytes: u64) -> u64 {
    configured.unwrap_or_else(|| (total_bytes / DEFAULT_PART).min(MAX_DEFAULT_BYTES))
}

/// The low state of the disk, which lasts from the reserve down until a quarter more than the
/// reserve is free. Intake therefore does not stop and start with every commit.
fn judge(
    before: Option<&LowDisk>,
    folder: &Path,
    room: Room,
    reserve_bytes: u64,
) -> Option<LowDisk> {
    let enough_bytes = match before {
        None => reserve_bytes,
        Some(_) => enough_to_go_on(reserve_bytes),
    };
    (room.free_bytes < enough_bytes).then(|| LowDisk {
        folder: folder.to_owned(),
        free_bytes: room.free_bytes,
        reserve_bytes,
        since_ms: before.map_or_else(now_ms, |before| before.since_ms),
    })
}

const fn enough_to_go_on(reserve_bytes: u64) -> u64 {
    reserve_bytes.saturating_add(reserve_bytes / 4)
}

fn show(room: Room, reserve_bytes: u64, is_low: bool) {
    DISK_FREE.set(room.free_bytes as f64);
    DISK_TOTAL.set(room.total_bytes as f64);
    DISK_RESERVE.set(reserve_bytes as f64);
    INTAKE_PAUSED.set(f64::from(u8::from(is_low)));
}

fn log(before: Option<&LowDisk>, after: Option<&LowDisk>, room: Room) {
    match (before, after) {
        (None, Some(low)) => tracing::warn!("intake pauses: {low}"),
        (Some(low), None) => {
            let paused_ms = now_ms().saturating_sub(low.since_ms);
            let free = ByteSize::b(room.free_bytes);
            let folder = low.folder.display();
            tracing::warn!(
                "intake goes on after {}: {free} are free on the disk of {folder}",
                show_ms(paused_ms)
            );
        }
        _ => {}
    }
}

impl fmt::Display for LowDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let enough_bytes = enough_to_go_on(self.reserve_bytes);
        let [free, reserve, enough] =
            [self.free_bytes, self.reserve_bytes, enough_bytes].map(ByteSize::b);
        write!(
            f,
            "{free} are free on the disk of {}, where a reserve of {reserve} is kept; make room, or lower store.disk_reserve; it goes on with {enough} free",
            self.folder.display()
        )
    }
}

/// In this time fast upstreams and a checkpoint write far less than the reserve.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const DEFAULT_PART: u64 = 20;
const MAX_DEFAULT_BYTES: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVE: u64 = 1_000;

    fn after(before: Option<&LowDisk>, free_bytes: u64) -> Option<LowDisk> {
        let room = Room {
            free_bytes,
            total_bytes: 1 << 30,
        };
        judge(before, Path::new("/data"), room, RESERVE)
    }

    #[test]
    fn intake_goes_on_only_with_a_quarter_more_than_the_reserve() {
        assert_eq!(after(None, RESERVE), None);
        let low = after(None, RESERVE - 1);
        assert!(low.is_some());
        let still = after(low.as_ref(), RESERVE + RESERVE / 4 - 1);
        assert_eq!(still.as_ref().map(|low| low.free_bytes), Some(1_249));
        assert_eq!(
            still.as_ref().map(|low| low.since_ms),
            low.as_ref().map(|low| low.since_ms)
        );
        assert_eq!(after(still.as_ref(), RESERVE + RESERVE / 4), None);
    }

    #[test]
    fn no_reserve_never_pauses_and_the_default_suits_small_disks() {
        let full = Room {
            free_bytes: 0,
            total_bytes: 1 << 40,
        };
        assert_eq!(judge(None, Path::new("/"), full, 0), None);
        assert_eq!(reserve(None, 1 << 40), 256 << 20);
        assert_eq!(reserve(None, 200 << 20), 10 << 20);
        assert_eq!(reserve(Some(7), 1 << 40), 7);
    }

    #[tokio::test]
    async fn the_disk_is_known_before_anything_begins() {
        let folder = std::env::temp_dir();
        let file = folder.join("driftline.db");
        let disk = StoreDisk::watch(&file, Some(u64::MAX));
        let low = disk.low().unwrap();
        assert!(low.free_bytes < u64::MAX);
        assert!(low.to_string().contains("a reserve of"), "{low}");
        disk.runs_low().await;
        assert_eq!(StoreDisk::watch(&file, Some(0)).low(), None);
        StoreDisk::default().has_room().await;
    }
}
