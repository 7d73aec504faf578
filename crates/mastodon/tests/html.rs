//! HTML in what is passed on: which members are cleaned, and which stay as they came.

use driftline_core::{api::Api, post::Visibility};
use driftline_mastodon::{Copier, RawObject, StatusHead, Template};
use serde_json::{Value, json};

fn copied(copy: impl FnOnce(&Copier<'_>, &mut Template)) -> String {
    let copier = Copier {
        origin: "https://own.example",
        api: Api::Mastodon,
        own_host: None,
    };
    let (mut template, mut out) = (Template::default(), Vec::new());
    copy(&copier, &mut template);
    template.fill(&mut out, |_, _| Some(1), |_| None, |_, _| None);
    String::from_utf8(out).expect("UTF-8")
}

fn status_json(status: &str) -> String {
    let members = RawObject::parse(status).expect("an object");
    let head = StatusHead {
        id: 1,
        public_id: 1,
        account: Some(2),
        created_at_ms: 0,
        edited_at_ms: None,
        visibility: Visibility::Public,
        upstream_id: "7",
        uri: None,
        url: None,
    };
    copied(|copier, out| copier.status(out, &members, &head))
}

fn status(status: &Value) -> Value {
    serde_json::from_str(&status_json(&status.to_string())).expect("JSON")
}

const EVIL: &str = "<p onclick=\"x\">a<script>alert(1)</script></p>";
const CLEAN: &str = "<p>a</p>";

/// A post with HTML in each of its members, as servers have it.
fn post(reblog: &Value) -> Value {
    let account = json!({
        "id": "1", "acct": "a", "display_name": EVIL, "note": EVIL,
        "fields": [{ "name": EVIL, "value": EVIL, "verified_at": null }, 7],
        "moved": { "id": "2", "acct": "b", "note": EVIL },
    });
    json!({
        "id": "7", "visibility": "public", "content": EVIL, "spoiler_text": EVIL,
        "account": account,
        "card": { "title": EVIL, "html": "<iframe src=\"https://v.example\" onload=\"x\"></iframe><script></script>" },
        "pleroma": { "content": { "text/plain": EVIL, "text/html": EVIL } },
        "akkoma": { "source": { "content": EVIL, "mediaType": "text/markdown" } },
        "text": EVIL,
        "poll": { "options": [{ "title": EVIL }] },
        "quote": { "state": "accepted", "quoted_status": {
            "id": "8", "visibility": "public", "content": EVIL, "account": { "id": "3", "acct": "c", "note": EVIL },
        } },
        "unknown": { "deep": [{ "content": EVIL, "bio_html": EVIL, "note": [EVIL] }] },
        "reblog": reblog,
    })
}

fn check(shown: &Value) {
    for (path, expected) in [
        ("/content", CLEAN),
        ("/account/note", CLEAN),
        ("/account/fields/0/value", CLEAN),
        ("/account/moved/note", CLEAN),
        ("/quote/quoted_status/content", CLEAN),
        ("/quote/quoted_status/account/note", CLEAN),
        ("/pleroma/content/text~1html", CLEAN),
        ("/unknown/deep/0/content", CLEAN),
        ("/unknown/deep/0/bio_html", CLEAN),
        ("/unknown/deep/0/note/0", CLEAN),
        (
            "/card/html",
            "<iframe src=\"https://v.example\" sandbox=\"allow-scripts allow-same-origin allow-popups allow-popups-to-escape-sandbox allow-forms\"></iframe>",
        ),
        // Plain text, which clients escape.
        ("/spoiler_text", EVIL),
        ("/account/display_name", EVIL),
        ("/account/fields/0/name", EVIL),
        ("/card/title", EVIL),
        ("/pleroma/content/text~1plain", EVIL),
        ("/akkoma/source/content", EVIL),
        ("/text", EVIL),
        ("/poll/options/0/title", EVIL),
    ] {
        assert_eq!(shown.pointer(path), Some(&json!(expected)), "{path}");
    }
}

#[test]
fn html_is_cleaned_wherever_it_stands() {
    let boosted = post(&Value::Null);
    let shown = status(&post(&boosted));
    check(&shown);
    check(&shown["reblog"]);
}

#[test]
fn versions_are_cleaned_too() {
    let version = post(&Value::Null).to_string();
    let members = RawObject::parse(&version).expect("an object");
    let edit = copied(|copier, out| copier.status_edit(out, &members, 0, Some(2)));
    let edit: Value = serde_json::from_str(&edit).expect("JSON");
    assert_eq!(edit["content"], CLEAN);
    assert_eq!(edit["account"]["note"], CLEAN);
    assert_eq!(edit["spoiler_text"], EVIL);
}

#[test]
fn no_way_to_write_it_gets_past() {
    for content in [
        r#""<script>x</script>""#,
        r#""\u003cscript\u003ex\u003c/script\u003e""#,
        r#""\u003Cscript>x\u003c\/script>""#,
        r#""\ud800<script>x</script>""#,
        r#""<script>x</script>\u0000""#,
        r#""<scr\u0000ipt>x""#,
    ] {
        for key in [r#""content""#, r#""\u0063ontent""#] {
            for json in [
                format!(r#"{{"id":"7",{key}:{content}}}"#),
                format!(r#"{{"id":"7","content":"a",{key}:{content}}}"#),
                format!(r#"{{"id":"7","unknown":[[{{{key}:{content}}}]]}}"#),
                format!(r#"{{"id":"7","pleroma":{{{key}:{content}}}}}"#),
                format!(r#"{{"id":"7","card":{{"id":"1","acct":"a",{key}:{content}}}}}"#),
            ] {
                let shown = status_json(&json);
                let decoded: Value = serde_json::from_str(&shown).expect("JSON");
                let text = decoded.to_string();
                assert!(!text.contains("<scr"), "{json} -> {text}");
            }
        }
    }
    // It is no text: nothing shows it as HTML.
    let odd = status(&json!({ "id": "7", "content": { "content": EVIL }, "note": 7 }));
    assert_eq!((&odd["content"], &odd["note"]), (&json!(""), &json!(7)));
}

#[test]
fn what_is_clean_stays_as_it_was_written() {
    for content in [
        r#""\u003cp\u003etar \u0026amp; pitch\u003c/p\u003e""#,
        r#""caf\u00e9 \/ \ud83d\ude00""#,
        r#""<p>a</p>""#,
    ] {
        let shown = status_json(&format!(r#"{{"id":"7","content":{content}}}"#));
        assert!(
            shown.contains(&format!(r#""content":{content}"#)),
            "{shown}"
        );
    }
}

/// Each member that contains an address, at any depth.
#[test]
fn addresses_that_apps_open_are_of_http() {
    for (evil, kept) in [
        ("javascript:alert(1)", ""),
        (" JAVA\nscript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("https://a.example/x", "https://a.example/x"),
        ("/x.png", "/x.png"),
    ] {
        let account = json!({
            "id": "1", "acct": "a", "url": evil, "uri": evil, "avatar": evil, "header_static": evil,
            "pleroma": { "background_image": evil, "also_known_as": [evil] },
            "emojis": [{ "url": evil, "static_url": evil }], "moved": { "id": "2", "acct": "b", "avatar": evil },
        });
        let inner = json!({
            "id": "8", "visibility": "public", "url": evil, "uri": evil, "account": account,
            "mentions": [{ "id": "1", "acct": "a", "url": evil }], "tags": [{ "name": "a", "url": evil }],
            "media_attachments": [{ "url": evil, "preview_url": evil, "remote_url": evil, "description": "Note: x" }],
            "card": { "url": evil, "image": evil, "author_url": evil, "authors": [{ "url": evil }] },
            "emojis": [{ "url": evil }], "application": { "name": "a", "website": evil },
        });
        let mut post = inner.clone();
        post["reblog"] = inner;
        let shown = status(&post);
        for post in [&shown, &shown["reblog"]] {
            for path in [
                "/account/emojis/0/url",
                "/account/emojis/0/static_url",
                "/account/moved/avatar",
                "/mentions/0/url",
                "/tags/0/url",
                "/media_attachments/0/url",
                "/media_attachments/0/preview_url",
                "/media_attachments/0/remote_url",
                "/card/url",
                "/card/image",
                "/card/author_url",
                "/card/authors/0/url",
                "/emojis/0/url",
                "/application/website",
            ] {
                assert_eq!(post.pointer(path), Some(&json!(kept)), "{path} of {evil:?}");
            }
            assert_eq!(post["media_attachments"][0]["description"], "Note: x");
        }
        let text = shown.to_string().to_lowercase();
        assert!(
            !text.contains("script:") && !text.contains("data:"),
            "{text}"
        );
    }
}

#[test]
fn names_of_accounts_do_not_turn_what_stands_beside_them() {
    let name = "a\u{202e}b\u{2066}c";
    let account = json!({ "id": "1", "acct": "a", "display_name": name, "moved": { "id": "2", "acct": "b", "display_name": name } });
    let inner = json!({ "id": "8", "visibility": "public", "content": name, "account": account });
    let shown = status(&json!({
        "id": "7", "visibility": "public", "content": name, "account": account, "reblog": inner,
    }));
    for path in [
        "/account/display_name",
        "/account/moved/display_name",
        "/reblog/account/display_name",
    ] {
        assert_eq!(shown.pointer(path), Some(&json!("abc")), "{path}");
    }
    // What people write stays as they wrote it.
    assert_eq!(shown["content"], name);
}
