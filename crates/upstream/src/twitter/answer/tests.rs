use driftline_core::post::Visibility;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::testing::{changed, check_kinds, check_reads_back, raw};

/// A page written after the reference of `statuses/home_timeline`: a tweet
/// with everything, a retweet, a bare one of a protected user.
fn recorded() -> Value {
    json!([
        {
            "created_at": "Wed Oct 10 20:19:24 +0000 2018",
            "id": 1_050_118_621_198_921_700_u64,
            "id_str": "1050118621198921728",
            "full_text": "Room &gt; nothing, says @Bob. #Now https://t.co/aaaaaaaaaa https://t.co/mmmmmmmmmm",
            "display_text_range": [0, 58],
            "entities": {
                "hashtags": [{"text": "Now", "indices": [30, 34]}],
                "user_mentions": [{"screen_name": "bob", "name": "Bob", "id": 43, "id_str": "43", "indices": [24, 28]}],
                "urls": [{"url": "https://t.co/aaaaaaaaaa", "expanded_url": "https://a.example/", "display_url": "a.example", "indices": [35, 58]}],
                "media": [{"id_str": "77", "url": "https://t.co/mmmmmmmmmm", "indices": [59, 82], "media_url_https": "https://pbs.example/m.jpg", "type": "photo"}]
            },
            "extended_entities": {
                "media": [
                    {"id_str": "77", "url": "https://t.co/mmmmmmmmmm", "indices": [59, 82], "media_url_https": "https://pbs.example/m.jpg", "type": "photo", "ext_alt_text": "a room", "original_info": {"width": 640, "height": 480}},
                    {"id_str": "78", "media_url_https": "https://pbs.example/v.jpg", "type": "animated_gif", "video_info": {"variants": [
                        {"content_type": "application/x-mpegURL", "url": "https://v.example/l.m3u8"},
                        {"bitrate": 0, "content_type": "video/mp4", "url": "https://v.example/g.mp4"}
                    ]}}
                ]
            },
            "in_reply_to_status_id": 1, "in_reply_to_status_id_str": "1050118621198921000",
            "in_reply_to_user_id": 43, "in_reply_to_user_id_str": "43",
            "user": {"id": 42, "id_str": "42", "name": "Ann", "screen_name": "ann", "description": "a &amp; b", "protected": false, "followers_count": 10, "friends_count": 20, "statuses_count": 30, "created_at": "Mon Jan 02 03:04:05 +0000 2012", "profile_image_url_https": "https://pbs.example/a.jpg", "profile_banner_url": "https://pbs.example/b"},
            "retweet_count": 2, "favorite_count": 3, "possibly_sensitive": true, "lang": "en"
        },
        {
            "created_at": "Wed Oct 10 20:19:23 +0000 2018",
            "id": 9, "id_str": "1050118621198921727",
            "full_text": "RT @bob: cut of…",
            "user": {"id_str": "42", "screen_name": "ann"},
            "retweeted_status": {
                "id_str": "1050000000000000000", "full_text": "cut off no more",
                "user": {"id_str": "43", "screen_name": "bob"},
                "retweeted_status": {"id_str": "1"}
            }
        },
        {"id_str": "20", "text": "short", "lang": "und", "user": {"id_str": "44", "screen_name": "eve", "protected": true}}
    ])
}

fn read(answer: &Value) -> Result<Vec<Post>, Failure> {
    page(answer.to_string().as_bytes())?.posts()
}

