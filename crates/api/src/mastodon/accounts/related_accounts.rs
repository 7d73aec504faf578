//! Those who stand in a relation to an account, by pages.

use axum::{extract::FromRequestParts, http::request::Parts, response::Response};
use driftline_core::social::{Direction, Relation};
use driftline_store::{
    AccountId, LocalAccountId, LocalId, StoreError, Tx,
    social::relation::{self, RelationRow},
    timeline::{Range, Viewer},
};

use super::{account_entities::AccountEntities, profiles::Entities};
use crate::{
    App,
    mastodon::{
        answer,
        page_query::{Limits, PageQuery},
    },
    transport::{Address, ApiError},
};

/// A page of those who stand so to an account, as entities.
pub(crate) async fn relation_page(
    app: &App,
    viewer: Viewer,
    account: LocalAccountId,
    (direction, relation): (Direction, Relation),
    address: Address,
    (path, query): (&str, RelatedQuery),
) -> Result<Response, ApiError> {
    let (range, of) = (query.page.range, address.clone());
    let read = answer::read(app, move |tx| {
        known_page(tx, viewer, (account, direction, relation), range, &of)
    });
    let (found, ends) = read.await?;
    Ok(query.page.answer(&address, path, &found, ends))
}

/// A page of those who stand so to an account and of whom the viewer knows, the latest change first, with the IDs of its
/// ends. Others are neither shown nor do they bound a page.
fn known_page(
    tx: &mut Tx<'_>,
    viewer: Viewer,
    (account, direction, relation): (LocalAccountId, Direction, Relation),
    range: Range,
    address: &Address,
) -> Result<(Entities, Option<(LocalId, LocalId)>), StoreError> {
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
        let of_row = |row: &RelationRow| Some((id_of(row), entities.of(row.other)?.to_owned()));
        let found = rows.iter().filter_map(of_row);
        match is_upward {
            true => known.splice(0..0, found).for_each(drop),
            false => known.extend(found),
        }
        let ends = rows.first().zip(rows.last());
        let ends = ends.filter(|_| rows.len() >= usize::from(next.limit) && known.len() < limit);
        let Some((newest, oldest)) = ends else { break };
        match is_upward {
            true => next.min = Some(id_of(newest)),
            false => next.max = Some(id_of(oldest)),
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
    let ends = known.first().zip(known.last());
    let ends = ends.map(|((newest, _), (oldest, _))| (*newest, *oldest));
    Ok((known.into_iter().map(|(_, entity)| entity).collect(), ends))
}

/// The query of a request for a page of accounts.
pub(crate) struct RelatedQuery {
    pub(crate) page: PageQuery,
}

impl<S: Send + Sync> FromRequestParts<S> for RelatedQuery {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let page = PageQuery::parse(query, Limits::ACCOUNTS)?;
        Ok(Self { page })
    }
}

/// As many rows are read at once where many are not shown.
const STRETCH: u16 = 400;
