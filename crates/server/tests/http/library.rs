//! What people keep: bookmarks, favourites, lists, read markers and filters. Another account sees and changes
//! nothing of it.

use driftline_core::names::audience::Audience;
use driftline_sim::Status;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    people::{Person, people_world},
    world::{id, link, numbers, parsed, post_of, show, status},
};

fn ids(statuses: &[Value]) -> Vec<u64> {
    statuses.iter().map(id).collect()
}

const PUBLIC: &str = "/api/v1/timelines/public";

#[tokio::test(flavor = "multi_thread")]
async fn marks_are_the_accounts_own() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&(1..=7).map(status).collect::<Vec<_>>()).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let all = ids(&ann.page(PUBLIC).await);
    for (set, unset, list, flag) in [
        ("bookmark", "unbookmark", "/api/v1/bookmarks", "bookmarked"),
        (
            "favourite",
            "unfavourite",
            "/api/v1/favourites",
            "favourited",
        ),
    ] {
        // Marked in another order than they came.
        let marked = [all[3], all[0], all[5], all[1], all[6]];
        for post in marked {
            for _ in 0..2 {
                let answer = ann.post(&format!("/api/v1/statuses/{post}/{set}")).await;
                assert_eq!((&answer[flag], id(&answer)), (&json!(true), post));
            }
        }
        let path = format!("/api/v1/statuses/{}", all[0]);
        assert_eq!(ann.get(&path).await[flag], true);
        assert_eq!(ben.get(&path).await[flag], false);
        assert!(world.json(&path).await.get(flag).is_none(), "nobody's");
        let flags: Vec<bool> = ann
            .page(PUBLIC)
            .await
            .iter()
            .map(|one| one[flag] == true)
            .collect();
        assert_eq!(flags, [true, true, false, true, false, true, true]);
        assert!(ben.page(PUBLIC).await.iter().all(|one| one[flag] == false));
        assert!(ben.page(list).await.is_empty());
        // Pages go by the marks' own IDs.
        let mut pages = Vec::new();
        let mut next = Some(format!("{}{list}?limit=2", world.base));
        while let Some(url) = next {
            let request = world.client.get(url).bearer_auth(&ann.token);
            let answer = request.send().await.unwrap();
            next = link(&answer, "next");
            let prev = link(&answer, "prev");
            let page = parsed(answer).await.as_array().unwrap().clone();
            assert_eq!(prev.is_some(), !page.is_empty());
            pages.push(ids(&page));
        }
        let mut expected = marked.to_vec();
        expected.reverse();
        assert_eq!(pages.concat(), expected);
        assert!(pages.len() >= 3);
        // Another account's marks are others.
        let gone = format!("/api/v1/statuses/{}/{unset}", all[0]);
        assert_eq!(ben.post(&gone).await[flag], false);
        assert_eq!(ann.page(list).await.len(), 5);
        assert_eq!(ann.post(&gone).await[flag], false);
        assert_eq!(ann.page(list).await.len(), 4);
        for (who, path) in [
            (&ann, format!("/api/v1/statuses/1/{set}")),
            (&ben, format!("/api/v1/statuses/99999999999999/{unset}")),
        ] {
            let (status, _) = who.send(Method::POST, &path, &Value::Null).await;
            assert_eq!(status, StatusCode::NOT_FOUND);
        }
    }
    let by = format!("/api/v1/statuses/{}/favourited_by", all[3]);
    assert_eq!(ann.page(&by).await[0]["acct"], "ann");
    assert!(
        ben.page(&by).await.is_empty(),
        "nobody is told who favourites"
    );
    assert_eq!(world.page(&by).await, [] as [Value; 0]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_post_cannot_be_marked_and_leaves_the_marks_of_who_cannot_see_it() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&[status(1), status(2)]).await;
    let mut other = world.feed("other").await;
    other.poll(&[status(3)]).await;
    let ann = Person::new(&world, "ann").await;
    let all = ids(&ann.page(PUBLIC).await);
    for post in &all {
        ann.post(&format!("/api/v1/statuses/{post}/bookmark")).await;
    }
    assert_eq!(ann.page("/api/v1/bookmarks").await.len(), 3);
    show(&world, &feed, Audience::Private).await;
    assert_eq!(ids(&ann.page("/api/v1/bookmarks?limit=1").await), [all[0]]);
    assert_eq!(ids(&ann.page("/api/v1/bookmarks").await), [all[0]]);
    for path in ["bookmark", "unbookmark", "favourite", "favourited_by"] {
        let method = if path == "favourited_by" {
            Method::GET
        } else {
            Method::POST
        };
        let path = format!("/api/v1/statuses/{}/{path}", all[1]);
        let (status, _) = ann.send(method, &path, &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    show(&world, &feed, Audience::Public).await;
    assert_eq!(ann.page("/api/v1/bookmarks").await.len(), 3, "as they were");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_boost_is_marked_as_what_it_boosts() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    let boost = |id, of| Status {
        boost_of: Some(Box::new(status(of))),
        ..status(id)
    };
    feed.poll(&[status(1), boost(2, 1), boost(4, 3)]).await;
    let ann = Person::new(&world, "ann").await;
    let [unknown, boost, original] = ids(&ann.page(PUBLIC).await)[..] else {
        panic!("three posts")
    };
    let answer = ann
        .post(&format!("/api/v1/statuses/{boost}/bookmark"))
        .await;
    assert_eq!(
        (&answer["bookmarked"], &answer["reblog"]["bookmarked"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(ids(&ann.page("/api/v1/bookmarks").await), [original]);
    let answer = ann
        .post(&format!("/api/v1/statuses/{boost}/unbookmark"))
        .await;
    assert_eq!(answer["reblog"]["bookmarked"], false);
    // What it boosts is not stored: the boost itself is found again.
    ann.post(&format!("/api/v1/statuses/{unknown}/bookmark"))
        .await;
    assert_eq!(ids(&ann.page("/api/v1/bookmarks").await), [unknown]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_have_the_posts_of_their_accounts() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    feed.poll(&(1..=12).map(status).collect::<Vec<_>>()).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    assert_eq!(ann.get("/api/v1/lists").await, json!([]));
    for title in [
        json!({}),
        json!({ "title": " " }),
        json!({ "title": "x".repeat(101) }),
    ] {
        let (status, _) = ann.send(Method::POST, "/api/v1/lists", &title).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{title}");
    }
    let bad = json!({ "title": "x", "replies_policy": "some" });
    let (status, _) = ann.send(Method::POST, "/api/v1/lists", &bad).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let list = ann
        .post_json("/api/v1/lists", &json!({ "title": "友" }))
        .await;
    let list_id = list["id"].as_str().unwrap().to_owned();
    let expected =
        json!({ "id": list_id, "title": "友", "replies_policy": "list", "exclusive": false });
    assert_eq!(list, expected);
    let path = format!("/api/v1/lists/{list_id}");
    let changed = ann
        .ok(
            Method::PUT,
            &path,
            &json!({ "replies_policy": "none", "exclusive": "true" }),
        )
        .await;
    let expected =
        json!({ "id": list_id, "title": "友", "replies_policy": "none", "exclusive": true });
    assert_eq!(
        (&changed, &ann.get("/api/v1/lists").await),
        (&expected, &json!([expected]))
    );
    assert_eq!(ann.get(&path).await, expected);

    let one = ann.follow("drifter1@far.example").await;
    let two = ann.follow("drifter2@sim.example").await;
    let of_ben = ben.follow("drifter4@sim.example").await;
    let accounts = format!("{path}/accounts");
    let both = json!({ "account_ids": [one, two] });
    assert_eq!(ann.post_json(&accounts, &both).await, json!({}));
    let (status, _) = ann.send(Method::POST, &accounts, &both).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "they are there");
    let other = json!({ "account_ids": [of_ben] });
    let (status, _) = ann.send(Method::POST, &accounts, &other).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "not followed");
    let mut expected = [one.clone(), two.clone()];
    expected.sort_by_key(|id| std::cmp::Reverse(id.parse::<u64>().unwrap()));
    let names = |page: Vec<Value>| -> Vec<String> {
        let names = page
            .iter()
            .map(|one| one["id"].as_str().unwrap().to_owned());
        names.collect()
    };
    for query in ["", "?limit=0", "?limit=1"] {
        let found = names(ann.page(&format!("{accounts}{query}")).await);
        let all = if query == "?limit=1" { 1 } else { 2 };
        assert_eq!(found, expected[..all]);
    }
    let below = format!("{accounts}?limit=1&max_id={}", expected[0]);
    assert_eq!(names(ann.page(&below).await), expected[1..]);
    assert_eq!(
        ann.page(&format!("/api/v1/accounts/{one}/lists"))
            .await
            .len(),
        1
    );
    assert_eq!(
        ben.page(&format!("/api/v1/accounts/{one}/lists"))
            .await
            .len(),
        0
    );

    // Posts of the authors with the numbers 1 and 2.
    let timeline = format!("/api/v1/timelines/list/{list_id}");
    assert_eq!(numbers(&ann.page(&timeline).await), [12, 11, 7, 6, 2, 1]);
    let first = ann.page(&format!("{timeline}?limit=2")).await;
    let rest = format!("{timeline}?max_id={}", first[1]["id"].as_str().unwrap());
    assert_eq!(numbers(&ann.page(&rest).await), [7, 6, 2, 1]);
    // Its posts are public ones at the same places.
    let public = ids(&ann.page(PUBLIC).await);
    assert!(ids(&first).iter().all(|id| public.contains(id)));

    let home = "/api/v1/timelines/home";
    assert!(ann.page(home).await.is_empty(), "the list is exclusive");
    // Another account, and the operator, know nothing of it.
    for (method, path, body) in [
        (Method::GET, path.clone(), Value::Null),
        (Method::PUT, path.clone(), json!({ "title": "mine" })),
        (Method::DELETE, path.clone(), Value::Null),
        (Method::GET, accounts.clone(), Value::Null),
        (
            Method::POST,
            accounts.clone(),
            json!({ "account_ids": [of_ben] }),
        ),
        (Method::DELETE, accounts.clone(), both.clone()),
        (Method::GET, timeline.clone(), Value::Null),
    ] {
        let (status, _) = ben.send(method.clone(), &path, &body).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{method} {path}");
    }
    assert_eq!(ben.get("/api/v1/lists").await, json!([]));
    assert_eq!(world.page("/api/v1/lists").await[0]["title"], "feed");
    assert_eq!(
        world.answer(&timeline).await.status(),
        StatusCode::NOT_FOUND
    );
    let sources = format!("/api/v1/timelines/list/{}", feed.source.id);
    let (status, _) = ann.send(Method::GET, &sources, &Value::Null).await;
    assert_eq!(
        status,
        StatusCode::NOT_FOUND,
        "sources are the operator's lists"
    );
    assert_eq!(ann.page(&timeline).await.len(), 6);

    let unfollow = format!("/api/v1/accounts/{two}/unfollow");
    ann.post(&unfollow).await;
    assert_eq!(names(ann.page(&accounts).await), std::slice::from_ref(&one));
    let removed = ann
        .ok(Method::DELETE, &accounts, &json!({ "account_ids": [one] }))
        .await;
    assert_eq!(removed, json!({}));
    assert!(ann.page(&timeline).await.is_empty());
    assert_eq!(numbers(&ann.page(home).await), [11, 6, 1]);
    assert_eq!(ann.ok(Method::DELETE, &path, &Value::Null).await, json!({}));
    let (status, _) = ann.send(Method::GET, &timeline, &Value::Null).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_shows_the_replies_of_its_policy() {
    let (world, _) = people_world(|_| {}).await;
    let mut feed = world.feed("feed").await;
    let reply = |id: u64, to: Option<u64>| {
        let account = |number: u64| json!({ "id": format!("{number}"), "username": format!("a{number}"), "acct": format!("a{number}") });
        let mut post = post_of(
            id,
            &json!({
                "id": id.to_string(), "content": "<p>x</p>", "visibility": "public",
                "uri": format!("https://sim.example/statuses/{id}"), "account": account(1),
                "in_reply_to_id": to.map(|_| "50"),
                "in_reply_to_account_id": to.map(|to| to.to_string()),
            }),
        );
        post.author.id = "1".into();
        post.author.acct = "a1".to_owned();
        post
    };
    let mut others: Vec<_> = [(61, 2), (62, 3), (63, 4)]
        .into_iter()
        .map(|(id, author)| {
            let mut post = status(id).to_post();
            post.author.id = author.to_string().as_str().into();
            post.author.acct = format!("a{author}");
            post
        })
        .collect();
    // Of an account, to nobody, itself, one of the list, one that is followed, and a stranger.
    others.extend([
        reply(71, None),
        reply(72, Some(1)),
        reply(73, Some(2)),
        reply(74, Some(3)),
        reply(75, Some(4)),
    ]);
    feed.poll_posts(others).await;
    let ann = Person::new(&world, "ann").await;
    let mut accounts = Vec::new();
    for name in ["a1", "a2", "a3"] {
        accounts.push(ann.follow(&format!("{name}@sim.example")).await);
    }
    let list = ann
        .post_json("/api/v1/lists", &json!({ "title": "x" }))
        .await;
    let list = list["id"].as_str().unwrap();
    let members = json!({ "account_ids": accounts[..2] });
    ann.post_json(&format!("/api/v1/lists/{list}/accounts"), &members)
        .await;
    for (policy, expected) in [
        ("none", vec![72, 71, 61]),
        ("list", vec![73, 72, 71, 61]),
        ("followed", vec![74, 73, 72, 71, 61]),
    ] {
        let body = json!({ "replies_policy": policy });
        ann.ok(Method::PUT, &format!("/api/v1/lists/{list}"), &body)
            .await;
        let page = ann.page(&format!("/api/v1/timelines/list/{list}")).await;
        assert_eq!(numbers(&page), expected, "{policy}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markers_are_set_and_counted() {
    let (world, _) = people_world(|_| {}).await;
    let (ann, ben) = (
        Person::new(&world, "ann").await,
        Person::new(&world, "ben").await,
    );
    let both = "/api/v1/markers?timeline[]=home&timeline[]=notifications";
    assert_eq!(ann.get(both).await, json!({}));
    let set = ann
        .post_json(
            "/api/v1/markers",
            &json!({ "home": { "last_read_id": "123" } }),
        )
        .await;
    assert_eq!(
        (&set["home"]["last_read_id"], &set["home"]["version"]),
        (&json!("123"), &json!(1))
    );
    assert!(set.get("notifications").is_none());
    let form = "home%5Blast_read_id%5D=124&notifications%5Blast_read_id%5D=9";
    let request = world.client.post(format!("{}/api/v1/markers", world.base));
    let request = request
        .bearer_auth(&ann.token)
        .header("content-type", "application/x-www-form-urlencoded");
    let answer = parsed(request.body(form).send().await.unwrap()).await;
    assert_eq!(answer["home"]["version"], 2);
    let found = ann.get(both).await;
    assert_eq!(found["home"]["last_read_id"], "124");
    assert_eq!(found["notifications"]["last_read_id"], "9");
    assert_eq!(
        ann.get("/api/v1/markers?timeline=home")
            .await
            .as_object()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(ben.get(both).await, json!({}));
    let (status, _) = ann
        .send(
            Method::POST,
            "/api/v1/markers",
            &json!({ "home": { "last_read_id": "x" } }),
        )
        .await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    // Of two at once each is set, or is told of the other.
    let body = |id: u64| json!({ "home": { "last_read_id": id.to_string() } });
    let (one, other) = (body(200), body(300));
    let (one, other) = tokio::join!(
        ann.send(Method::POST, "/api/v1/markers", &one),
        ann.send(Method::POST, "/api/v1/markers", &other)
    );
    let statuses = [one.0, other.0];
    assert!(statuses.contains(&StatusCode::OK), "{statuses:?}");
    assert!(
        statuses
            .iter()
            .all(|of| [StatusCode::OK, StatusCode::CONFLICT].contains(of))
    );

    assert_eq!(
        ann.get("/api/v1/preferences").await["posting:default:visibility"],
        "public"
    );
    assert_eq!(world.json("/api/v1/custom_emojis").await, json!([]));
    world.close().await;
}
