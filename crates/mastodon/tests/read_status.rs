//! Statuses as servers send them.

use driftline_core::{
    post::{Author, Counts, Post, References, Visibility},
    post_text::PostText,
    predicate::{Condition, PostTrait},
};
use driftline_mastodon::{StatusError, TEXT_EXTRACTION, post_hashes, read_status, text_of_json};

const STATUS: &str = r#"{"id":"115045591662261686","created_at":"2025-08-17T18:46:55.745Z","edited_at":"2025-08-17T18:47:00Z","visibility":"unlisted","uri":"https://a.example/users/x/statuses/1","url":"https://a.example/@x/1","replies_count":1,"reblogs_count":2,"favourites_count":3,"content":"<p>caf\u00e9</p>","reblog":null,"unknown":{"kept":[1.0,true,null]},"account":{"id":"7","acct":"x","display_name":"Ex \u2764","url":"https://a.example/@x"}}"#;

fn read(status: &str) -> Result<Post, StatusError> {
    read_status(serde_json::from_str(status).expect("JSON"))
}

fn one(status: &str) -> Post {
    read(status).expect("a post")
}

#[test]
fn every_field_is_read_and_the_json_kept() {
    let post = one(STATUS);
    assert_eq!(
        post,
        Post {
            id: "115045591662261686".into(),
            uri: Some("https://a.example/users/x/statuses/1".into()),
            url: Some("https://a.example/@x/1".into()),
            created_at_ms: Some(1_755_456_415_745),
            edited_at_ms: Some(1_755_456_420_000),
            visibility: Visibility::Unlisted,
            author: Author {
                id: "7".into(),
                acct: "x".into(),
                display_name: "Ex ❤".into(),
                url: Some("https://a.example/@x".into()),
                uri: None,
                raw: r#"{"id":"7","acct":"x","display_name":"Ex \u2764","url":"https://a.example/@x"}"#.into(),
            },
            boost_of: None,
            reply_to: None,
            references: References::default(),
            counts: Counts { replies: Some(1), boosts: Some(2), favourites: Some(3), ..Counts::default() },
            hashes: post.hashes,
            text: PostText::from_entries(TEXT_EXTRACTION, ["café"]).with_labels([Condition::Is(PostTrait::Edited)]),
            raw: STATUS.into(),
            viewer: None,
        }
    );
}

#[test]
fn a_boost_holds_the_boosted_post() {
    let boost = one(&format!(
        r#"{{"id":"9","reblog":{STATUS},"account":{{"id":"8"}}}}"#
    ));
    let boosted = boost.boost_of.expect("a boost");
    let is_boost = [Condition::Is(PostTrait::Boost)];
    assert_eq!(boost.text, boosted.text.clone().with_labels(is_boost));
    assert_eq!(*boosted, one(STATUS));
    assert_eq!(boost.author.id, "8".into());
}

