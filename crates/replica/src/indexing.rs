use crate::{
    Replica, ReplicaError, ServerUrl, index_row, replica_row,
    sync::{SyncContext, SyncProgress},
};

impl Replica {
    /// Brings the search index up to date, the newest places first. Counts the places that it reads, and shows the progress. A
    /// call that is dropped, or comes to the largest number of places, leaves the rest to the next one.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub(crate) async fn index_entries(
        &self,
        work: &mut SyncProgress,
        context: &mut SyncContext<'_>,
    ) -> Result<(), ReplicaError> {
        while work.indexed < context.max_indexed {
            let indexed = self
                .write(|tx| {
                    // `init` may have changed the address meanwhile.
                    let url: ServerUrl = replica_row::require(tx)?.url.parse()?;
                    index_row::index_newest(tx, &url.origin(), AT_ONCE)
                })
                .await?;
            if indexed == 0 {
                break;
            }
            work.indexed += indexed;
            if let Some(progress) = &mut context.progress {
                progress(&*work);
            }
        }
        Ok(())
    }
}

/// The number of places that are read in one transaction. Edits of other commands wait for it.
const AT_ONCE: u32 = 300;