#[test]
fn the_json_is_a_mastodon_status_with_the_tweet_whole_inside() {
    let tweet = &recorded()[0];
    let posts = read(&recorded()).expect("a page");
    assert_eq!(posts.len(), 3);
    let rest = "rel=\"nofollow noopener\" target=\"_blank\">";
    let url = "https://x.com/ann/status/1050118621198921728";
    let media = &tweet["extended_entities"]["media"];
    let account = json!({
        "id": "42", "username": "ann", "acct": "ann", "display_name": "Ann",
        "locked": false, "bot": false, "created_at": "2012-01-02T03:04:05.000Z",
        "note": "<p>a &amp; b</p>", "uri": "https://x.com/ann", "url": "https://x.com/ann",
        "avatar": "https://pbs.example/a.jpg", "avatar_static": "https://pbs.example/a.jpg",
        "header": "https://pbs.example/b", "header_static": "https://pbs.example/b",
        "followers_count": 10, "following_count": 20, "statuses_count": 30,
        "emojis": [], "fields": [],
        "twitter": tweet["user"],
    });
    let status = json!({
        "id": "1050118621198921728", "uri": url, "url": url,
        "created_at": "2018-10-10T20:19:24.000Z", "edited_at": null,
        "in_reply_to_id": "1050118621198921000", "in_reply_to_account_id": "43",
        "sensitive": true, "spoiler_text": "", "visibility": "public", "language": "en",
        "replies_count": null, "reblogs_count": 2, "favourites_count": 3, "quotes_count": null,
        "content": format!(
            "<p>Room &gt; nothing, says <a href=\"https://x.com/bob\" {rest}@Bob</a>. <a href=\"https://x.com/hashtag/Now\" {rest}#Now</a> <a href=\"https://a.example/\" {rest}a.example</a></p>"
        ),
        "reblog": null, "account": account, "emojis": [], "card": null, "poll": null,
        "mentions": [{"id": "43", "username": "bob", "acct": "bob", "url": "https://x.com/bob"}],
        "tags": [{"name": "Now", "url": "https://x.com/hashtag/Now"}],
        "media_attachments": [
            {
                "id": "77", "type": "image", "description": "a room", "blurhash": null,
                "url": "https://pbs.example/m.jpg", "preview_url": "https://pbs.example/m.jpg",
                "remote_url": "https://pbs.example/m.jpg",
                "meta": {"original": {"width": 640, "height": 480}}, "twitter": media[0],
            },
            {
                "id": "78", "type": "gifv", "description": null, "blurhash": null,
                "url": "https://v.example/g.mp4", "preview_url": "https://pbs.example/v.jpg",
                "remote_url": "https://v.example/g.mp4", "meta": {}, "twitter": media[1],
            },
        ],
        "twitter": tweet,
    });
    assert_eq!(raw(&posts[0]), status);
    check_reads_back(posts);
}

