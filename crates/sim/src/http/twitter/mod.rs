//! Twitter's API, version 1.1.

mod entity;

use std::sync::Arc;

use axum::{Router, response::Response, routing::get};
use driftline_core::{answer::PageRequest, upstream_id::UpstreamId};
use serde_json::{Map, Value, json};

use super::{
    answers::ok,
    refusal::Refusal,
    request::{ApiRequest, Params, READER_ID, reader},
    sim::Sim,
    timeline::Timeline,
    tweet::Tweet,
};
use crate::{
    quota::{Endpoint, RequestKind},
    status::Status,
    world::answer_order,
};

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/1.1/statuses/home_timeline.json", get(home))
        .route("/1.1/statuses/user_timeline.json", get(user))
        .route("/1.1/statuses/mentions_timeline.json", get(mentions))
        .route("/1.1/lists/statuses.json", get(list))
        .route("/1.1/statuses/lookup.json", get(several))
        .route("/1.1/account/verify_credentials.json", get(credentials))
}

async fn home(request: ApiRequest) -> Response {
    page(&request, Endpoint::Home, Some(Timeline::Home)).await
}

async fn mentions(request: ApiRequest) -> Response {
    page(&request, Endpoint::Mentions, Some(Timeline::Mentions)).await
}

/// `user_id`; the reader's if it is not given.
async fn user(request: ApiRequest) -> Response {
    let number = match request.params.text("user_id") {
        Some(id) => id.parse().ok(),
        None => Some(READER_ID),
    };
    page(&request, Endpoint::User, number.map(Timeline::Account)).await
}

async fn list(request: ApiRequest) -> Response {
    let number = request
        .params
        .text("list_id")
        .and_then(|id| id.parse().ok());
    page(&request, Endpoint::List, number.map(Timeline::List)).await
}

async fn page(request: &ApiRequest, endpoint: Endpoint, timeline: Option<Timeline>) -> Response {
    let paged = request.params.has_any(&["since_id", "max_id"]);
    let right = || {
        let timeline = timeline.ok_or(Refusal::NoSuchPath)?;
        let bounds = bounds(&request.params)?;
        let cut = request.sim.cut(&timeline, &request.token, &bounds);
        let statuses = cut.ok_or(Refusal::NoSuchPath)?.statuses;
        let tweets = statuses.iter().map(|status| shown(request, status));
        Ok(ok(&tweets.collect::<Value>()))
    };
    request.answer(RequestKind { endpoint, paged }, right).await
}

/// `max_id` is included.
fn bounds(params: &Params) -> Result<PageRequest, Refusal> {
    let number = |name: &str| {
        let text = params.text(name);
        text.map(|text| text.parse::<u64>())
            .transpose()
            .map_err(|_| Refusal::bad(name, "", format!("{name} parameter is invalid.")))
    };
    let id = |number: u64| UpstreamId::new(number.to_string());
    Ok(PageRequest {
        since_id: number("since_id")?.map(id),
        max_id: number("max_id")?.map(|number| id(number.saturating_add(1))),
        min_id: None,
        limit: number("count")?.map_or(DEFAULT_COUNT, |count| {
            u16::try_from(count).unwrap_or(u16::MAX)
        }),
    })
}

/// Up to 100 IDs; with `map=true` those that are not shown are `null`.
async fn several(request: ApiRequest) -> Response {
    let right = || look_ups(&request).map(|body| ok(&body));
    request.answer_plain(Endpoint::LookUps, right).await
}

fn look_ups(request: &ApiRequest) -> Result<Value, Refusal> {
    let (sim, params) = (&request.sim, &request.params);
    sim.check_batches()?;
    let ids = params.list("id").into_iter();
    let ids: Vec<_> = ids.map(|id| UpstreamId::from(id.trim())).collect();
    let ids = answer_order(&ids, false);
    if ids.is_empty() {
        return Err(Refusal::bad("id", "", "id parameter is missing."));
    }
    if ids.len() > usize::from(sim.config.world.batches.most.unwrap_or(MOST)) {
        return Err(Refusal::TooMany);
    }
    let found = sim.find_several(&request.token, &ids)?.into_iter();
    let found = found.map(|(id, found)| {
        let tweet = found.shown().map(|status| shown(request, &status));
        (id.to_string(), tweet)
    });
    if params.text("map").is_some_and(is_true) {
        let map: Map<_, _> = found.map(|(id, it)| (id, it.unwrap_or_default())).collect();
        Ok(json!({ "id": map }))
    } else {
        Ok(found.filter_map(|(_, tweet)| tweet).collect())
    }
}

async fn credentials(request: ApiRequest) -> Response {
    let right = || Ok(ok(&entity::user(&reader())));
    request.answer_plain(Endpoint::Credentials, right).await
}

fn shown(request: &ApiRequest, status: &Status) -> Value {
    let now_ms = request.sim.clock.now_ms();
    entity::tweet(&Tweet::of(&request.sim, now_ms, status))
}

fn is_true(text: &str) -> bool {
    ["true", "True", "t", "1"].contains(&text)
}

const DEFAULT_COUNT: u16 = 20;
const MOST: u16 = 100;
