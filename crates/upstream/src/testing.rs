//! What tests of answers share.

use driftline_core::{
    answer::{Failure, FailureKind},
    post::Post,
    upstream_id::UpstreamId,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The JSON that a post keeps.
pub(crate) fn raw(post: &Post) -> Value {
    serde_json::from_str(&post.raw).expect("JSON")
}

/// What reads the stored JSON of a tweet reads Mastodon's statuses. To it the IDs in the tweet itself
/// are references too, which nobody is shown.
pub(crate) fn check_reads_back(posts: Vec<Post>) {
    for post in posts {
        let back = crate::parse::post(post.raw.as_bytes()).expect("a status");
        let are_in = |ids: &[UpstreamId], all: &[UpstreamId]| ids.iter().all(|id| all.contains(id));
        assert!(are_in(&post.references.posts, &back.references.posts));
        assert!(are_in(&post.references.accounts, &back.references.accounts));
        let references = post.references.clone();
        assert_eq!(Post { references, ..back }, post);
    }
}

/// Each body is refused with its kind.
pub(crate) fn check_kinds<T: std::fmt::Debug>(
    read: impl Fn(&[u8]) -> Result<T, Failure>,
    bodies: impl IntoIterator<Item = (impl ToString, FailureKind)>,
) {
    for (body, kind) in bodies {
        let body = body.to_string();
        let failure = read(body.as_bytes()).expect_err(&body);
        assert_eq!(failure.kind, kind, "{body}: {failure}");
    }
}

/// An answer that no honest server sends: the answer with one value replaced by another.
pub(crate) fn changed(answer: &Value) -> impl Strategy<Value = Value> + use<> {
    let answer = answer.clone();
    (0..count(&answer), values()).prop_map(move |(at, value)| {
        let mut answer = answer.clone();
        replace(&mut answer, &mut { at }, &value);
        answer
    })
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!([])),
        Just(json!({})),
        Just(json!([{}, [-1, 99]])),
        any::<String>().prop_map(|text| json!({ "id": text, "media_key": [text] })),
    ]
}

fn count(json: &Value) -> usize {
    1 + match json {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value that comes `at`-th on a walk through the JSON.
fn replace(json: &mut Value, at: &mut usize, value: &Value) {
    if *at == 0 {
        *json = value.clone();
        *at = usize::MAX;
        return;
    }
    *at -= 1;
    match json {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, value)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| replace(member, at, value)),
        _ => {}
    }
}
