use serde::{Deserialize, Serialize};

use super::SweepMode;

/// The progress of a replica of a library. It is stored in one transaction with the objects that came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LibraryProgress {
    /// The server's cursor. `None` begins a full sync.
    pub cursor: Option<String>,
    /// The number of the last full sync, from 1; 0 before the first.
    pub full_sync: u64,
    /// While a full sync is under way, its sweep.
    pub paging: Option<SweepMode>,
    /// The sweep of a full sync whose last chunk came, until the replica has the changes since its start.
    pub sweep: Option<SweepMode>,
    /// The cursor after a push whose results the replica has, while `cursor` has not reached them.
    pub ahead: Option<String>,
    /// While a full sync is under way, the number of objects that have not come yet, if the server has said how many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_left: Option<u64>,
}

impl LibraryProgress {
    /// True if the replica has had the whole library, and no full sync is under way.
    pub fn is_complete(&self) -> bool {
        self.cursor.is_some() && self.paging.is_none() && self.sweep.is_none()
    }
}

/// The server and account to which a replica belongs. The first answer sets it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binding {
    /// The identity of the server's store.
    pub server: String,
    /// The ID of the account.
    pub account: String,
}

/// The number of objects that a full sync still brings after a chunk. `None` if it is not known, the full sync is complete, or
/// no library has so many.
/// `before` is the number before the chunk.
pub(super) fn objects_left(before: Option<u64>, chunk_len: usize, more: bool) -> Option<u64> {
    let came = u64::try_from(chunk_len).unwrap_or(u64::MAX);
    let left = before.map(|left| left.saturating_sub(came));
    left.filter(|left| more && i64::try_from(*left).is_ok())
}
