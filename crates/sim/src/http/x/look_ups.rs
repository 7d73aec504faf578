//! Look-ups of posts.

use std::sync::Arc;

use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::Response,
};
use driftline_core::{api::Api, upstream_id::UpstreamId};
use serde_json::{Map, Value, json};

use super::{
    entity,
    fields::{Fields, PARAMETERS},
    query::{Params, is_id},
};
use crate::{
    config::BatchAbility,
    http::{
        answers::{answer, json as json_answer},
        authorization::Caller,
        refusal::{Refusal, problem, refuse},
        sim::Sim,
        tweet::Tweet,
    },
    quota::{Asked, Endpoint},
    world::{Found, answer_order},
};

pub(super) async fn several(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    params: Params,
) -> Response {
    sim.count(|traffic| traffic.batches += 1);
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::LookUps));
    answer(&sim, verdict, || reply(many(&sim, &caller, &params))).await
}

pub(super) async fn one(
    State(sim): State<Arc<Sim>>,
    caller: Caller,
    Path(id): Path<String>,
    params: Params,
) -> Response {
    sim.count(|traffic| traffic.look_ups += 1);
    let verdict = sim.verdict(&caller.token, Asked::plain(Endpoint::LookUp));
    answer(&sim, verdict, || reply(single(&sim, &caller, &id, &params))).await
}

fn reply(body: Result<Map<String, Value>, Refusal>) -> Response {
    match body {
        Ok(body) => json_answer(StatusCode::OK, Value::Object(body).to_string()),
        Err(refusal) => refuse(Api::X, &refusal),
    }
}

fn many(sim: &Sim, caller: &Caller, params: &Params) -> Result<Map<String, Value>, Refusal> {
    let batches = sim.world_config().batches;
    match batches.ability {
        BatchAbility::Served => {}
        BatchAbility::NotFound => return Err(Refusal::NotFound),
        BatchAbility::MethodNotAllowed => return Err(Refusal::MethodNotAllowed),
    }
    let mut known = vec!["ids"];
    known.extend(PARAMETERS);
    params.only(&known)?;
    let fields = Fields::of(params)?;
    let asked = params.list("ids");
    let most = usize::from(batches.most.unwrap_or(MOST));
    if asked.is_empty() || asked.len() > most {
        let message = format!(
            "The number of values in the `ids` query parameter list [{}] is not between 1 and {most}",
            asked.len()
        );
        return Err(Refusal::bad("ids", &asked.join(","), message));
    }
    if let Some(id) = asked.iter().find(|id| !is_id(id)) {
        let message = format!("The `ids` query parameter value [{id}] is not valid");
        return Err(Refusal::bad("ids", id, message));
    }
    let asked: Vec<UpstreamId> = asked.into_iter().map(UpstreamId::from).collect();
    sim.poisoned(&asked).map_or(Ok(()), Err)?;
    sim.capped().map_or(Ok(()), Err)?;
    let mut statuses = Vec::new();
    let mut errors = Vec::new();
    for id in answer_order(&asked, batches.shuffled) {
        match sim.find(&caller.token, &id) {
            Found::Shown(status) => statuses.push(*status),
            found => errors.push(error(&found, "ids", &id)),
        }
    }
    sim.count(|traffic| traffic.posts_refreshed += statuses.len() as u64);
    sim.give(statuses.len());
    let now_ms = sim.clock.now_ms();
    let tweets: Vec<_> = statuses
        .iter()
        .map(|status| Tweet::of(sim, now_ms, status))
        .collect();
    let mut body = entity::several(&tweets, &fields);
    if !errors.is_empty() {
        body.insert("errors".into(), errors.into());
    }
    Ok(body)
}

fn single(
    sim: &Sim,
    caller: &Caller,
    id: &str,
    params: &Params,
) -> Result<Map<String, Value>, Refusal> {
    params.only(&PARAMETERS)?;
    let fields = Fields::of(params)?;
    if !is_id(id) {
        let message = format!("The `id` query parameter value [{id}] is not valid");
        return Err(Refusal::bad("id", id, message));
    }
    let id = UpstreamId::from(id);
    sim.poisoned(std::slice::from_ref(&id))
        .map_or(Ok(()), Err)?;
    sim.capped().map_or(Ok(()), Err)?;
    Ok(match sim.find(&caller.token, &id) {
        Found::Shown(status) => {
            sim.give(1);
            entity::one(&Tweet::of(sim, sim.clock.now_ms(), &status), &fields)
        }
        found => {
            let mut body = Map::new();
            body.insert("errors".into(), json!([error(&found, "id", &id)]));
            body
        }
    })
}

/// Why a post is left out: X says so in a 200.
fn error(found: &Found, parameter: &str, id: &UpstreamId) -> Value {
    match found {
        Found::Hidden => json!({
            "value": id,
            "detail": format!("Sorry, you are not authorized to see the Tweet with {parameter}: [{id}]."),
            "title": "Authorization Error",
            "resource_type": "tweet",
            "parameter": parameter,
            "resource_id": id,
            "section": "data",
            "type": problem("not-authorized-for-resource"),
        }),
        Found::Absent | Found::Shown(_) => json!({
            "value": id,
            "detail": format!("Could not find tweet with {parameter}: [{id}]."),
            "title": "Not Found Error",
            "resource_type": "tweet",
            "parameter": parameter,
            "resource_id": id,
            "type": problem("resource-not-found"),
        }),
    }
}

const MOST: u16 = 100;
