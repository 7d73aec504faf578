//! Look-ups of posts.

use std::sync::Arc;

use axum::{
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode},
    response::Response,
};
use driftline_core::{api::Api, upstream_id::UpstreamId};

use crate::{
    config::BatchAbility,
    http::{
        answers::{answer, json},
        authorization::bearer,
        refusal::{Refusal, refuse},
        sim::Sim,
    },
    quota::{Asked, Endpoint},
    upstream::MASTODON_BATCH,
    wire,
    world::{Found, answer_order},
};

pub(super) async fn one(
    State(sim): State<Arc<Sim>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    sim.count(|traffic| traffic.look_ups += 1);
    let token = bearer(&headers);
    let verdict = sim.verdict(token, Asked::plain(Endpoint::LookUp));
    answer(&sim, verdict, || {
        let id = UpstreamId::new(id);
        if let Some(poison) = sim.poisoned(std::slice::from_ref(&id)) {
            return refuse(Api::Mastodon, &poison);
        }
        match sim.find(token, &id) {
            Found::Shown(status) => json(StatusCode::OK, status.to_json()),
            Found::Hidden | Found::Absent => refuse(Api::Mastodon, &Refusal::NotFound),
        }
    })
    .await
}

/// `?id[]=1&id[]=2`, in whatever way the brackets are written.
pub(super) async fn several(
    State(sim): State<Arc<Sim>>,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Response {
    sim.count(|traffic| traffic.batches += 1);
    let token = bearer(&headers);
    let verdict = sim.verdict(token, Asked::plain(Endpoint::LookUps));
    answer(&sim, verdict, || {
        let ids: Vec<UpstreamId> = query
            .into_iter()
            .filter(|(name, _)| name == "id[]" || name == "id")
            .map(|(_, id)| UpstreamId::new(id))
            .collect();
        right(&sim, token, &ids)
    })
    .await
}

fn right(sim: &Sim, token: &str, ids: &[UpstreamId]) -> Response {
    let batches = sim.world_config().batches;
    let refusal = match batches.ability {
        BatchAbility::Served => None,
        BatchAbility::NotFound => Some(Refusal::NotFound),
        BatchAbility::MethodNotAllowed => Some(Refusal::MethodNotAllowed),
    };
    let ids = answer_order(ids, batches.shuffled);
    let refusal = refusal
        .or_else(|| {
            let most = usize::from(batches.most.unwrap_or(MASTODON_BATCH));
            let message = "Validation failed: too many statuses were asked for";
            (ids.len() > most).then(|| Refusal::Unprocessable(message.to_owned()))
        })
        .or_else(|| sim.poisoned(&ids));
    if let Some(refusal) = refusal {
        return refuse(Api::Mastodon, &refusal);
    }
    let statuses: Vec<_> = ids
        .iter()
        .filter_map(|id| match sim.find(token, id) {
            Found::Shown(status) => Some(*status),
            Found::Hidden | Found::Absent => None,
        })
        .collect();
    sim.count(|traffic| traffic.posts_refreshed += statuses.len() as u64);
    json(StatusCode::OK, wire::page_json(&statuses))
}
