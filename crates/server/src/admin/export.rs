//! Exports, line by line.

use driftline_mastodon::viewer;
use driftline_store::{
    Store,
    export::{self, ExportRow},
};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{CommandError, find};

/// A page of lines; each is a text of its own, because a [`Value`] cannot hold every number.
pub(super) async fn page(
    store: &Store,
    name: &str,
    after: i64,
    since_ms: Option<i64>,
    limit: u32,
) -> Result<Value, CommandError> {
    let id = find(store, name).await?.id;
    let rows = store
        .read(move |tx| export::rows(tx, id, after, limit))
        .await?;
    let next = rows.last().map(|row| row.first_usn);
    let lines = rows
        .into_iter()
        .filter(|row| since_ms.is_none_or(|since_ms| row.arrived_at_ms >= since_ms))
        .map(line);
    let lines: Vec<String> = lines
        .collect::<Result<_, _>>()
        .map_err(CommandError::failed)?;
    Ok(json!({ "lines": lines, "next": next }))
}

/// An entry and its post, in the order of its keys.
#[derive(Serialize)]
struct Line<'a> {
    arrival: i64,
    arrived_at_ms: i64,
    created_at_ms: Option<i64>,
    deleted_at_ms: Option<i64>,
    edited_at_ms: Option<i64>,
    id: String,
    post_id: String,
    /// As the upstream wrote it, without what concerns the account whose token read it.
    status: Option<&'a RawValue>,
    upstream_id: &'a str,
    uri: Option<&'a str>,
    url: Option<&'a str>,
    usn: i64,
    visibility: &'a str,
}

fn line(row: ExportRow) -> Result<String, serde_json::Error> {
    let post = row.post;
    // Posts that were stored by earlier versions still hold it.
    let raw = post.raw.map(viewer::without);
    serde_json::to_string(&Line {
        arrival: row.first_usn,
        arrived_at_ms: row.arrived_at_ms,
        created_at_ms: post.created_at_ms,
        deleted_at_ms: post.deleted_at_ms,
        edited_at_ms: post.edited_at_ms,
        id: row.id.to_string(),
        post_id: row.post_id.to_string(),
        status: raw
            .as_deref()
            .and_then(|raw| serde_json::from_str(raw).ok()),
        upstream_id: &post.upstream_id,
        uri: post.uri.as_deref(),
        url: post.url.as_deref(),
        usn: row.usn,
        visibility: post.visibility.name(),
    })
}

#[cfg(test)]
mod tests {
    use driftline_core::post::Visibility;
    use driftline_store::{LocalId, export::ExportPost};

    use super::*;

    fn line_of(raw: Option<&str>) -> String {
        let post = ExportPost {
            upstream_id: "7".to_owned(),
            uri: None,
            url: Some("https://a.example/7".to_owned()),
            created_at_ms: Some(5),
            edited_at_ms: None,
            deleted_at_ms: None,
            visibility: Visibility::Public,
            raw: raw.map(str::to_owned),
        };
        let row = ExportRow {
            id: LocalId::new(1),
            post_id: LocalId::new(2),
            first_usn: 3,
            usn: 4,
            arrived_at_ms: 6,
            post,
        };
        line(row).expect("a line")
    }

    #[test]
    fn a_status_is_exported_as_written_without_what_concerns_its_reader() {
        let (id, post_id) = (LocalId::new(1).to_string(), LocalId::new(2).to_string());
        let line = line_of(Some(
            r#"{"z":1e400,"favourited":true,"n":18446744073709551616,"z":-0.0,"reblog":{"muted":true,"a":1.10}}"#,
        ));
        assert_eq!(
            line,
            format!(
                r#"{{"arrival":3,"arrived_at_ms":6,"created_at_ms":5,"deleted_at_ms":null,"edited_at_ms":null,"id":"{id}","post_id":"{post_id}","status":{{"z":1e400,"n":18446744073709551616,"z":-0.0,"reblog":{{"a":1.10}}}},"upstream_id":"7","uri":null,"url":"https://a.example/7","usn":4,"visibility":"public"}}"#
            )
        );
    }

    #[test]
    fn what_is_no_json_is_null() {
        for raw in [None, Some(""), Some("{\"favourited\":")] {
            assert!(line_of(raw).contains(r#""status":null,"#), "{raw:?}");
        }
    }
}