#[test]
fn a_tweet_that_cannot_be_read_costs_none_of_its_page() {
    let answer = json!([{"id_str": "9"}, {"id": 8}, {"id_str": "7", "retweeted_status": {}}, {"id_str": "6"}]);
    let items = page(answer.to_string().as_bytes()).expect("a page");
    assert_eq!(
        (items.listed.len(), &items.passed[..]),
        (2, &["7".into()][..])
    );
    let positions: Vec<_> = items
        .unreadable
        .iter()
        .map(|item| item.position.clone())
        .collect();
    assert_eq!(positions, [None, Some("7".into())]);
    assert!(
        items
            .unreadable
            .iter()
            .all(|item| read_item(&item.bytes).is_err())
    );
    assert!(read_item(br#"{"id_str":"8"}"#).is_ok());
}

#[test]
fn what_concerns_the_tokens_account_is_kept_apart_and_changes_no_hash() {
    let plain = read(&recorded()).expect("a page");
    let mut answer = recorded();
    for at in 0..2 {
        answer[at]["favorited"] = json!(true);
        answer[at]["user"]["following"] = json!(true);
    }
    answer[1]["retweeted_status"]["retweeted"] = json!(true);
    let read = read(&answer).expect("a page");
    for (post, plain) in read.iter().zip(&plain) {
        assert_eq!(
            (raw(post), post.hashes),
            (raw(plain), plain.hashes),
            "{}",
            post.id
        );
    }
    let viewer = |post: &Post| -> Value {
        serde_json::from_str(post.viewer.as_deref().expect("something")).expect("JSON")
    };
    let own = json!({"favorited": true, "user": {"following": true}});
    let account = json!({"twitter": {"following": true}});
    assert_eq!(
        viewer(&read[0]),
        json!({"account": account, "twitter": own})
    );
    let boosted = read[1].boost_of.as_deref().expect("a boost");
    assert_eq!(viewer(boosted), json!({"twitter": {"retweeted": true}}));
    assert_eq!(read[2].viewer, None);
}

#[test]
fn retweets_and_protected_users() {
    let posts = read(&recorded()).expect("a page");
    let boosted = posts[1].boost_of.as_deref().expect("a boost");
    assert_eq!(boosted.id, "1050000000000000000".into());
    assert_eq!(boosted.boost_of, None);
    assert_eq!(raw(&posts[1])["reblog"], raw(boosted));
    assert_eq!(raw(&posts[1])["content"], "<p>cut off no more</p>");
    assert_eq!(posts[2].visibility, Visibility::Private);
    assert_eq!(raw(&posts[2])["content"], "<p>short</p>");
    assert_eq!(raw(&posts[2])["language"], Value::Null);
}

#[test]
fn an_id_is_never_read_from_the_number() {
    for tweet in [
        json!({"id": 1_050_118_621_198_921_728_u64}),
        json!({"id": 7, "id_str": 7}),
        json!({"id": 7, "id_str": ""}),
        json!({"id": 7, "id_str": "x"}),
        json!({"id": 7, "id_str": null}),
    ] {
        let failure = read(&json!([tweet])).expect_err("no ID");
        assert_eq!(failure.kind, FailureKind::BadId, "{failure}");
    }
}

#[test]
fn errors_have_their_kinds() {
    let answer = |code: i64| json!({"errors": [{"code": code, "message": "why"}]});
    for (code, kind) in [
        (88, FailureKind::Throttled),
        (89, FailureKind::Unauthorized),
        (32, FailureKind::Unauthorized),
        (34, FailureKind::NotFound),
        (131, FailureKind::ServerError),
        (999, FailureKind::ErrorBody),
    ] {
        let failure = read(&answer(code)).expect_err("an error");
        assert_eq!(failure.kind, kind, "{failure}");
        assert!(failure.message.contains("“why”"), "{failure}");
    }
    let refused = [
        ("", FailureKind::Truncated),
        ("[", FailureKind::Truncated),
        ("{}", FailureKind::BadJson),
        ("[7]", FailureKind::BadJson),
        ("<html>", FailureKind::NotJson),
        (r#"{"error":"Not authorized."}"#, FailureKind::ErrorBody),
    ];
    check_kinds(page, refused);
}

#[test]
fn each_id_looked_up_has_its_finding() {
    let tweet = &recorded()[0];
    let id = "1050118621198921728";
    let asked = || vec!["5".into(), id.into(), "6".into()];
    for answer in [
        json!({"id": {id: tweet, "5": null, "7": recorded()[2]}}),
        json!([tweet, tweet, recorded()[2]]),
    ] {
        let found = findings(answer.to_string().as_bytes(), asked()).expect("findings");
        assert_eq!(found[0], ("5".into(), Finding::Missing));
        assert!(matches!(&found[1], (found, Finding::Found(post)) if post.id == *found));
        assert_eq!(found[2], ("6".into(), Finding::Missing));
        assert_eq!(found.len(), 3);
    }
    let error = |code| json!({"errors": [{"code": code, "message": "m"}]}).to_string();
    for (code, finding) in [
        (17, Finding::Missing),
        (144, Finding::Gone),
        (63, Finding::Hidden),
        (179, Finding::Hidden),
    ] {
        let found = findings(error(code).as_bytes(), vec!["5".into()]).expect("findings");
        assert_eq!(found, [("5".into(), finding)], "{code}");
    }
    // Of several posts it may be about any: nothing is judged by it.
    for code in [17, 144] {
        let found = findings(error(code).as_bytes(), asked()).expect("findings");
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|(_, found)| *found == Finding::Missing));
    }
    let refused = [
        (error(63), FailureKind::Forbidden),
        (error(179), FailureKind::Forbidden),
        (error(88), FailureKind::Throttled),
        (error(131), FailureKind::ServerError),
        ("{}".to_owned(), FailureKind::BadJson),
        (json!({"id": []}).to_string(), FailureKind::BadJson),
        (json!({"id": {"5": {}}}).to_string(), FailureKind::BadId),
    ];
    check_kinds(|body| findings(body, asked()), refused);
}

#[test]
fn the_user_of_a_token() {
    let of = |answer: Value| me(answer.to_string().as_bytes());
    let user = json!({"id": 42, "id_str": "42", "screen_name": "ann"});
    assert_eq!(of(user), Ok(("42".into(), "ann".to_owned())));
    assert!(of(json!({"id": 42})).is_err());
}

proptest! {
    #[test]
    fn hostile_answers_never_panic(
        answer in changed(&recorded()),
        cut in 0_usize..4000,
        byte: u8,
    ) {
        let map = json!({"id": {"20": answer[2], "5": answer[0]}}).to_string();
        let mut body = answer.to_string().into_bytes();
        let asked = || vec!["5".into(), "20".into()];
        let _ = (page(&body), findings(&body, asked()), me(&body));
        let _ = (findings(map.as_bytes(), asked()), kind(map.as_bytes()));
        let place = cut.min(body.len() - 1);
        body[place] = byte;
        let _ = (page(&body), findings(&body[..place], asked()));
    }
}
