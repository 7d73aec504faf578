//! The clock as an intake holds it: IDs for its entries and for what its posts name.

use std::borrow::Cow;

use driftline_core::{
    post::{Post, Visibility},
    upstream_id::UpstreamId,
};
use driftline_db::{Dialect, Tx};

use super::{
    backdate,
    intake::{IntakeContext, PostObservation},
    machine::LockedSource,
};
use crate::{error::StoreError, local_ids, posts::post, text::without_nul};

/// The posts and the accounts that a post names; none of one that not everyone may see, since nobody
/// is shown it.
pub(crate) fn named_by(post: &Post) -> (&[UpstreamId], &[UpstreamId]) {
    match post.visibility {
        Visibility::Public => (&post.references.posts, &post.references.accounts),
        _ => (&[], &[]),
    }
}

/// What an intake takes from the clock, and what is stored once it holds it.
pub(crate) struct HeldClock {
    /// An ID for each observation without an entry, in their order.
    pub(crate) entry_ids: Vec<i64>,
    /// The first of as many IDs as the observations name posts, below the entries' of now: a post
    /// that is named was there before.
    pub(crate) first_reference_id: i64,
    /// Of the observed posts and of those that they name.
    pub(crate) stored: post::Stored,
}

pub(crate) fn hold_clock(
    tx: &mut Tx<'_>,
    source: &LockedSource,
    observations: &[PostObservation<'_>],
    context: IntakeContext<'_>,
) -> Result<HeldClock, StoreError> {
    let new = || observations.iter().filter(|s| s.entry.is_none());
    let mut named: Vec<Cow<'_, str>> = observations
        .iter()
        .flat_map(|s| named_by(s.post).0)
        .map(|id| without_nul(id.as_str()))
        .collect();
    named.sort_unstable();
    named.dedup();
    let observed = observations.iter().map(|s| &*s.upstream_id);
    let mut upstream_ids: Vec<&str> = observed.chain(named.iter().map(|id| &**id)).collect();
    upstream_ids.sort_unstable();
    upstream_ids.dedup();
    let count = named.len() + new().filter(|s| !s.is_history).count();
    let (first, stored) = match tx.dialect() {
        Dialect::Sqlite => (
            local_ids::take(tx, context.now_ms, count)?,
            post::stored(tx, source.instance_id, &upstream_ids)?,
        ),
        // One round trip instead of two, while other sources wait for the clock.
        Dialect::Postgres => {
            local_ids::take_later(tx, context.now_ms, count)?;
            let (last, stored) = post::stored_by_clock(tx, source.instance_id, &upstream_ids)?;
            (last - count as i64 + 1, stored)
        }
    };
    let mut live = first + named.len() as i64..;
    let times_ms = new().filter(|s| s.is_history).map(|s| {
        let created_at_ms = s.post.created_at_ms.or(s.position_ms);
        created_at_ms.unwrap_or(context.now_ms)
    });
    let ideal = backdate::ideal_ids(times_ms.rev(), context.now_ms);
    let history = backdate::take_below(tx, source.lowest_id, &ideal, &[], context.now_ms)?;
    let mut history = history.into_iter().rev();
    let ids = new().map(|observation| match observation.is_history {
        true => history.next(),
        false => live.next(),
    });
    Ok(HeldClock {
        entry_ids: ids.flatten().collect(),
        first_reference_id: first,
        stored,
    })
}
