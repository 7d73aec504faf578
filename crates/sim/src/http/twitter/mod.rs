//! Twitter's API, version 1.1.

mod entity;

use std::{collections::HashMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, Query, State},
    http::StatusCode,
    response::Response,
    routing::get,
};
use driftline_core::{answer::PageRequest, api::Api, upstream_id::UpstreamId};
use serde_json::{Map, Value};

use super::{
    answers::{answer, json as json_answer},
    authorization::{Caller, READER_ID, reader},
    refusal::{Refusal, refuse},
    sim::Sim,
    timeline::Timeline,
    tweet::Tweet,
};
use crate::{
    config::BatchAbility,
    quota::{Asked, Endpoint},
    world::{Found, answer_order},
};

pub(crate) fn routes() -> Router<Arc<Sim>> {
    Router::new()
        .route("/1.1/statuses/home_timeline.json", get(home))
        .route("/1.1/statuses/user_timeline.json", get(user))
        .route("/1.1/statuses/mentions_timeline.json", get(mentions))
        .route("/1.1/lists/statuses.json", get(list))
        .route("/1.1/statuses/lookup.json", get(several))
        .route("/1.1/statuses/show/{id}", get(show))
        .route("/1.1/statuses/show.json", get(show_named))
        .route("/1.1/account/verify_credentials.json", get(credentials))
}

/// A request's parameters; of a name given twice, the last counts.
type Params = Query<HashMap<String, String>>;

async fn home(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    page(&sim, &caller, Endpoint::Home, Ok(Timeline::Home), &params).await
}

async fn mentions(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    let timeline = Ok(Timeline::Mentions);
    page(&sim, &caller, Endpoint::Mentions, timeline, &params).await
}

/// `user_id`, or `screen_name` of the world's own accounts; the reader's if
/// neither is given.
async fn user(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    let number = match (params.get("user_id"), params.get("screen_name")) {
        (Some(id), _) => id.parse().ok(),
        (None, Some(name)) => name
            .strip_prefix("drifter")
            .and_then(|number| number.parse().ok()),
        (None, None) => Some(READER_ID),
    };
    let timeline = number.map(Timeline::Account).ok_or(Refusal::NoSuchPath);
    page(&sim, &caller, Endpoint::User, timeline, &params).await
}

async fn list(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    let number = params.get("list_id").and_then(|id| id.parse().ok());
    let timeline = number.map(Timeline::List).ok_or(Refusal::NoSuchPath);
    page(&sim, &caller, Endpoint::List, timeline, &params).await
}

async fn page(
    sim: &Arc<Sim>,
    caller: &Caller,
    endpoint: Endpoint,
    timeline: Result<Timeline, Refusal>,
    params: &Params,
) -> Response {
    sim.count(|traffic| traffic.page_requests += 1);
    let paged = params.contains_key("since_id") || params.contains_key("max_id");
    let verdict = sim.verdict(&caller.token, Asked { endpoint, paged });
    answer(sim, verdict, || {
        let cut = timeline.and_then(|timeline| {
            let cut = sim.cut(&timeline, &caller.token, &request(params)?);
            cut.ok_or(Refusal::NoSuchPath)
        });
        match cut {
            Err(refusal) => refuse(Api::Twitter, &refusal),
            Ok(cut) => {
                let tweets = cut.statuses.iter();
                let tweets: Vec<Value> = tweets.map(|status| shown(sim, status, params)).collect();
                json_answer(StatusCode::OK, Value::from(tweets).to_string())
            }
        }
    })
    .await
}

/// `max_id` is included.
fn request(params: &Params) -> Result<PageRequest, Refusal> {
    let number = |name: &str| {
        let text = params.get(name);
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
async fn several(State(sim): State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    sim.count(|traffic| traffic.batches += 1);
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::LookUps));
    answer(&sim, verdict, || match look_ups(&sim, &caller, &params) {
        Ok(body) => json_answer(StatusCode::OK, body.to_string()),
        Err(refusal) => refuse(Api::Twitter, &refusal),
    })
    .await
}

