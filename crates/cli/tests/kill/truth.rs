//! What was published, and what is stored.

use std::collections::{HashMap, HashSet};

use driftline_sim::{TruePost, Truth, content_hash};
use serde_json::Value;

/// Posts that were deleted and are not known to be.
///
/// Not the newest: no page proves that it is gone before a newer post is
/// there.
pub fn still_there<'t>(truth: &'t Truth, rows: &[Value]) -> Vec<&'t TruePost> {
    let newest = rows.iter().map(number).max();
    let live: HashSet<&str> = rows
        .iter()
        // A boost that was taken back is not deleted: it leaves.
        .filter(|row| row["deleted_at_ms"].is_null() && row["left_at_ms"].is_null())
        .filter(|row| Some(number(row)) != newest)
        .filter_map(|row| row["upstream_id"].as_str())
        .collect();
    truth
        .posts
        .iter()
        .filter(|post| post.deleted_at_ms.is_some() && live.contains(post.id.as_str()))
        .collect()
}

/// Its upstream ID.
fn number(row: &Value) -> u64 {
    row["upstream_id"].as_str().unwrap().parse().unwrap()
}

/// The rows are what was published, each once, in the order in which they arrived.
///
/// # Panics
/// If they are not.
pub fn compare(truth: &Truth, rows: &[Value]) {
    let mut stored: HashMap<&str, &Value> = HashMap::new();
    for row in rows {
        let id = row["upstream_id"].as_str().unwrap();
        assert!(stored.insert(id, row).is_none(), "{id} is stored twice");
    }
    let arrivals: Vec<i64> = rows
        .iter()
        .map(|row| row["arrival"].as_i64().unwrap())
        .collect();
    assert!(
        arrivals.is_sorted_by(|a, b| a < b),
        "arrivals are not in order"
    );
    for post in &truth.posts {
        let row = stored.remove(post.id.as_str());
        match (row, post.deleted_at_ms) {
            // Nobody had to see it.
            (None, Some(_)) => {}
            (None, None) => panic!("not stored: {post:?}"),
            // That it is known to be is checked by [`still_there`].
            (Some(_), Some(_)) => {}
            (Some(row), None) => {
                assert!(
                    row["deleted_at_ms"].is_null() && row["left_at_ms"].is_null(),
                    "not deleted: {row} {post:?}"
                );
                let content = row["status"]["content"].as_str().unwrap();
                assert_eq!(content_hash(content), post.content_hash, "{row} {post:?}");
            }
        }
    }
    assert!(stored.is_empty(), "never published: {stored:?}");
}
