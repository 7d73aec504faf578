//! What a data folder remembers of the last backup of its store.

use std::{fs, io, path::Path, time::Duration};

use driftline_runtime::metrics::BACKUP_LAST_SUCCESS;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::durable;

/// The last backup that was verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRecord {
    /// When what it holds was stored, Unix ms.
    pub taken_at_ms: i64,
    /// Where it was put.
    pub folder: String,
}

impl BackupRecord {
    /// Keeps it in a data folder, in place of the last one.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn keep(&self, data: &Path) -> io::Result<()> {
        durable::replace_json(&data.join(NAME), self)
    }

    /// That of a data folder; `None` without any.
    fn read(data: &Path) -> Option<Self> {
        let text = fs::read(data.join(NAME)).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Shows the time of the last backup as a metric, for as long as the process runs.
pub async fn show_as_metric(data: &Path) {
    loop {
        let taken = BackupRecord::read(data).map(|record| record.taken_at_ms);
        // Seconds with a fraction.
        BACKUP_LAST_SUCCESS.set(taken.map_or(f64::NAN, |at_ms| at_ms as f64 / 1000.0));
        sleep(READ_EVERY).await;
    }
}

const NAME: &str = "last-backup.json";
const READ_EVERY: Duration = Duration::from_secs(5);
