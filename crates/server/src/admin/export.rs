//! Exports, line by line.

use driftline_mastodon::viewer;
use driftline_runtime::CommandError;
use driftline_store::export;
use serde_json::value::RawValue;

use super::{ExportPage, ExportPosts, ExportRow, Host, find};

/// A page of entries.
pub(super) async fn page(host: &Host, request: ExportPosts) -> Result<ExportPage, CommandError> {
    let ExportPosts {
        name,
        after,
        since_ms,
        limit,
    } = request;
    let key = find(&host.store, &name).await?.key();
    let rows = host
        .store
        .read(move |tx| export::rows(tx, key, after, limit))
        .await?;
    let next = rows.last().map(|row| row.first_usn);
    let rows = rows
        .into_iter()
        .filter(|row| since_ms.is_none_or(|since_ms| row.arrived_at_ms >= since_ms))
        .map(exported);
    Ok(ExportPage {
        rows: rows.collect(),
        next,
    })
}

fn exported(row: export::ExportRow) -> ExportRow {
    let post = row.post;
    ExportRow {
        arrival: row.first_usn,
        arrived_at_ms: row.arrived_at_ms,
        created_at_ms: post.created_at_ms,
        deleted_at_ms: post.deleted_at_ms,
        edited_at_ms: post.edited_at_ms,
        id: row.id,
        left_at_ms: row.left_at_ms,
        post_id: row.post_id,
        status: post.raw.and_then(status),
        upstream_id: post.upstream_id,
        uri: post.uri,
        url: post.url,
        usn: row.usn,
        visibility: post.visibility,
    }
}

/// A stored status as the upstream wrote it, on one line and without what concerns the account whose
/// token read it; `None` if it is not JSON. Posts that earlier versions stored still hold that.
pub(super) fn status(raw: String) -> Option<Box<RawValue>> {
    // In JSON, line breaks are only between tokens.
    let line = viewer::without(raw).replace(['\n', '\r'], " ");
    RawValue::from_string(line).ok()
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
        let row = export::ExportRow {
            id: LocalId::new(1),
            post_id: LocalId::new(2),
            first_usn: 3,
            usn: 4,
            arrived_at_ms: 6,
            left_at_ms: None,
            post,
        };
        serde_json::to_string(&exported(row)).expect("a line")
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
                r#"{{"arrival":3,"arrived_at_ms":6,"created_at_ms":5,"deleted_at_ms":null,"edited_at_ms":null,"id":"{id}","left_at_ms":null,"post_id":"{post_id}","status":{{"z":1e400,"n":18446744073709551616,"z":-0.0,"reblog":{{"a":1.10}}}},"upstream_id":"7","uri":null,"url":"https://a.example/7","usn":4,"visibility":"public"}}"#
            )
        );
    }

    #[test]
    fn what_is_no_json_is_null() {
        for raw in [None, Some(""), Some("{\"favourited\":")] {
            assert!(line_of(raw).contains(r#""status":null,"#), "{raw:?}");
        }
    }
    #[test]
    fn a_status_of_several_lines_is_exported_on_one() {
        let line = line_of(Some("{\r\n  \"content\": \"a\\nb\"\n}"));
        assert!(
            line.contains(r#""status":{    "content": "a\nb" },"#),
            "{line}"
        );
    }
}
