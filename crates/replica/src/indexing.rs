use crate::{Replica, ReplicaError, index_row};

impl Replica {
    /// Brings the search index up to date, the newest places first. A call that is dropped leaves the rest to the next one.
    /// Returns the number of places that were read.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub(crate) async fn index_entries(&self) -> Result<usize, ReplicaError> {
        let mut all = 0;
        loop {
            let origin = self.url().origin();
            let indexed = self
                .write(move |tx| index_row::index_newest(tx, &origin, AT_ONCE))
                .await?;
            if indexed == 0 {
                return Ok(all);
            }
            all += indexed;
        }
    }
}

/// The number of places that are read in one transaction. Edits of other commands wait for it.
const AT_ONCE: u32 = 300;
