//! X's API, version 2.

mod entity;
mod fields;
mod look_ups;
mod pages;
mod query;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::StatusCode,
    response::Response,
    routing::get,
};
use driftline_core::api::Api;
use serde_json::json;

use self::{fields::Fields, query::Params};
use super::{
    answers::{answer, json as json_answer},
    authorization::{Caller, READER_ID, reader},
    refusal::{Refusal, refuse},
    sim::Sim,
    timeline::Timeline,
};
use crate::quota::{Asked, Endpoint};

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/2/users/me", get(me))
        .route("/2/users/{id}/timelines/reverse_chronological", get(home))
        .route("/2/users/{id}/tweets", get(user))
        .route("/2/users/{id}/mentions", get(mentions))
        .route("/2/lists/{id}/tweets", get(list))
        .route("/2/tweets", get(look_ups::several))
        .route("/2/tweets/{id}", get(look_ups::one))
}

async fn me(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::Credentials));
    answer(&sim, verdict, || {
        let fields = params
            .only(&["user.fields", "tweet.fields", "expansions"])
            .and_then(|()| Fields::of(&params));
        match fields {
            Ok(fields) => {
                let body = json!({ "data": entity::user(&reader(), &fields) });
                json_answer(StatusCode::OK, body.to_string())
            }
            Err(refusal) => refuse(Api::X, &refusal),
        }
    })
    .await
}

async fn home(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Response {
    let timeline = of_reader(&id, Timeline::Home);
    pages::page(&sim, &caller, timeline, &pages::HOME, &params).await
}

async fn user(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Response {
    let timeline = id.parse().map(Timeline::Account);
    let timeline = timeline.map_err(|_| Refusal::bad("id", &id, NOT_AN_ID));
    pages::page(&sim, &caller, timeline, &pages::USER, &params).await
}

async fn mentions(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Response {
    let timeline = of_reader(&id, Timeline::Mentions);
    pages::page(&sim, &caller, timeline, &pages::MENTIONS, &params).await
}

async fn list(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Response {
    let timeline = id.parse().map(Timeline::List);
    let timeline = timeline.map_err(|_| Refusal::bad("id", &id, NOT_AN_ID));
    pages::page(&sim, &caller, timeline, &pages::LIST, &params).await
}

/// The reader's own timelines are not for others.
fn of_reader(id: &str, timeline: Timeline) -> Result<Timeline, Refusal> {
    match id.parse::<u64>() {
        Ok(READER_ID) => Ok(timeline),
        Ok(_) => Err(Refusal::Forbidden),
        Err(_) => Err(Refusal::bad("id", id, NOT_AN_ID)),
    }
}

const NOT_AN_ID: &str = "The `id` query parameter value is not valid";
