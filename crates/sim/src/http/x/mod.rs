//! X's API, version 2.

mod entity;
mod fields;
mod look_ups;
mod pages;

use std::sync::Arc;

use axum::{Router, extract::Path, response::Response, routing::get};
use serde_json::json;

use self::fields::Fields;
use super::{
    answers::ok,
    refusal::Refusal,
    request::{ApiRequest, READER_ID, reader},
    sim::Sim,
    timeline::Timeline,
};
use crate::quota::Endpoint;

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/2/users/me", get(me))
        .route("/2/users/{id}/timelines/reverse_chronological", get(home))
        .route("/2/users/{id}/tweets", get(user))
        .route("/2/users/{id}/mentions", get(mentions))
        .route("/2/lists/{id}/tweets", get(list))
        .route("/2/tweets", get(look_ups::several))
}

async fn me(request: ApiRequest) -> Response {
    let params = &request.params;
    let right = || {
        params.only(&["user.fields", "tweet.fields", "expansions"])?;
        let user = entity::user(&reader(), &Fields::of(params)?);
        Ok(ok(&json!({ "data": user })))
    };
    request.answer_plain(Endpoint::Credentials, right).await
}

async fn home(Path(id): Path<String>, request: ApiRequest) -> Response {
    pages::page(&request, of_reader(&id, Timeline::Home), &pages::HOME).await
}

async fn user(Path(id): Path<String>, request: ApiRequest) -> Response {
    let timeline = id.parse().map(Timeline::Account);
    let timeline = timeline.map_err(|_| Refusal::bad("id", &id, NOT_AN_ID));
    pages::page(&request, timeline, &pages::USER).await
}

async fn mentions(Path(id): Path<String>, request: ApiRequest) -> Response {
    let timeline = of_reader(&id, Timeline::Mentions);
    pages::page(&request, timeline, &pages::MENTIONS).await
}

async fn list(Path(id): Path<String>, request: ApiRequest) -> Response {
    let timeline = id.parse().map(Timeline::List);
    let timeline = timeline.map_err(|_| Refusal::bad("id", &id, NOT_AN_ID));
    pages::page(&request, timeline, &pages::LIST).await
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
