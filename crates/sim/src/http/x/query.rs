//! A request's parameters.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Query},
    http::request::Parts,
    response::Response,
};
use driftline_core::api::Api;

use crate::http::{
    refusal::{Refusal, refuse},
    sim::Sim,
};

/// The query, each name once.
pub(super) struct Params(Vec<(String, String)>);

impl FromRequestParts<Arc<Sim>> for Params {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Sim>) -> Result<Self, Response> {
        Query::try_from_uri(&parts.uri)
            .map(|Query(pairs)| Self(pairs))
            .map_err(|_| refuse(Api::X, &Refusal::unreadable()))
    }
}

impl Params {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        pairs.find_map(|(key, value)| (key == name).then_some(value.as_str()))
    }

    /// A comma-separated list; empty if it is not there.
    pub(super) fn list(&self, name: &str) -> Vec<&str> {
        self.text(name)
            .into_iter()
            .flat_map(|list| list.split(','))
            .collect()
    }

    /// A post's ID, which X takes for a number of at most 19 digits.
    pub(super) fn id(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.text(name) {
            Some(id) if !is_id(id) => Err(Refusal::bad(
                name,
                id,
                format!("The `{name}` query parameter value [{id}] is not valid"),
            )),
            id => Ok(id),
        }
    }

    /// Refuses names that the endpoint does not know.
    pub(super) fn only(&self, known: &[&str]) -> Result<(), Refusal> {
        match self.0.iter().find(|(name, _)| !known.contains(&&**name)) {
            None => Ok(()),
            Some((name, value)) => Err(Refusal::bad(
                name,
                value,
                format!(
                    "The query parameter [{name}] is not one of [{}]",
                    known.join(",")
                ),
            )),
        }
    }
}

pub(super) fn is_id(text: &str) -> bool {
    (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}
