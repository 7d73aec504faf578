//! Labels of posts, sources and spans of time.

use driftline_core::post::{Post, Visibility};
use driftline_mastodon::parse_time_ms;
use driftline_store::Store;
use serde_json::json;

use super::{candidates, found, index, text};
use crate::world::World;

on_both!(labels_and_sources_are_looked_up);

/// Each query finds the same posts before and after the index reads them, and the index gives no other candidates.
fn labels_and_sources_are_looked_up(store: &Store) {
    let labelled = |id: u64, labels: serde_json::Value| {
        let mut shown = text(id, "x");
        let mut json: serde_json::Value = serde_json::from_str(&shown.raw).expect("JSON");
        for (name, value) in labels.as_object().expect("labels") {
            json[name] = value.clone();
        }
        shown.raw = json.to_string();
        shown
    };
    let created = |time: &str, visibility, shown| Post {
        created_at_ms: parse_time_ms(time),
        visibility,
        ..shown
    };
    let mut home = World::readable(store, "home");
    let mut other = World::readable(store, "other");
    let cats = labelled(
        3,
        json!({ "tags": [{ "name": "Cats" }, { "name": "ネコ" }], "language": "en" }),
    );
    home.poll(vec![
        labelled(4, json!({ "tags": [{ "name": "cat" }], "language": "JA", "in_reply_to_id": "3",
            "mentions": [{ "acct": "Bob" }, { "acct": "eve@e.example" }] })),
        cats.clone(),
        created("2025-12-31T23:00:00Z", Visibility::Unlisted, labelled(2, json!({
            "media_attachments": [{ "id": "1" }], "language": "ja", "sensitive": true,
            "card": { "url": "https://a.example/", "html": "<iframe>" }, "account": { "acct": "x", "bot": true } }))),
        labelled(1, json!({ "poll": { "options": [] }, "spoiler_text": "x", "edited_at": "2026-01-01T00:00:00Z" })),
    ]);
    let card = json!({ "card": { "url": "https://a.example/" } });
    let late = created(
        "2031-05-05T00:00:00Z",
        Visibility::Public,
        labelled(5, card),
    );
    other.poll(vec![late, cats]);
    let queries: [(&str, &[&str]); 25] = [
        ("#cats", &["3"]),
        ("tag:CATS OR tag:cat", &["4", "3"]),
        ("#ネコ lang:en", &["3"]),
        ("lang:ja", &["4", "2"]),
        ("has:media lang:ja", &["2"]),
        ("has:poll has:cw", &["1"]),
        ("is:reply", &["4"]),
        ("is:edited OR is:sensitive", &["2", "1"]),
        ("tag:dogs", &[]),
        ("source:other", &["5", "3"]),
        ("source:home #cats", &["3"]),
        ("source:nobodys", &[]),
        ("mentions:bob@sim.example", &["4"]),
        (
            "mentions:EVE@e.example OR mentions:nobody@e.example",
            &["4"],
        ),
        ("has:link", &["5", "2"]),
        ("has:embed", &["2"]),
        ("is:bot", &["2"]),
        ("visibility:unlisted", &["2"]),
        ("via:sim.example visibility:public has:link", &["5"]),
        ("via:other.example", &[]),
        ("before:2026-01-01", &["2"]),
        ("during:2025-12-31 -#none", &["2"]),
        ("after:2030-01-01", &["5"]),
        ("after:2031-05-03T10:00Z before:2031-05-05T08:00+09:00", &[]),
        ("after:2025-12-31T23:00Z before:2025-12-31", &[]),
    ];
    let checked = |(query, expected): (&str, &[&str])| {
        if !query.contains("source:") {
            assert_eq!(found(store, query), expected, "{query}");
        }
    };
    queries.into_iter().for_each(checked);
    while index(store, 2) > 0 {}
    queries.into_iter().for_each(checked);
    for (query, expected) in queries {
        assert_eq!(candidates(store, query), expected, "{query}");
    }
}
