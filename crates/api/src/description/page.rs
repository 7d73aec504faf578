//! The description as a page, which loads nothing else.

use std::{fmt::Write as _, sync::Arc};

use axum::{
    extract::State,
    http::{
        HeaderValue,
        header::{CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS},
    },
    response::{Html, IntoResponse as _, Response},
};
use driftline_mastodon::escape_html;
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
    let mut out = String::with_capacity(64 * 1024);
    let info = &description["info"];
    let title = escaped(&info["title"]);
    let _ = write!(
        out,
        "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}: API</title><style>{STYLE}</style></head><body><h1>{title} {}</h1><p>{}</p><p><a href=\"/api/openapi.json\">openapi.json</a></p>",
        escaped(&info["version"]),
        prose(&info["description"]),
    );
    let operations: Vec<_> = operations(description).collect();
    for tag in list(&description["tags"]) {
        let name = tag["name"].as_str().unwrap_or_default();
        let of_tag = operations.iter().filter(|(.., operation)| {
            let tags = list(&operation["tags"]).iter();
            tags.clone().any(|tag| tag == name)
        });
        let _ = write!(
            out,
            "<h2>{}</h2><p>{}</p>",
            escape_html(name),
            prose(&tag["description"])
        );
        for (path, method, operation) in of_tag {
            write_operation(&mut out, path, method, operation);
        }
    }
    out.push_str("<h2>Schemas</h2>");
    for (name, schema) in object(&description["components"]["schemas"]) {
        let _ = write!(
            out,
            "<details id=\"{0}\"><summary><code>{0}</code></summary>",
            escape_html(name)
        );
        write_schema(&mut out, schema);
        out.push_str("</details>");
    }
    out.push_str("</body></html>");
    out
}

/// The path, the method and the description of each operation.
fn operations(description: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = object(&description["paths"]);
    paths.flat_map(|(path, item)| {
        let methods = object(item).filter(|(_, operation)| operation["responses"].is_object());
        methods.map(move |(method, operation)| (path, method, operation))
    })
}

fn write_operation(out: &mut String, path: &str, method: &str, operation: &Value) {
    let _ = write!(
        out,
        "<details><summary><b>{}</b> <code>{}</code> {}</summary><p>{}</p><p>Needs: {}</p>",
        method.to_ascii_uppercase(),
        escape_html(path),
        prose(&operation["summary"]),
        prose(&operation["description"]),
        needs(&operation["security"]),
    );
    let parameters = list(&operation["parameters"]);
    if !parameters.is_empty() {
        out.push_str("<table><tr><th>Parameter<th>In<th>Type<th></tr>");
        for parameter in parameters {
            let is_required = parameter["required"] == true;
            let _ = write!(
                out,
                "<tr><td><code>{}</code>{}<td>{}<td>{}<td>{}</tr>",
                escaped(&parameter["name"]),
                if is_required { " *" } else { "" },
                escaped(&parameter["in"]),
                type_of(&parameter["schema"]),
                prose(&parameter["description"]),
            );
        }
        out.push_str("</table>");
    }
    let contents = |content: &Value| {
        let all = object(content).map(|(kind, content)| {
            format!("{} ({})", type_of(&content["schema"]), escape_html(kind))
        });
        all.collect::<Vec<_>>().join(", ")
    };
    if operation["requestBody"].is_object() {
        let body = contents(&operation["requestBody"]["content"]);
        let _ = write!(out, "<p>Body: {body}</p>");
    }
    out.push_str("<table><tr><th>Status<th>Body<th></tr>");
    for (status, response) in object(&operation["responses"]) {
        let _ = write!(
            out,
            "<tr><td>{}<td>{}<td>{}</tr>",
            escape_html(status),
            contents(&response["content"]),
            prose(&response["description"]),
        );
    }
    out.push_str("</table></details>");
}

/// Each of the alternatives, with its scopes.
fn needs(security: &Value) -> String {
    let alternatives = list(security).iter().map(|requirement| {
        let schemes = object(requirement).map(|(scheme, scopes)| {
            let scopes: Vec<_> = list(scopes).iter().map(escaped).collect();
            match scopes.is_empty() {
                true => format!("<code>{}</code>", escape_html(scheme)),
                false => format!(
                    "<code>{}</code> ({})",
                    escape_html(scheme),
                    scopes.join(", ")
                ),
            }
        });
        let schemes: Vec<_> = schemes.collect();
        match schemes.is_empty() {
            true => "nothing".to_owned(),
            false => schemes.join(" and "),
        }
    });
    alternatives.collect::<Vec<_>>().join(", or ")
}

fn write_schema(out: &mut String, schema: &Value) {
    let _ = write!(
        out,
        "<p>{} {}</p>",
        type_of(schema),
        prose(&schema["description"])
    );
    let required = list(&schema["required"]);
    let mut members = object(&schema["properties"]).peekable();
    if members.peek().is_none() {
        return;
    }
    out.push_str("<table><tr><th>Member<th>Type<th></tr>");
    for (name, member) in members {
        let is_required = required.iter().any(|required| required == name);
        let _ = write!(
            out,
            "<tr><td><code>{}</code>{}<td>{}<td>{}</tr>",
            escape_html(name),
            if is_required { " *" } else { "" },
            type_of(member),
            prose(&member["description"]),
        );
    }
    out.push_str("</table>");
}

/// A schema's type, as a link if it has a name.
fn type_of(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = escape_html(name.rsplit('/').next().unwrap_or(name));
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        let all: Vec<_> = list(&schema[several]).iter().map(type_of).collect();
        if !all.is_empty() {
            return all.join(" or ");
        }
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", type_of(&schema["items"])),
        Value::String(kind) => escape_html(kind),
        Value::Array(kinds) => kinds.iter().map(escaped).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

/// Text with its code in backquotes.
fn prose(text: &Value) -> String {
    let text = text.as_str().unwrap_or_default();
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape_html(part);
        match index % 2 {
            1 => out.extend(["<code>", &part, "</code>"]),
            _ => out.push_str(&part),
        }
    }
    out
}

fn escaped(text: &Value) -> String {
    escape_html(text.as_str().unwrap_or_default())
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
