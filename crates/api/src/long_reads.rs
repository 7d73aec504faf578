//! Turns for long readings, so that one viewer does not occupy all readers of the store.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use driftline_store::Viewer;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::transport::ApiError;

/// The turns of all viewers of this process. Each viewer has one long reading at a time, and so have all callers without a
/// token together. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct LongReads(Arc<Mutex<HashMap<Viewer, Weak<Semaphore>>>>);

impl LongReads {
    /// Waits for the viewer's turn, which lasts until the result is dropped. Turns come in the order of the calls. Nothing is
    /// read meanwhile.
    ///
    /// # Errors
    /// [`ApiError::NotReady`] if the turn does not come within 10 s.
    pub async fn turn(&self, viewer: Viewer) -> Result<OwnedSemaphorePermit, ApiError> {
        let turn = timeout(MAX_WAIT, self.line(viewer).acquire_owned()).await;
        // A line is never closed.
        let turn = turn.ok().and_then(Result::ok);
        turn.ok_or(ApiError::NotReady(
            "Too many requests that read much wait already; try again in a while",
        ))
    }

    /// The line of a viewer. It ends with the last one that reads or waits.
    fn line(&self, viewer: Viewer) -> Arc<Semaphore> {
        let mut lines = self.0.lock();
        lines.retain(|_, line| line.strong_count() > 0);
        if let Some(line) = lines.get(&viewer).and_then(Weak::upgrade) {
            return line;
        }
        let line = Arc::new(Semaphore::new(AT_ONCE));
        lines.insert(viewer, Arc::downgrade(&line));
        line
    }
}

/// A store may have two readers, and the second one serves everybody else.
const AT_ONCE: usize = 1;
/// Clients wait longer than this for an answer.
const MAX_WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use axum::{
        http::{StatusCode, header::RETRY_AFTER},
        response::IntoResponse as _,
    };
    use driftline_store::LocalAccountId;
    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

    fn account(id: u64) -> Viewer {
        Viewer::Account(LocalAccountId::new(id))
    }

    /// The turn, if it comes at once.
    fn turn_at_once(reads: &LongReads, viewer: Viewer) -> Option<OwnedSemaphorePermit> {
        reads.turn(viewer).now_or_never()?.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_reading_holds_up_its_own_viewer_alone() {
        let reads = LongReads::default();
        let first = turn_at_once(&reads, account(1));
        assert!(first.is_some());
        let waiting = (0..20).map(|_| async { reads.turn(account(1)).await.is_ok() });
        let ending = async {
            for other in [account(2), Viewer::Anonymous, Viewer::Operator] {
                assert!(turn_at_once(&reads, other).is_some());
            }
            // A caller who leaves the line takes no turn.
            assert!(turn_at_once(&reads, account(1)).is_none());
            drop(first);
        };
        let (came, ()) = tokio::join!(join_all(waiting), ending);
        assert_eq!(came, [true; 20]);
        assert!(turn_at_once(&reads, account(1)).is_some());
        assert_eq!(reads.0.lock().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_told_when_to_try_again() {
        let reads = LongReads::default();
        let first = turn_at_once(&reads, account(1));
        let refused = reads.turn(account(1)).await.expect_err("the turn is taken");
        let answer = refused.into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(answer.headers().contains_key(RETRY_AFTER));
        drop(first);
        assert!(turn_at_once(&reads, account(1)).is_some());
    }
}