#[test]
fn the_text_of_stored_json_is_the_one_that_was_read() {
    let own = r#""content":"<p>own</p>","spoiler_text":"w\u001fn\u0000","poll":{"options":[{"title":"a & b"}]}"#;
    let media = r#""media_attachments":[{"description":"a\u001fsofa"},{"description":""},7]"#;
    for (json, joined) in [
        (
            format!(r#"{{"id":"1",{own},{media}}}"#),
            "w n\u{fffd}\u{1f}own\u{1f}a & b\u{1f}a sofa",
        ),
        // The members of a boost itself are not shown.
        (format!(r#"{{"id":"1",{own},"reblog":{STATUS}}}"#), "café"),
        (
            format!(r#"{{"id":"1",{own},"reblog":{{"id":"2","reblog":{STATUS}}}}}"#),
            "",
        ),
        (
            r#"{"id":"1","content":"<p>a<p>b &amp;lt; c&#0;<script>x</script>&nbsp;","poll":[]}"#
                .to_owned(),
            "a\n\nb &lt; c\u{fffd}",
        ),
        (
            r#"{"id":"1","content":"a","content":"<b>b</b>","reblog":false,"favourited":true}"#
                .to_owned(),
            "b",
        ),
    ] {
        let post = one(&json);
        assert_eq!(post.text.joined, joined, "{json}");
        assert_eq!(text_of_json(&post.raw), post.text, "{json}");
    }
    assert_eq!(text_of_json("[]").joined, "");
}

#[test]
fn boosts_without_end_do_no_harm() {
    let nested = |depth| {
        let (boost, end) = (r#"{"id":"1","reblog":"#.repeat(depth), "}".repeat(depth));
        format!("{boost}null{end}")
    };
    let boosted = one(&nested(100)).boost_of.expect("one level");
    assert!(boosted.boost_of.is_none());
    assert!(matches!(
        read(&nested(200_000)),
        Err(StatusError::TooDeep(_))
    ));
}

#[test]
fn what_is_missing_null_or_odd_is_left_out() {
    let bare = one(r#"{"id":"1"}"#);
    let nulls = one(
        r#"{"id":"1","uri":null,"url":null,"created_at":null,"edited_at":null,"visibility":null,"account":null,"reblog":null,"replies_count":null}"#,
    );
    let odd = one(
        r#"{"id":"1","uri":1,"url":{},"created_at":17,"edited_at":"yesterday","visibility":[],"account":"x","reblog":false,"replies_count":"3","reblogs_count":1.5,"favourites_count":99999999999999999999}"#,
    );
    for post in [&bare, &nulls, &odd] {
        assert_eq!(
            Post {
                raw: String::new(),
                ..post.clone()
            },
            Post {
                visibility: Visibility::Direct,
                hashes: post.hashes,
                text: PostText::from_entries(TEXT_EXTRACTION, []),
                ..Post::bare("1", "", "")
            }
        );
    }
}

#[test]
fn broken_text_does_not_break_a_post() {
    let post = one(
        r#"{"id":"1","uri":"a\u0000b","url":"\ud800","account":{"id":"2","display_name":"\ud800"}}"#,
    );
    assert_eq!(post.uri.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(post.url, None);
    assert_eq!(post.author.display_name, "");
}

#[test]
fn times_in_the_forms_that_servers_write() {
    for (text, ms) in [
        ("2025-08-17T18:46:55.745Z", Some(1_755_456_415_745)),
        ("2025-08-17T18:46:55.745999Z", Some(1_755_456_415_745)),
        ("2025-08-17T20:46:55+02:00", Some(1_755_456_415_000)),
        ("2025-08-17T18:46:55", Some(1_755_456_415_000)),
        ("2025-08-17 18:46:55", Some(1_755_456_415_000)),
        ("2025-08-17", Some(1_755_388_800_000)),
        ("1969-12-31T23:59:59Z", Some(-1000)),
        ("2025-02-30T00:00:00Z", None),
        ("1755456415", None),
        ("", None),
    ] {
        assert_eq!(
            one(&format!(r#"{{"id":"1","created_at":"{text}"}}"#)).created_at_ms,
            ms,
            "{text}"
        );
    }
}

#[test]
fn numbers_as_ids_are_kept_digit_by_digit() {
    for digits in [
        "0",
        "9007199254740993",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
    ] {
        assert_eq!(one(&format!(r#"{{"id":{digits}}}"#)).id, digits.into());
    }
    assert_eq!(one(r#"{"id":"01H\u0041"}"#).id, "01HA".into());
}

#[test]
fn of_repeated_members_the_last_counts() {
    let post = one(
        r#"{"id":"1", "id":"2","url":"a","account":{"id":"5","id":"6"},"reblog":{"id":"3","id" : "4"},"url":null}"#,
    );
    assert_eq!((&post.id, &post.url), (&"2".into(), &None));
    assert_eq!(
        post.raw, r#"{"id":"2","account":{"id":"6"},"reblog":{"id" : "4"},"url":null}"#,
        "the kept text has each once"
    );
    assert_eq!(post.author.raw, r#"{"id":"6"}"#);
    assert_eq!(post.boost_of.expect("a boost").raw, r#"{"id" : "4"}"#);
}

#[test]
fn a_post_that_readers_of_json_would_stop_at_is_refused() {
    let nested = |depth| {
        format!(
            r#"{{"id":"1","x":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    one(&nested(99));
    for depth in [100, 200_000] {
        assert!(matches!(read(&nested(depth)), Err(StatusError::TooDeep(_))));
    }
}

#[test]
fn what_concerns_the_reader_is_kept_apart_and_changes_no_hash() {
    let json = r#"{"id":"1","favourited":true,"content":"a","poll":{"voted":true,"options":[]},"reblog":{"id":"2","muted":true}}"#;
    let post = one(json);
    assert_eq!(
        post.raw,
        r#"{"id":"1","content":"a","poll":{"options":[]},"reblog":{"id":"2"}}"#
    );
    assert_eq!(
        post.viewer.as_deref(),
        Some(r#"{"favourited":true,"poll":{"voted":true},"reblog":{"muted":true}}"#)
    );
    let whole = Post {
        raw: json.to_owned(),
        ..post.clone()
    };
    assert_eq!(post.hashes, post_hashes(&whole));
    let boosted = post.boost_of.expect("a boost");
    assert_eq!(boosted.raw, r#"{"id":"2"}"#);
}

#[test]
fn ids_have_a_longest_length() {
    let (long, longest) = ("9".repeat(256), "9".repeat(255));
    assert!(read(&format!(r#"{{"id":"{longest}"}}"#)).is_ok());
    for json in [
        format!(r#"{{"id":"{long}"}}"#),
        format!(r#"{{"id":{long}}}"#),
        format!(r#"{{"id":"1","reblog":{{"id":"{long}"}}}}"#),
    ] {
        assert!(matches!(read(&json), Err(StatusError::Id { .. })), "{json}");
    }
    let author = |id: &str| one(&format!(r#"{{"id":"1","account":{{"id":"{id}"}}}}"#)).author;
    assert_eq!(author(&longest).id.as_str(), longest);
    assert_eq!(author(&long).id.as_str(), "");
}

#[test]
fn what_is_no_status_is_refused() {
    for json in ["[]", "null", "7", "\"a\""] {
        assert!(matches!(read(json), Err(StatusError::Json(_))), "{json}");
    }
    for (json, expected) in [
        ("{}", None),
        (r#"{"id":null}"#, None),
        (r#"{"id":""}"#, Some("\"\"")),
        (r#"{"id":1.0}"#, Some("1.0")),
        (r#"{"id":"1","reblog":{"id":[1]}}"#, Some("[1]")),
    ] {
        match read(json) {
            Err(StatusError::Id { found }) => assert_eq!(found.as_deref(), expected, "{json}"),
            other => panic!("{json}: {other:?}"),
        }
    }
}
