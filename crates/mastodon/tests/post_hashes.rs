//! Hashes are of what JSON means, and stay what they are: see the golden file.

use std::{env, fs};

use driftline_core::post::{Post, PostHashes};
use driftline_mastodon::{post_hashes, read_status};

const GOLDEN: &str = include_str!("golden/post_hashes.txt");

#[test]
fn hashes_stay_as_they_are_stored() {
    let mut now = String::new();
    for line in GOLDEN.lines() {
        let json = line.splitn(3, ' ').nth(2).expect("JSON");
        let PostHashes { content, state } = hashes(json);
        now += &format!("{content} {state} {json}\n");
    }
    if env::var_os("DRIFTLINE_WRITE_GOLDEN").is_some() {
        fs::write("tests/golden/post_hashes.txt", &now).expect("the golden file");
    }
    for (now, then) in now.lines().zip(GOLDEN.lines()) {
        assert_eq!(now, then);
    }
}

#[test]
fn other_spellings_of_the_same_are_no_edit() {
    for (json, other) in [
        // As timelines and look-ups of one server write it.
        (
            r#"{"id":"1","content":"<p>a &amp; b</p>"}"#,
            r#"{"id":"1","content":"\u003cp\u003ea \u0026amp; b\u003c\/p\u003e"}"#,
        ),
        (
            r#"{"id":"1","content":"é猫😀","spoiler_text":""}"#,
            r#"{"spoiler_text":"","content":"\u00E9\u732b\uD83D\ude00","id":"1"}"#,
        ),
        (
            r#"{"id":"1","sensitive":null,"poll":null,"media_attachments":[],"reblog":null}"#,
            r#"{"id":"1"}"#,
        ),
        (
            r#"{"id":"1","edited_at":"2025-08-17T18:47:00Z"}"#,
            r#"{"id":"1","edited_at":"2025-08-17T18:47:00.000000+00:00"}"#,
        ),
        (
            r#"{"id":"1","media_attachments":[{"id":5,"description":null},{"id":1e400}]}"#,
            r#"{"id":"1","media_attachments":[ {"description":null,"meta":{"x":1},"id":5.0}, {"id":10E399} ]}"#,
        ),
        (
            r#"{"id":"1","content":{"a":1.50,"b":[true,null],"c":null}}"#,
            r#"{"id":"1","content":{"b":[true,null],"\u0061":15e-1}}"#,
        ),
        (
            r#"{"id":"1","content":"first","content":"last"}"#,
            r#"{"id":"1","content":"last"}"#,
        ),
        (
            r#"{"id":"9","reblog":{"id":"8","content":"<b>"},"poll":{"options":[{"title":"x"}]}}"#,
            r#"{"id":"9","poll":{"voted":true,"options":[{"title":"\u0078"}]},"reblog":{"content":"\u003cb>","id":"8"}}"#,
        ),
        (
            r#"{"id":"1","language":"ja","tags":[{"name":"Pets","url":"https://a.example/tags/pets"},{"name":"cats"}]}"#,
            r#"{"id":"1","language":"ja","tags":[{"name":"cats"},{"name":"pets"}]}"#,
        ),
        // It is a reply still, when the other post is deleted.
        (
            r#"{"id":"1","in_reply_to_id":"7","in_reply_to_account_id":"8"}"#,
            r#"{"id":"1","in_reply_to_id":null,"in_reply_to_account_id":"8"}"#,
        ),
    ] {
        assert_eq!(hashes(json), hashes(other), "{json} {other}");
    }
}

