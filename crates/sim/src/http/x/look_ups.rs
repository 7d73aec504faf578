//! Look-ups of posts.

use axum::response::Response;
use driftline_core::upstream_id::UpstreamId;
use serde_json::{Map, Value, json};

use super::{
    entity,
    fields::{Fields, PARAMETERS, check_id},
};
use crate::{
    http::{
        answers::ok,
        refusal::{Refusal, problem},
        request::ApiRequest,
        tweet::Tweet,
    },
    quota::Endpoint,
    world::Found,
};

pub(super) async fn several(request: ApiRequest) -> Response {
    let right = || many(&request).map(|body| ok(&Value::Object(body)));
    request.answer_plain(Endpoint::LookUps, right).await
}

fn many(request: &ApiRequest) -> Result<Map<String, Value>, Refusal> {
    let (sim, params) = (&request.sim, &request.params);
    sim.check_batches()?;
    let mut known = vec!["ids"];
    known.extend(PARAMETERS);
    params.only(&known)?;
    let fields = Fields::of(params)?;
    let asked = params.list("ids");
    let most = usize::from(sim.config.world.batches.most.unwrap_or(MOST));
    if asked.is_empty() || asked.len() > most {
        let message = format!(
            "The number of values in the `ids` query parameter list [{}] is not between 1 and {most}",
            asked.len()
        );
        return Err(Refusal::bad("ids", &asked.join(","), message));
    }
    asked.iter().try_for_each(|id| check_id("ids", id))?;
    let asked: Vec<_> = asked.into_iter().map(UpstreamId::from).collect();
    sim.check_cap()?;
    let mut statuses = Vec::new();
    let mut errors = Vec::new();
    for (id, found) in sim.find_several(&request.token, &asked)? {
        match found {
            Found::Shown(status) => statuses.push(*status),
            found => errors.push(error(&found, &id)),
        }
    }
    sim.give(statuses.len());
    let mut body = entity::several(&Tweet::all(sim, &statuses), &fields);
    if !errors.is_empty() {
        body.insert("errors".into(), errors.into());
    }
    Ok(body)
}

/// Why a post is left out: X says so in a 200.
fn error(found: &Found, id: &UpstreamId) -> Value {
    let (detail, title, kind) = match found {
        Found::Hidden => (
            format!("Sorry, you are not authorized to see the Tweet with ids: [{id}]."),
            "Authorization Error",
            "not-authorized-for-resource",
        ),
        Found::Absent | Found::Shown(_) => (
            format!("Could not find tweet with ids: [{id}]."),
            "Not Found Error",
            "resource-not-found",
        ),
    };
    let mut error = json!({
        "value": id,
        "detail": detail,
        "title": title,
        "resource_type": "tweet",
        "parameter": "ids",
        "resource_id": id,
        "type": problem(kind),
    });
    if *found == Found::Hidden {
        error["section"] = json!("data");
    }
    error
}

const MOST: u16 = 100;
