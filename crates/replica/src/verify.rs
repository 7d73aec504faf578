use driftline_core::sync::LibraryProgress;
use serde::Serialize;

use crate::{Replica, ReplicaError, client::Client, object_row, replica_row, sync::SyncContext};

/// The outcome of a comparison of a replica with its server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// True if the server's versions of all objects are here.
    pub is_equal: bool,
    /// The number of objects here. Changes that were not sent do not count.
    pub here: u64,
    /// The number of objects on the server.
    pub there: u64,
}

impl Replica {
    /// Fetches the changes of the server's library and compares it with the replica by a digest.
    ///
    /// # Errors
    /// The same as those of [`Replica::pull`]; [`ReplicaError::Moving`] if the library changed at each try.
    pub async fn verify(
        &self,
        client: &Client,
        context: &mut SyncContext<'_>,
    ) -> Result<Verified, ReplicaError> {
        for _ in 0..MAX_TRIES {
            self.pull(client, context).await?;
            let there = client.digest(context.random).await?;
            let (progress, here) = self
                .read(|tx| {
                    let progress = replica_row::require(tx)?.progress;
                    Ok((progress, object_row::digest(tx)?))
                })
                .await?;
            // Another process may be in a full sync.
            if progress.is_complete() && progress.cursor.as_ref() == Some(&there.cursor) {
                return Ok(Verified {
                    is_equal: here.count() == there.count && here.text() == there.digest,
                    here: here.count(),
                    there: there.count,
                });
            }
        }
        Err(ReplicaError::Moving {
            server: client.server().to_string(),
        })
    }

    /// Makes the next synchronization a full one. Changes of this device stay.
    ///
    /// # Errors
    /// [`ReplicaError::Locked`] if another process syncs the replica for more than 5 s; [`ReplicaError::Db`] if the database
    /// fails.
    pub async fn begin_again(&self) -> Result<(), ReplicaError> {
        let _lock = self.lock().await?;
        self.write(|tx| {
            let old = replica_row::require(tx)?.progress;
            let progress = LibraryProgress {
                cursor: None,
                paging: None,
                // Of a synchronization of another process, which was interrupted.
                sweep: old.paging.or(old.sweep),
                ..old
            };
            replica_row::set_progress(tx, &progress)
        })
        .await
    }
}

/// The number of tries while others change the library.
const MAX_TRIES: u32 = 5;
