//! What operations have in common, added to all of them.

use utoipa::openapi::{
    Content, OpenApi, Ref, RefOr, Response,
    path::{Operation, PathItem},
    security::{
        ApiKey, ApiKeyValue, AuthorizationCode, ClientCredentials, Flow, HttpAuthScheme,
        HttpBuilder, OAuth2, Scopes, SecurityRequirement, SecurityScheme,
    },
};

use crate::auth::Scope;

/// Adds to every operation its ID and the answers that follow from who may call it and what it is sent; and the
/// security schemes.
pub(super) fn complete(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        for (method, operation) in operations(item) {
            operation.operation_id = Some(id(method, path));
            add_refusals(operation);
        }
    }
    let components = description.components.get_or_insert_default();
    for (name, scheme) in schemes() {
        components.add_security_scheme(name, scheme);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("get", item.get.as_mut()),
        ("post", item.post.as_mut()),
        ("put", item.put.as_mut()),
        ("patch", item.patch.as_mut()),
        ("delete", item.delete.as_mut()),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation?)))
}

/// `get_api_v1_lists_id` of `GET /api/v1/lists/{id}`. Trailing slashes count.
fn id(method: &str, path: &str) -> String {
    let path = path.replace(['{', '}'], "").replace(['/', '-', '.'], "_");
    format!("{method}{path}")
}

fn add_refusals(operation: &mut Operation) {
    let needs = operation.security.clone().unwrap_or_default();
    let names: Vec<String> = needs.iter().flat_map(schemes_of).collect();
    let has = |scheme: &str| names.iter().any(|name| name == scheme);
    let has_body = operation.request_body.is_some();
    let mut add = |status: &str, why: &str| {
        let answers = &mut operation.responses.responses;
        if !answers.contains_key(status) {
            answers.insert(status.to_owned(), RefOr::T(problem(why)));
        }
    };
    if has("account") || has("app") || has("operator") {
        add("401", "The token is missing or invalid");
    }
    if has("account") || has("app") {
        add("403", "The token lacks the scope, or its account is frozen");
    } else if has("operator") {
        let why = "From a page of another site, or a token is needed and the server is configured without one";
        add("403", why);
    }
    if has("account") && !has("app") && !needs.contains(&SecurityRequirement::default()) {
        add("422", "The token belongs to no account");
    }
    if has_body {
        add("400", "The body cannot be read, or a parameter is missing");
        add("413", "The body is too large");
    }
}

/// The names of a requirement's schemes, which are public in JSON alone.
fn schemes_of(needed: &SecurityRequirement) -> Vec<String> {
    match serde_json::to_value(needed) {
        Ok(serde_json::Value::Object(schemes)) => schemes.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

fn problem(why: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name("Problem"));
    let mut response = Response::new(why);
    let content = Content::new(Some(schema));
    response
        .content
        .insert("application/json".to_owned(), RefOr::T(content));
    response
}

fn schemes() -> [(&'static str, SecurityScheme); 6] {
    let scopes = || -> Scopes {
        let all = Scope::ALL.iter();
        all.map(|scope| (scope.name().to_owned(), String::new()))
            .collect()
    };
    let by_person = AuthorizationCode::new("/oauth/authorize", "/oauth/token", scopes());
    let by_app = ClientCredentials::new("/oauth/token", scopes());
    let oauth = |flow, description: &str| {
        SecurityScheme::OAuth2(OAuth2::with_description([flow], description))
    };
    let cookie = |name: &str, description: &str| {
        let value = ApiKeyValue::with_description(name, description);
        SecurityScheme::ApiKey(ApiKey::Cookie(value))
    };
    let http = |scheme, description: &str| {
        let scheme = HttpBuilder::new().scheme(scheme);
        SecurityScheme::Http(scheme.description(Some(description)).build())
    };
    [
        (
            "account",
            oauth(
                Flow::AuthorizationCode(by_person),
                "A token of an account: of an app by OAuth, with the scopes that are listed or wider ones, or a native one, which may do all.",
            ),
        ),
        (
            "app",
            oauth(
                Flow::ClientCredentials(by_app),
                "An app's own token, which acts for nobody.",
            ),
        ),
        (
            "client",
            http(
                HttpAuthScheme::Basic,
                "An app's `client_id` and `client_secret`, here or as parameters.",
            ),
        ),
        (
            "operator",
            http(HttpAuthScheme::Bearer, "The operator's token."),
        ),
        (
            "session",
            cookie(
                "driftline_session",
                "Who is logged in with this browser. Over TLS the name begins with `__Host-`.",
            ),
        ),
        (
            "form",
            cookie(
                "driftline_form",
                "What the form's `form_token` is made of, so that no page of another site can send the form. Over TLS the name begins with `__Host-`.",
            ),
        ),
    ]
}
