//! The description as a page, which loads nothing else.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{
        HeaderValue,
        header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    response::{Html, IntoResponse as _, Response},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Map, Value};

use crate::App;

/// This description as a page to browse. It needs no script and no other server.
#[utoipa::path(
    get, path = "/api/docs", tag = "server", security(()),
    responses((status = 200, body = String, content_type = "text/html"))
)]
pub(super) async fn docs(State(app): State<Arc<App>>) -> Response {
    let description = serde_json::to_value(&app.description).unwrap_or_default();
    let mut response = Html(page(&description)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A page of an OpenAPI description.
fn page(description: &Value) -> String {
    let info = &description["info"];
    let title = text(&info["title"]);
    let operations: Vec<_> = operations(description).collect();
    let of_tag = |name: &str| -> Vec<Markup> {
        let is_of_tag = |operation: &Value| list(&operation["tags"]).iter().any(|tag| tag == name);
        let operations = operations.iter().copied();
        let operations = operations.filter(|(.., operation)| is_of_tag(operation));
        operations.map(operation_details).collect()
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) ": API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) " " (text(&info["version"])) }
                p { (prose(&info["description"])) }
                p { a href="/api/openapi.json" { "openapi.json" } }
                @for tag in list(&description["tags"]) {
                    h2 { (text(&tag["name"])) }
                    p { (prose(&tag["description"])) }
                    @for operation in of_tag(text(&tag["name"])) { (operation) }
                }
                h2 { "Schemas" }
                @for (name, schema) in object(&description["components"]["schemas"]) {
                    details id=(name) {
                        summary { code { (name) } }
                        (schema_table(schema))
                    }
                }
            }
        }
    };
    page.into_string()
}

/// The path, the method and the description of an operation.
type Operation<'d> = (&'d String, &'d String, &'d Value);

fn operations(description: &Value) -> impl Iterator<Item = Operation<'_>> {
    let paths = object(&description["paths"]);
    paths.flat_map(|(path, item)| {
        let methods = object(item).filter(|(_, operation)| operation["responses"].is_object());
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

fn operation_details((path, method, operation): Operation<'_>) -> Markup {
    let parameters = list(&operation["parameters"]);
    let body = &operation["requestBody"];
    html! {
        details {
            summary {
                b { (method.to_ascii_uppercase()) } " " code { (path) } " " (prose(&operation["summary"]))
            }
            p { (prose(&operation["description"])) }
            p { "Needs: " (needs(&operation["security"])) }
            @if !parameters.is_empty() {
                table {
                    tr { th { "Parameter" } th { "In" } th { "Type" } th {} }
                    @for parameter in parameters {
                        tr {
                            td { (member(text(&parameter["name"]), parameter["required"] == true)) }
                            td { (text(&parameter["in"])) }
                            td { (type_of(&parameter["schema"])) }
                            td { (prose(&parameter["description"])) }
                        }
                    }
                }
            }
            @if body.is_object() { p { "Body: " (contents(&body["content"])) } }
            table {
                tr { th { "Status" } th { "Body" } th {} }
                @for (status, response) in object(&operation["responses"]) {
                    tr {
                        td { (status) }
                        td { (contents(&response["content"])) }
                        td { (prose(&response["description"])) }
                    }
                }
            }
        }
    }
}

/// The types of a body, by their media types.
fn contents(content: &Value) -> Markup {
    let all = object(content).map(|(kind, content)| {
        html! { (type_of(&content["schema"])) " (" (kind) ")" }
    });
    joined(all, ", ")
}

/// Each of the alternatives, with its scopes.
fn needs(security: &Value) -> Markup {
    let alternatives = list(security).iter().map(|requirement| {
        let schemes = object(requirement).map(|(scheme, scopes)| {
            let scopes = list(scopes).iter().map(|scope| html! { (text(scope)) });
            let scopes = joined(scopes, ", ");
            html! {
                code { (scheme) }
                @if !scopes.0.is_empty() { " (" (scopes) ")" }
            }
        });
        match joined(schemes, " and ") {
            nothing if nothing.0.is_empty() => html! { "nothing" },
            schemes => schemes,
        }
    });
    joined(alternatives, ", or ")
}

fn schema_table(schema: &Value) -> Markup {
    let required = list(&schema["required"]);
    let mut members = object(&schema["properties"]).peekable();
    html! {
        p { (type_of(schema)) " " (prose(&schema["description"])) }
        @if members.peek().is_some() {
            table {
                tr { th { "Member" } th { "Type" } th {} }
                @for (name, schema) in members {
                    tr {
                        td { (member(name, required.iter().any(|required| required == name))) }
                        td { (type_of(schema)) }
                        td { (prose(&schema["description"])) }
                    }
                }
            }
        }
    }
}

fn member(name: &str, is_required: bool) -> Markup {
    html! { code { (name) } @if is_required { " *" } }
}

/// A schema's type, as a link if it has a name.
fn type_of(schema: &Value) -> Markup {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or(name);
        return html! { a href={ "#" (name) } { (name) } };
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        let all = list(&schema[several]);
        if !all.is_empty() {
            return joined(all.iter().map(type_of), " or ");
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => html! { "list of " (type_of(&schema["items"])) },
        Value::String(kind) => html! { (kind) },
        Value::Array(kinds) => joined(kinds.iter().map(|kind| html! { (text(kind)) }), " or "),
        _ => html! {},
    }
}

/// A text, in which backquotes mark code.
fn prose(value: &Value) -> Markup {
    html! {
        @for (index, part) in text(value).split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn joined(parts: impl Iterator<Item = Markup>, separator: &str) -> Markup {
    let parts: Vec<String> = parts.map(Markup::into_string).collect();
    PreEscaped(parts.join(separator))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}\
body{max-width:60rem;margin:auto;padding:1rem}\
details{border:1px solid #8886;border-radius:6px;margin:.4rem 0;padding:.3rem .7rem}\
summary{cursor:pointer;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%;margin:.5rem 0;font-size:.9em}\
th,td{text-align:left;vertical-align:top;border-top:1px solid #8884;padding:.25rem .5rem;overflow-wrap:anywhere}\
code{font-family:ui-monospace,monospace;font-size:.95em}";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_of_a_description_is_html() {
        let evil = "<script>alert(1)</script>\"'";
        let description = json!({
            "info": { "title": evil, "version": evil, "description": evil },
            "tags": [{ "name": evil, "description": evil }],
            "paths": { evil: { "get": {
                "tags": [evil], "summary": evil, "description": evil,
                "security": [{ evil: [evil] }],
                "parameters": [{ "name": evil, "in": evil, "schema": { "type": evil }, "description": evil }],
                "requestBody": { "content": { evil: { "schema": { "$ref": evil } } } },
                "responses": { evil: { "description": evil, "content": { evil: { "schema": { "type": [evil] } } } } },
            } } },
            "components": { "schemas": { evil: {
                "description": evil, "required": [evil], "properties": { evil: { "description": evil } },
            } } },
        });
        let page = page(&description);
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(
            page.matches("alert(1)").count(),
            page.matches("script&gt;alert(1)").count()
        );
    }

    #[test]
    fn the_page_loads_nothing() {
        let page = page(&serde_json::to_value(crate::api_description([])).expect("JSON"));
        for load in ["<script", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(load), "{load}");
        }
        assert!(page.contains("/api/v1/timelines/public"));
        for link in page.split("href=\"").skip(1) {
            assert!(link.starts_with(['#', '/']), "{}", &link[..40]);
        }
    }
}