/// Minutes, if each member is looked for among all the others.
#[test]
fn many_members_are_hashed_at_once() {
    let members = (0..150_000).map(|n| format!(r#""k{n:06}":{n},"k":{}"#, n % 7));
    let members: Vec<_> = members.chain([r#""k":null"#.to_owned()]).collect();
    let json = format!(r#"{{"id":"1","content":{{{}}}}}"#, members.join(","));
    let other = (0..150_000).rev().map(|n| format!(r#""k{n:06}":{n}"#));
    let other: Vec<_> = other.collect();
    let other = format!(r#"{{"id":"1","content":{{{}}}}}"#, other.join(","));
    assert_eq!(hashes(&json), hashes(&other));
}

#[test]
fn what_means_another_thing_is_an_edit() {
    let posts = [
        r#"{"id":"1"}"#,
        r#"{"id":"1","content":""}"#,
        r#"{"id":"1","spoiler_text":""}"#,
        r#"{"id":"1","content":"a"}"#,
        r#"{"id":"1","content":"A"}"#,
        r#"{"id":"1","content":" a"}"#,
        // Composed and decomposed characters are different texts.
        r#"{"id":"1","content":"\u00e9"}"#,
        r#"{"id":"1","content":"e\u0301"}"#,
        r#"{"id":"1","content":"\ud800"}"#,
        r#"{"id":"1","content":"\udc00"}"#,
        r#"{"id":"1","content":"1"}"#,
        r#"{"id":"1","content":1}"#,
        r#"{"id":"1","content":18446744073709551616}"#,
        r#"{"id":"1","content":18446744073709551617}"#,
        r#"{"id":"1","content":0.9726443768996961}"#,
        r#"{"id":"1","content":0.97264437689969611}"#,
        r#"{"id":"1","content":1e400}"#,
        r#"{"id":"1","content":1e401}"#,
        r#"{"id":"1","content":true}"#,
        r#"{"id":"1","content":[]}"#,
        r#"{"id":"1","content":{}}"#,
        r#"{"id":"1","content":["a","b"]}"#,
        r#"{"id":"1","content":["b","a"]}"#,
        r#"{"id":"1","content":[["a"],"b"]}"#,
        r#"{"id":"1","sensitive":true}"#,
        r#"{"id":"1","sensitive":false}"#,
        r#"{"id":"1","visibility":"public"}"#,
        r#"{"id":"1","edited_at":"2025-08-17T18:47:00Z"}"#,
        r#"{"id":"1","edited_at":"2025-08-17T18:47:01Z"}"#,
        r#"{"id":"1","media_attachments":[{"id":"5"}]}"#,
        r#"{"id":"1","media_attachments":[{"id":"5","description":""}]}"#,
        r#"{"id":"1","media_attachments":[{"id":"5"},{"id":"6"}]}"#,
        r#"{"id":"1","media_attachments":[{"id":"6"},{"id":"5"}]}"#,
        r#"{"id":"1","poll":{"options":[{"title":"x"}]}}"#,
        r#"{"id":"1","poll":{"options":[{"title":"y"}]}}"#,
        r#"{"id":"1","reblog":{"id":"2","content":"a"}}"#,
        r#"{"id":"1","reblog":{"id":"2","content":"b"}}"#,
        r#"{"id":"1","reblog":{"id":"2","content":"b","language":"en"}}"#,
        r#"{"id":"1","language":"en"}"#,
        r#"{"id":"1","language":"ja"}"#,
        r#"{"id":"1","tags":[{"name":"cats"}]}"#,
        r#"{"id":"1","tags":[{"name":"dogs"}]}"#,
        r#"{"id":"1","tags":[{"name":"cats"},{"name":"dogs"}]}"#,
        r#"{"id":"1","in_reply_to_id":"7"}"#,
    ];
    for (at, one) in posts.iter().enumerate() {
        for other in &posts[at + 1..] {
            assert_ne!(hashes(one).content, hashes(other).content, "{one} {other}");
        }
    }
}

#[test]
fn counts_votes_and_previews_are_states_of_one_version() {
    let polls = [
        r#"{"id":"1","content":"a"}"#,
        r#"{"id":"1","content":"a","favourites_count":1}"#,
        r#"{"id":"1","content":"a","replies_count":1}"#,
        r#"{"id":"1","content":"a","x":{"public_metrics":{"impression_count":7}}}"#,
        r#"{"id":"1","content":"a","card":{"url":"https://b.example/"}}"#,
        r#"{"id":"1","content":"a","mentions":[{"acct":"ann"}]}"#,
    ];
    for (at, one) in polls.iter().enumerate() {
        for other in &polls[at + 1..] {
            assert_eq!(hashes(one).content, hashes(other).content, "{one} {other}");
            assert_ne!(hashes(one).state, hashes(other).state, "{one} {other}");
        }
    }
    let voted = |votes| {
        let json = format!(
            r#"{{"id":"1","poll":{{"options":[{{"title":"x","votes_count":{votes}}}],"votes_count":{votes}}}}}"#
        );
        hashes(&json)
    };
    assert_eq!(voted("1").content, voted("2").content);
    assert_ne!(voted("1").state, voted("2").state);
    assert_eq!(voted("1"), voted("1.0"));
}

/// The hashes of a post as an answer shows it; those of its stored JSON are the same.
fn hashes(json: &str) -> PostHashes {
    let read = |json| read_status(serde_json::from_str(json).ok()?).ok();
    let Some(post) = read(json) else {
        return post_hashes(&unread(json));
    };
    let stored = read(&post.raw).map(|post| post.hashes);
    assert_eq!(post_hashes(&post), post.hashes, "{json}");
    assert_eq!(stored, Some(post.hashes), "{json}");
    post.hashes
}

/// A post of JSON that no reader takes for one.
fn unread(json: &str) -> Post {
    Post::bare("1", "", json)
}
