use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use driftline_store::LocalAccountId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::transport::{ApiError, ApiResult};

/// The streams by which devices of accounts wait for changes in this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenStreams(Arc<Mutex<HashMap<LocalAccountId, VecDeque<oneshot::Sender<()>>>>>);

impl OpenStreams {
    /// Counts a stream of an account until the receiver is dropped. The receiver returns once the stream has to end: the
    /// oldest ones of an account make room, since a device that has lost its network leaves its stream behind. If all accounts
    /// together have too many, the one with the most makes room, so that no few accounts keep others out.
    ///
    /// # Errors
    /// [`ApiError::Refused`] if all accounts together have too many streams, and none has at least two more than this one: with
    /// one more, the two would only change places.
    pub(super) fn open(&self, account: LocalAccountId) -> ApiResult<oneshot::Receiver<()>> {
        let mut streams = self.0.lock();
        streams.retain(|_, own| {
            own.retain(|stream| !stream.is_closed());
            !own.is_empty()
        });
        let own = streams.entry(account).or_default();
        while own.len() >= MAX_OF_ACCOUNT {
            own.pop_front();
        }
        let own_count = own.len();
        if streams.values().map(VecDeque::len).sum::<usize>() >= MAX_STREAMS {
            let most = streams.values_mut().max_by_key(|of| of.len());
            let Some(most) = most.filter(|most| most.len() > own_count + 1) else {
                return Err(ApiError::Refused(
                    "too many devices wait for changes; try again later".to_owned(),
                ));
            };
            most.pop_front();
        }
        let (end, ended) = oneshot::channel();
        streams.entry(account).or_default().push_back(end);
        Ok(ended)
    }
}

const MAX_OF_ACCOUNT: usize = 200;
/// As many as may follow the feed.
const MAX_STREAMS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ended(stream: &mut oneshot::Receiver<()>) -> bool {
        stream.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    #[test]
    fn the_oldest_stream_of_an_account_makes_room() {
        let streams = OpenStreams::default();
        let open = |account| streams.open(LocalAccountId::new(account)).expect("room");
        let mut other = open(2);
        let mut own: Vec<_> = (0..=MAX_OF_ACCOUNT).map(|_| open(1)).collect();
        let ended: Vec<bool> = own.iter_mut().map(is_ended).collect();
        assert!(ended[0] && !ended[1..].contains(&true));
        assert!(!is_ended(&mut other));
        // A stream that is closed takes no place.
        own.pop();
        own.push(open(1));
        assert!(!is_ended(&mut own[1]));
    }

    #[test]
    fn all_accounts_together_have_a_limit() {
        let streams = OpenStreams::default();
        let account = |n: usize| LocalAccountId::new(n as u64);
        let mut all: Vec<_> = (0..MAX_STREAMS)
            .map(|n| streams.open(account(n)).expect("room"))
            .collect();
        assert!(streams.open(account(0)).is_err());
        all.pop();
        assert!(streams.open(account(0)).is_ok());
    }

    #[test]
    fn an_account_with_many_streams_makes_room_for_others() {
        let streams = OpenStreams::default();
        let open = |n: usize| streams.open(LocalAccountId::new(n as u64)).expect("room");
        let mut many: Vec<_> = (0..MAX_OF_ACCOUNT).map(|_| open(0)).collect();
        let mut others: Vec<_> = (MAX_OF_ACCOUNT..MAX_STREAMS).map(open).collect();
        let mut new = open(1);
        assert!(is_ended(&mut many[0]) && !is_ended(&mut many[1]));
        assert!(!is_ended(&mut others[0]) && !is_ended(&mut new));
    }
}
