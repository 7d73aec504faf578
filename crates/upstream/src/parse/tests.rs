use driftline_core::answer::FailureKind;
use proptest::prelude::*;

use super::*;
use crate::testing::check_kinds;

const STATUS: &str = r#"{"id":"115045591662261686","created_at":"2025-08-17T18:46:55.745Z","edited_at":"2025-08-17T18:47:00Z","visibility":"unlisted","uri":"https://a.example/users/x/statuses/1","url":"https://a.example/@x/1","replies_count":1,"reblogs_count":2,"favourites_count":3,"content":"<p>caf\u00e9</p>","reblog":null,"unknown":{"kept":[1.0,true,null]},"account":{"id":"7","acct":"x","display_name":"Ex \u2764","url":"https://a.example/@x"}}"#;

fn home(body: &str) -> Result<Items, Failure> {
    page(body.as_bytes(), &Timeline::Home)
}

fn one(status: &str) -> Post {
    let items = home(&format!("[{status}]")).expect("a page");
    assert_eq!(items.passed, []);
    let mut posts = items.posts().expect("a post");
    assert_eq!(posts.len(), 1);
    posts.remove(0)
}

fn kind(body: &str) -> FailureKind {
    home(body).expect_err(body).kind
}

#[test]
fn unusable_ids_are_reported() {
    for bad in [
        "null",
        "\"\"",
        "-1",
        "1.0",
        "1e3",
        "true",
        "{}",
        "[1]",
        r#""\ud800""#,
    ] {
        // Several of these alone are no page.
        let many = vec![format!(r#"{{"id":{bad}}}"#); 6].join(",");
        let failure = home(&format!("[{many}]")).expect_err(bad);
        assert_eq!(failure.kind, FailureKind::BadId, "{bad}");
        assert!(failure.message.contains("item 1"), "{}", failure.message);
        let body = format!(r#"[{{"id":"2"}},{{"id":{bad}}},{{"id":"1"}}]"#);
        let Items {
            listed,
            passed,
            unreadable,
        } = home(&body).expect("a page");
        assert_eq!(
            (listed.len(), passed.len(), unreadable.len()),
            (2, 0, 1),
            "{bad}"
        );
        assert!(unreadable[0].reason.contains("no usable ID"), "{bad}");
    }
    let alone = home("[{}, null]").expect("a page of two");
    assert_eq!((alone.listed.len(), alone.passed.len()), (0, 0));
    assert_eq!(alone.unreadable.len(), 2);
    assert_eq!(kind(r#"[{"error":"not found"}]"#), FailureKind::BadId);
}

/// A post that cannot be read, of each kind that leaves its neighbours whole.
const BROKEN: &[(&[u8], &str)] = &[
    (br#"{"id":"5","content":}"#, "expected value"),
    (b"{\"id\":\"5\",\"content\":\"\xff\xfe\"}", "utf-8"),
    (b"{\"id\":\"5\",\"content\":\"a\nb\"}", "control character"),
    (b"{\"id\":\"5\",\"content\":\"a\0b\"}", "control character"),
    (br#"{"id":5,"content":"a\x"}"#, "escape"),
    (br#"{"id":"5","n":+1}"#, "expected value"),
    (br#"{"id":"5","reblog":{}}"#, "no usable ID"),
    (br#"{"id":"5","reblog":{"id":[1]}}"#, "no usable ID"),
    (br#"{"id":"5" "content":"a"}"#, "expected"),
];

#[test]
fn a_post_that_cannot_be_read_costs_none_of_its_page() {
    let deep = format!(
        r#"{{"id":"5","x":{}{}}}"#,
        "[".repeat(9_000),
        "]".repeat(9_000)
    );
    let broken = BROKEN.iter().copied();
    for (bytes, reason) in broken.chain([(deep.as_bytes(), "levels deep")]) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]);
        for (before, after) in [("", ""), (r#"{"id":"7"},"#, r#", {"id":"3"}"#)] {
            let body = [b"[", before.as_bytes(), bytes, after.as_bytes(), b"]"].concat();
            let items = page(&body, &Timeline::Home).expect(&shown);
            assert_eq!(
                items.listed.len(),
                usize::from(!before.is_empty()) * 2,
                "{shown}"
            );
            let [unreadable] = &items.unreadable[..] else {
                panic!("{shown}: {:?}", items.unreadable);
            };
            assert_eq!(unreadable.bytes, bytes);
            assert!(
                unreadable.reason.contains(reason),
                "{shown}: {}",
                unreadable.reason
            );
            // Its neighbours meet at it.
            assert_eq!(unreadable.position, Some("5".into()), "{shown}");
            assert_eq!(items.passed, ["5".into()], "{shown}");
            assert!(read_item(bytes, &Timeline::Home).is_err());
            assert_eq!(
                items.posts().expect_err("not all").kind,
                FailureKind::BadJson
            );
        }
    }
}

#[test]
fn one_without_a_position_lies_between_its_neighbours() {
    let body =
        r#"[7, {"id":"9"}, {"x":1}, [2], {"id":"8","reblog":{}}, {"id":[]}, {"id":"6"}, null]"#;
    let items = home(body).expect("a page");
    assert_eq!(
        (items.listed.len(), &items.passed[..]),
        (2, &["8".into()][..])
    );
    let id = |id: &Option<UpstreamId>| id.as_ref().map(ToString::to_string).unwrap_or_default();
    let between: Vec<_> = items
        .unreadable
        .iter()
        .map(|item| {
            let bytes = String::from_utf8_lossy(&item.bytes);
            format!("{} > {bytes} > {}", id(&item.above), id(&item.below))
        })
        .collect();
    assert_eq!(
        between,
        [
            " > 7 > 9",
            r#"9 > {"x":1} > 8"#,
            "9 > [2] > 8",
            r#"9 > {"id":"8","reblog":{}} > 6"#,
            r#"8 > {"id":[]} > 6"#,
            "6 > null > ",
        ]
    );
}

#[test]
fn each_wrong_body_has_its_kind() {
    let wrong = [
        ("", FailureKind::Truncated),
        (" \r\n", FailureKind::Truncated),
        ("[", FailureKind::Truncated),
        (r#"[{"id":"1"},"#, FailureKind::Truncated),
        (r#"[{"id":"1"}"#, FailureKind::Truncated),
        (r#"{"error":"x"#, FailureKind::Truncated),
        ("<!DOCTYPE html><html>", FailureKind::NotJson),
        ("  <html>", FailureKind::NotJson),
        ("Bad Gateway", FailureKind::NotJson),
        ("ok", FailureKind::NotJson),
        (r#"{"error":"no"}"#, FailureKind::ErrorBody),
        (r#"{"errors":[{"code":32}]}"#, FailureKind::ErrorBody),
        (r#"{"error":null,"x":1}"#, FailureKind::BadJson),
        (r#"{"id":"1"}"#, FailureKind::BadJson),
        ("{}", FailureKind::BadJson),
        ("null", FailureKind::BadJson),
        ("\"text\"", FailureKind::BadJson),
        ("12", FailureKind::BadJson),
        ("{x}", FailureKind::BadJson),
        ("[1]", FailureKind::BadJson),
        ("[null,1]", FailureKind::BadJson),
        ("[[]]", FailureKind::BadJson),
        (r#"[{"id":"1"},]"#, FailureKind::BadJson),
        (r#"[{"id":"1"}]]"#, FailureKind::BadJson),
        (r#"[{"id":"1"} {"id":"2"}]"#, FailureKind::BadJson),
    ];
    check_kinds(|body| page(body, &Timeline::Home), wrong);
}

#[test]
fn messages_say_where() {
    let message = |body| home(body).expect_err("a failure").message;
    assert!(message("[{\"id\":\"1\"}\n  x]").contains("line 2 column 3"));
    assert!(message("<title>Log in</title>").contains("HTML page (“Log in”)"));
    assert!(
        message(r#"{"error":"The access token was revoked"}"#)
            .contains("“The access token was revoked”")
    );
    assert!(message("{}").contains("not a list of posts (“{}”)"));
}

#[test]
fn no_cut_body_is_taken_for_a_page() {
    let body = format!("[{},{STATUS}]", STATUS.replace("1.0", "-1.5e+10"));
    for cut in 0..body.len() {
        let failure = home(&body[..cut]).expect_err("cut");
        assert_eq!(failure.kind, FailureKind::Truncated, "{}", &body[..cut]);
    }
    assert_eq!(home(&body).map(|items| items.listed.len()), Ok(2));
}

#[test]
fn an_empty_page_is_a_page() {
    for body in ["[]", " [ ] \n", "\u{feff}[]"] {
        assert_eq!(home(body), Ok(Items::default()));
    }
}

#[test]
fn a_mention_has_the_position_of_its_notification() {
    let body = format!(
        r#"[{{"id":"30","type":"mention","status":{STATUS}}},{{"id":29,"type":"favourite","status":{STATUS}}},{{"id":"28","type":"mention","status":null}},{{"id":"27","type":"follow"}},{{"id":"26","status":{STATUS}}}]"#
    );
    let Items { listed, passed, .. } = page(body.as_bytes(), &Timeline::Mentions).expect("a page");
    let positions: Vec<_> = listed.iter().map(|l| l.position.as_str()).collect();
    assert_eq!(positions, ["30", "26"]);
    let passed: Vec<_> = passed.iter().map(UpstreamId::as_str).collect();
    assert_eq!(
        passed,
        ["29", "28", "27"],
        "they show how far the page reaches"
    );
    assert_eq!(listed[0].post, one(STATUS));
    let broken = r#"[{"id":"1","type":"mention","status":{}}]"#;
    let Items {
        unreadable, passed, ..
    } = page(broken.as_bytes(), &Timeline::Mentions).expect("a page");
    assert_eq!((unreadable.len(), &passed[..]), (1, &["1".into()][..]));
    let wrong = [
        (r#"[{"type":"mention"},7]"#, FailureKind::BadId),
        ("[7]", FailureKind::BadJson),
    ];
    check_kinds(|body| page(body, &Timeline::Mentions), wrong);
}

#[test]
fn one_post_alone() {
    let wrong = [
        ("", FailureKind::Truncated),
        ("[]", FailureKind::BadJson),
        (r#"{"id":"1""#, FailureKind::Truncated),
        (r#"{"error":"Record not found"}"#, FailureKind::ErrorBody),
        ("{}", FailureKind::BadId),
        ("<html>", FailureKind::NotJson),
        (r#"{"id":"1"}{}"#, FailureKind::BadJson),
    ];
    check_kinds(super::post, wrong);
}

proptest! {
    #[test]
    fn no_body_breaks_it(body: Vec<u8>) {
        let _ = page(&body, &Timeline::Home);
        let _ = page(&[b"[", &body[..], b"]"].concat(), &Timeline::Mentions);
        let _ = position_of(&body);
        let _ = super::post(&body);
    }

    #[test]
    fn raw_is_the_very_text(texts in proptest::collection::vec("\\PC{0,20}", 0..5)) {
        let statuses: Vec<String> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| serde_json::json!({"id": n.to_string(), "uri": text, "x": text}).to_string())
            .collect();
        let Items { listed, .. } = home(&format!("[ {} ]", statuses.join(" ,\n"))).expect("a page");
        for ((listed, raw), text) in listed.iter().zip(&statuses).zip(&texts) {
            prop_assert_eq!(&listed.post.raw, raw);
            prop_assert_eq!(listed.post.uri.as_ref(), Some(text));
        }
        prop_assert_eq!(listed.len(), texts.len());
    }
}

#[test]
fn a_thread_is_read_without_what_is_no_post() {
    let post = |id: &str| {
        format!(
            r#"{{"id":"{id}","created_at":"2026-01-01T00:00:00.000Z","visibility":"public","content":"a","account":{{"id":"1","acct":"a"}}}}"#
        )
    };
    let body = format!(
        r#"{{"ancestors":[{},7],"descendants":[{},{{}},{}],"more":1}}"#,
        post("1"),
        post("3"),
        post("4"),
    );
    let thread = thread(body.as_bytes()).unwrap();
    let ids = |posts: &[Post]| -> Vec<String> {
        posts
            .iter()
            .map(|post| post.id.as_str().to_owned())
            .collect()
    };
    assert_eq!(ids(&thread.ancestors), ["1"]);
    assert_eq!(ids(&thread.descendants), ["3", "4"]);
    assert_eq!(thread.unreadable, 2);
    for no_thread in [
        "[]",
        "{}",
        r#"{"ancestors":[]}"#,
        r#"{"ancestors":[],"descendants":{}}"#,
        "{",
    ] {
        assert!(super::thread(no_thread.as_bytes()).is_err(), "{no_thread}");
    }
}

#[test]
fn a_history_is_read_version_by_version() {
    let body = r#"[
        {"content":"a","created_at":"2026-01-01T00:00:01Z","poll":{"voted":true,"options":[]}}, null, 7,
        {"content":"no time"}, {"content":"b","content":"c","created_at":"2026-01-01T00:00:02.500Z"},
        {"content":"now","created_at":"2026-01-01T00:00:03Z"}]"#;
    let versions = history(body.as_bytes()).expect("a list");
    let read: Vec<_> = versions
        .iter()
        .map(|of| (&*of.raw, of.created_at_ms, of.ended_at_ms))
        .collect();
    let second = 1_767_225_600_000;
    assert_eq!(
        read,
        [
            (
                r#"{"content":"a","created_at":"2026-01-01T00:00:01Z","poll":{"options":[]}}"#,
                second + 1_000,
                second + 2_500
            ),
            (
                r#"{"content":"c","created_at":"2026-01-01T00:00:02.500Z"}"#,
                second + 2_500,
                second + 3_000
            ),
        ]
    );
    assert_eq!(history(b"[]").expect("a list"), []);
    for (body, kind) in [
        (r#"{"error":"no"}"#, FailureKind::ErrorBody),
        ("<html>", FailureKind::NotJson),
        ("[{", FailureKind::Truncated),
    ] {
        assert_eq!(
            history(body.as_bytes()).expect_err(body).kind,
            kind,
            "{body}"
        );
    }
}