fn look_ups(sim: &Sim, caller: &Caller, params: &Params) -> Result<Value, Refusal> {
    let batches = sim.world_config().batches;
    match batches.ability {
        BatchAbility::Served => {}
        BatchAbility::NotFound => return Err(Refusal::NoSuchPath),
        BatchAbility::MethodNotAllowed => return Err(Refusal::MethodNotAllowed),
    }
    let ids: Vec<UpstreamId> = params
        .get("id")
        .into_iter()
        .flat_map(|ids| ids.split(','))
        .map(|id| UpstreamId::from(id.trim()))
        .collect();
    let ids = answer_order(&ids, batches.shuffled);
    if ids.is_empty() {
        return Err(Refusal::bad("id", "", "id parameter is missing."));
    }
    if ids.len() > usize::from(batches.most.unwrap_or(MOST)) {
        return Err(Refusal::TooMany);
    }
    sim.poisoned(&ids).map_or(Ok(()), Err)?;
    let mut found = Vec::new();
    for id in ids {
        let tweet = match sim.find(&caller.token, &id) {
            Found::Shown(status) => Some(shown(sim, &status, params)),
            Found::Hidden | Found::Absent => None,
        };
        found.push((id, tweet));
    }
    let shown = found.iter().filter(|(_, tweet)| tweet.is_some()).count();
    sim.count(|traffic| traffic.posts_refreshed += shown as u64);
    if params.get("map").is_some_and(|map| is_true(map)) {
        let map: Map<String, Value> = found
            .into_iter()
            .map(|(id, tweet)| (id.to_string(), tweet.unwrap_or_default()))
            .collect();
        Ok(serde_json::json!({ "id": map }))
    } else {
        Ok(found.into_iter().filter_map(|(_, tweet)| tweet).collect())
    }
}

async fn show(
    state: State<Arc<Sim>>,
    caller: Caller,
    Path(name): Path<String>,
    params: Params,
) -> Response {
    let id = name.strip_suffix(".json").unwrap_or(&name);
    one(&state, &caller, id, &params).await
}

async fn show_named(state: State<Arc<Sim>>, caller: Caller, params: Params) -> Response {
    let id = params.get("id").cloned().unwrap_or_default();
    one(&state, &caller, &id, &params).await
}

async fn one(sim: &Arc<Sim>, caller: &Caller, id: &str, params: &Params) -> Response {
    sim.count(|traffic| traffic.look_ups += 1);
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::LookUp));
    answer(sim, verdict, || {
        let id = UpstreamId::from(id);
        if let Some(poison) = sim.poisoned(std::slice::from_ref(&id)) {
            return refuse(Api::Twitter, &poison);
        }
        match sim.find(&caller.token, &id) {
            Found::Shown(status) => {
                json_answer(StatusCode::OK, shown(sim, &status, params).to_string())
            }
            Found::Hidden => refuse(Api::Twitter, &Refusal::Forbidden),
            Found::Absent => refuse(Api::Twitter, &Refusal::NotFound),
        }
    })
    .await
}

async fn credentials(State(sim): State<Arc<Sim>>, caller: Caller) -> Response {
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::Credentials));
    answer(&sim, verdict, || {
        json_answer(StatusCode::OK, entity::user(&reader()).to_string())
    })
    .await
}

fn shown(sim: &Sim, status: &crate::status::Status, params: &Params) -> Value {
    let extended = params
        .get("tweet_mode")
        .is_some_and(|mode| mode == "extended");
    entity::tweet(&Tweet::of(sim, sim.clock.now_ms(), status), extended)
}

fn is_true(text: &str) -> bool {
    ["true", "True", "t", "1"].contains(&text)
}

const DEFAULT_COUNT: u16 = 20;
const MOST: u16 = 100;
