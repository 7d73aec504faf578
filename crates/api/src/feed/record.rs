use driftline_core::post::Visibility;
use driftline_mastodon::viewer;
use driftline_store::{LocalId, export};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// An entry of a source with its post, as exports and the feed write it; its keys are in alphabetical
/// order. Times are Unix ms.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PostRecord {
    /// Its number in the order of arrival.
    pub arrival: i64,
    /// When it was stored.
    pub arrived_at_ms: i64,
    /// When its author says that it was written.
    pub created_at_ms: Option<i64>,
    /// When its deletion was noticed.
    pub deleted_at_ms: Option<i64>,
    /// When it was last edited.
    pub edited_at_ms: Option<i64>,
    /// When the answer was requested that showed this version of it.
    pub fetched_at_ms: i64,
    /// Its ID.
    pub id: LocalId,
    /// Since when the source lists its post no more, which is not known to be deleted.
    pub left_at_ms: Option<i64>,
    /// Its post's ID.
    pub post_id: LocalId,
    /// The post as the upstream wrote it; `None` for a tombstone.
    pub status: Option<Box<RawValue>>,
    /// The post's ID at the upstream.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its last USN.
    pub usn: i64,
    /// Who may see it at the upstream.
    pub visibility: Visibility,
}

impl From<export::ExportRow> for PostRecord {
    fn from(row: export::ExportRow) -> Self {
        let post = row.post;
        Self {
            arrival: row.first_usn,
            arrived_at_ms: row.arrived_at_ms,
            created_at_ms: post.created_at_ms,
            deleted_at_ms: post.deleted_at_ms,
            edited_at_ms: post.edited_at_ms,
            fetched_at_ms: post.fetched_at_ms,
            id: row.id,
            left_at_ms: row.left_at_ms,
            post_id: row.post_id,
            status: post.raw.and_then(Self::status),
            upstream_id: post.upstream_id,
            uri: post.uri,
            url: post.url,
            usn: row.usn,
            visibility: post.visibility,
        }
    }
}

impl PostRecord {
    /// A stored status as the upstream wrote it, on one line and without what concerns the account whose
    /// token read it; `None` if it is not JSON.
    pub fn status(raw: String) -> Option<Box<RawValue>> {
        // In JSON, line breaks are only between tokens.
        let line = viewer::without(raw).replace(['\n', '\r'], " ");
        RawValue::from_string(line).ok()
    }
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
            account: None,
            boost_of: None,
            created_at_ms: Some(5),
            edited_at_ms: None,
            deleted_at_ms: None,
            fetched_at_ms: 8,
            visibility: Visibility::Public,
            claimed: false,
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
        serde_json::to_string(&PostRecord::from(row)).expect("a line")
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
                r#"{{"arrival":3,"arrived_at_ms":6,"created_at_ms":5,"deleted_at_ms":null,"edited_at_ms":null,"fetched_at_ms":8,"id":"{id}","left_at_ms":null,"post_id":"{post_id}","status":{{"z":1e400,"n":18446744073709551616,"z":-0.0,"reblog":{{"a":1.10}}}},"upstream_id":"7","uri":null,"url":"https://a.example/7","usn":4,"visibility":"public"}}"#
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
