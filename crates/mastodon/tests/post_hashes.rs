//! The hashes of stored posts are compared with those of posts read later, so they must never
//! change: the golden file holds hashes made by the program before this crate existed.

use driftline_core::post::{Author, Counts, Post, PostHashes, References, Visibility};
use driftline_mastodon::{post_hashes, read_status};

const GOLDEN: &str = include_str!("golden/post_hashes.txt");

#[test]
fn hashes_stay_as_they_are_stored() {
    for line in GOLDEN.lines() {
        let mut parts = line.splitn(3, ' ');
        let mut number = || parts.next().and_then(|text| text.parse().ok());
        let (Some(content), Some(state)) = (number(), number()) else {
            panic!("not a golden line: {line}");
        };
        let json = parts.next().expect("JSON");
        let read = serde_json::from_str(json).ok();
        let read = read.and_then(|raw| read_status(raw).ok());
        let hashes = match read {
            Some(post) => {
                assert_eq!(post_hashes(&post, json), post.hashes, "{json}");
                post.hashes
            }
            None => post_hashes(&unread(json), json),
        };
        assert_eq!(hashes, PostHashes { content, state }, "{json}");
    }
}

/// A post of JSON that no reader takes for one.
fn unread(json: &str) -> Post {
    Post {
        id: "1".into(),
        uri: None,
        url: None,
        created_at_ms: None,
        edited_at_ms: None,
        visibility: Visibility::Public,
        author: Author {
            id: "".into(),
            acct: String::new(),
            display_name: String::new(),
            url: None,
            raw: "{}".to_owned(),
        },
        boost_of: None,
        references: References::default(),
        counts: Counts::default(),
        hashes: PostHashes::default(),
        raw: json.to_owned(),
        viewer: None,
    }
}
