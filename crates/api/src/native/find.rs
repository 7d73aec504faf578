//! Search by predicates.

use std::sync::Arc;

use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    App,
    auth::{MayRead, needs},
    find::{Search, bad_query},
    mastodon::{
        entities::Status,
        page::Page,
        page_query::{PageParams, PageQuery},
    },
    transport::{ApiResult, Problem},
};

/// The routes.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(find))
}

/// The predicate to search for.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "a description")]
struct FindParams {
    /// A predicate in its text form.
    #[param(example = "(cat OR dog) -instance:bots.example has:media")]
    q: String,
}

/// The posts that a predicate selects among all that the caller may read, newest first. A page is short,
/// or empty, if its search takes too long: its links then go on where it stopped. The page after the
/// last post has no links.
#[utoipa::path(
    get, path = "/api/driftline/v1/find", tag = "search", params(FindParams, PageParams),
    security((), ("account" = ["read:search"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem)),
)]
async fn find(reader: MayRead<needs::ReadSearch>, query: PageQuery) -> ApiResult {
    let text = query.text("q").unwrap_or_default();
    let search = Search::parse(text, &reader)
        .await
        .map_err(|error| bad_query(&error))?;
    let budget = reader.app.search_budget;
    let part = search.read_part(&reader, query.range, budget).await?;
    let page = Page::of_part(&reader, query.range, part).await?;
    Ok(page.answer(&query))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_description_has_the_parameters_that_count() {
        let description = routes().into_openapi();
        let description = serde_json::to_value(description).expect("JSON");
        let find = &description["paths"]["/api/driftline/v1/find"]["get"];
        let parameters = find["parameters"].as_array().expect("parameters").iter();
        let names: Vec<&Value> = parameters.map(|known| &known["name"]).collect();
        assert_eq!(names, ["q", "max_id", "since_id", "min_id", "limit"]);
    }
}
