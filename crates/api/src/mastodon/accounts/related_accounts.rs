//! Those who stand in a relation to an account, by pages.

use axum::response::Response;
use driftline_core::social::{Direction, Relation};
use driftline_store::{
    AccountId, LocalAccountId, LocalId, StoreError, Tx,
    social::relation::{self, RelationRow},
    timeline::{Range, Viewer},
};
use serde_json::value::RawValue;

use super::account_entities::AccountEntities;
use crate::{
    auth::RequestContext,
    mastodon::page_query::{AccountPageQuery, ends},
    transport::{Address, ApiResult},
};

/// A page of those who stand so to an account, as entities.
pub(crate) async fn relation_page(
    context: &RequestContext,
    account: LocalAccountId,
    direction: Direction,
    relation: Relation,
    AccountPageQuery(query): AccountPageQuery,
) -> ApiResult<Response> {
    let (viewer, address, range) = (context.viewer, context.address.clone(), query.range);
    let read = context.read(move |tx| {
        let of = (account, direction, relation);
        known_page(tx, viewer, of, range, &address)
    });
    let known = read.await?;
    let entities: Vec<&RawValue> = known.iter().map(|(_, entity)| &**entity).collect();
    Ok(query.answer(&entities, ends(&known, |(id, _)| *id)))
}

/// A page of those who stand so to an account and that the viewer may know of, the latest change first, with the IDs of
/// the relations. Others are neither shown nor do they bound a page.
fn known_page(
    tx: &mut Tx<'_>,
    viewer: Viewer,
    (account, direction, relation): (LocalAccountId, Direction, Relation),
    range: Range,
    address: &Address,
) -> Result<Vec<(LocalId, Box<RawValue>)>, StoreError> {
    let id_of = |row: &RelationRow| match direction {
        Direction::Outgoing => row.outgoing_id,
        Direction::Incoming => row.incoming_id,
    };
    let (limit, is_upward) = (usize::from(range.limit), range.min.is_some());
    let mut known = Vec::new();
    let mut next = range;
    loop {
        let rows = relation::page(tx, account, direction, relation, &next)?;
        let ids: Vec<AccountId> = rows.iter().map(|row| row.other).collect();
        let entities = AccountEntities::load(tx, &ids, viewer, address)?;
        let of_row = |row: &RelationRow| Some((id_of(row), entities.get(row.other)?.to_owned()));
        let found = rows.iter().filter_map(of_row);
        match is_upward {
            true => known.splice(0..0, found).for_each(drop),
            false => known.extend(found),
        }
        let ends = ends(&rows, id_of);
        let ends = ends.filter(|_| rows.len() >= usize::from(next.limit) && known.len() < limit);
        let Some((newest, oldest)) = ends else { break };
        match is_upward {
            true => next.min = Some(newest),
            false => next.max = Some(oldest),
        }
        next.limit = STRETCH;
    }
    // Upward, the page has those just above its bound.
    let above = match is_upward {
        true => known.len().saturating_sub(limit),
        false => 0,
    };
    known.drain(..above);
    known.truncate(limit);
    Ok(known)
}

/// As many rows are read at once where many are not shown.
const STRETCH: u16 = 400;
