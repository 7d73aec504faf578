//! Accounts that are found by their names on other servers.

use driftline_core::names::audience::Audience;
use driftline_store::{Owner, credential};
use reqwest::{StatusCode, Url};
use serde_json::{Value, json};

use crate::{
    people::Person,
    resolve::{looked_up_account, searched_account},
    threads_fetched::{MANY, Scene},
    world::{id, status},
};

const FAR: &str = "cat@unknown.example";

fn search_for(name: &str) -> String {
    let mut url = Url::parse("http://a/api/v1/accounts/search").unwrap();
    url.query_pairs_mut().append_pair("q", name);
    format!("{}?{}", url.path(), url.query().unwrap())
}

fn resolve(name: &str) -> String {
    format!("{}&resolve=true", search_for(name))
}

/// The same by the search for everything.
fn resolve_all(name: &str) -> String {
    resolve(name).replace("/api/v1/accounts/search", "/api/v2/search")
}

/// An account as its server, or another one, shows it.
fn account(acct: &str, n: u64) -> Value {
    let username = acct.split('@').next().unwrap();
    json!({
        "id": n.to_string(), "username": username, "acct": acct, "display_name": "Cat",
        "url": format!("https://unknown.example/@{username}"), "note": "", "fields": [], "emojis": [],
        "avatar": "https://unknown.example/a.png", "followers_count": 3, "following_count": 4,
        "statuses_count": 5, "created_at": "2020-01-01T00:00:00.000Z", "locked": false, "bot": false,
    })
}

fn accounts(found: &[Value]) -> Value {
    json!({ "accounts": found, "statuses": [], "hashtags": [] })
}

impl Scene {
    /// The accts of what a search of accounts shows.
    async fn accts(&self, who: &Person, path: &str) -> Vec<String> {
        let found = who.get(path).await;
        let found = found.get("accounts").unwrap_or(&found);
        let all = found.as_array().unwrap().iter();
        all.map(|account| account["acct"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The name of an account of this scene's server, as others write it.
    fn own(&self, name: &str) -> String {
        let host = self.origin.strip_prefix("http://").unwrap();
        format!("{name}@{host}")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_found_with_ones_own_token_and_for_oneself() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    let asked = searched_account("ann-token", FAR);
    scene.answers_page(asked.clone(), accounts(&[account(FAR, 7)]));
    assert!(scene.accts(&ann, &search_for(FAR)).await.is_empty());
    assert_eq!(scene.paths(), [], "not without resolve=true");
    let named = format!("@{FAR}");
    assert_eq!(scene.accts(&ann, &resolve(&named)).await, [FAR]);
    assert_eq!(scene.paths(), std::slice::from_ref(&asked));
    // From now on it is there without being asked for, and can be followed.
    assert_eq!(scene.accts(&ann, &resolve_all(&named)).await, [FAR]);
    assert_eq!(scene.accts(&ann, &search_for("cat")).await, [FAR]);
    assert_eq!(scene.paths(), [asked]);
    let of_ann = ann.look_up(FAR).await;
    let path = format!("/api/v1/accounts/{of_ann}");
    assert_eq!(ann.get(&path).await["display_name"], "Cat");
    let wrote = format!("{path}/statuses");
    assert!(ann.page(&wrote).await.is_empty());
    let followed = ann.post(&format!("{path}/follow")).await;
    assert_eq!(followed["following"], true);

    // Nobody else finds it: not by its ID, not by its name, not by the beginning of that, nor what hangs on it.
    for path in [
        path.clone(),
        wrote,
        format!("/api/v1/accounts/lookup?acct={FAR}"),
    ] {
        let answer = scene.get_with(&path, &bob.token).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
        let answer = scene.answer(&path).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
    for action in ["follow", "block", "mute"] {
        let answer = bob
            .send(
                reqwest::Method::POST,
                &format!("{path}/{action}"),
                &Value::Null,
            )
            .await;
        assert_eq!(answer.0, StatusCode::NOT_FOUND, "{action}");
    }
    for text in ["cat", FAR, &named] {
        for path in [search_for(text), resolve(text), resolve_all(text)] {
            assert!(scene.accts(&bob, &path).await.is_empty(), "{path}");
        }
    }
    let peers = "/api/v1/instance/peers";
    assert!(ann.page(peers).await.contains(&json!("unknown.example")));
    for peers in [bob.page(peers).await, scene.page(peers).await] {
        assert!(!peers.contains(&json!("unknown.example")), "{peers:?}");
    }
    assert_eq!(scene.paths().len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_found_without_a_token_at_a_host_that_is_read_in_public() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.public().await;
    let name = scene.own("Cat");
    scene.answers_page(looked_up_account("cat"), account("cat", 7));
    assert_eq!(scene.accts(&ann, &resolve_all(&name)).await.len(), 1);
    assert_eq!(scene.paths(), [looked_up_account("cat")]);
    // It is public, for strangers too.
    assert_eq!(scene.accts(&bob, &search_for(&name)).await.len(), 1);
    let of_all = bob.look_up(&name).await;
    let account = scene.json(&format!("/api/v1/accounts/{of_all}")).await;
    assert_eq!(id(&account), of_all);
    assert!(scene.page("/api/v1/timelines/public").await.is_empty());
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_found_by_the_address_of_its_profile() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    let asked = searched_account("ann-token", FAR);
    scene.answers_page(asked.clone(), accounts(&[account(FAR, 7)]));
    let profile = "https://unknown.example/@cat";
    for path in [
        search_for(profile),
        resolve_all(profile).replace("&resolve=true", ""),
    ] {
        assert!(scene.accts(&ann, &path).await.is_empty(), "{path}");
    }
    assert_eq!(scene.paths(), [], "not without resolve=true");
    assert_eq!(scene.accts(&ann, &resolve_all(profile)).await, [FAR]);
    let same = [
        "https://unknown.example/@cat/",
        "https://UNKNOWN.example/@Cat",
    ];
    for address in same.into_iter().chain([profile]) {
        for path in [search_for(address), resolve(address), resolve_all(address)] {
            assert_eq!(scene.accts(&ann, &path).await, [FAR], "{path}");
            assert!(scene.accts(&bob, &path).await.is_empty(), "{path}");
        }
    }
    // What its server does not call its address is not.
    for other in [
        "https://unknown.example/users/cat",
        "https://other.example/@cat@unknown.example",
    ] {
        assert!(scene.accts(&ann, &resolve_all(other)).await.is_empty());
    }
    let statuses = resolve_all(profile) + "&type=statuses";
    assert!(scene.accts(&ann, &statuses).await.is_empty());
    assert_eq!(scene.paths(), [asked]);
    // Accounts of this server have addresses too.
    let of_bob = format!("{}/@bob", scene.base);
    assert_eq!(scene.accts(&ann, &search_for(&of_bob)).await, ["bob"]);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_whom_the_asker_does_not_know_of() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(bob.id, "bob-token").await;
    let name = scene.own("cat");
    let found_by_bob = accounts(&[account("cat", 7)]);
    scene.answers_page(searched_account("bob-token", &name), found_by_bob);
    assert_eq!(scene.accts(&bob, &resolve(&name)).await.len(), 1);
    // Bob's server is not one that Ann knows of, whatever he has found there.
    let host = name.split_once('@').unwrap().1.to_owned();
    for text in [
        name.clone(),
        format!("dog@{host}"),
        "cat@".to_owned(),
        "@".to_owned(),
        format!("cat@{host}/x"),
        format!("a@b@{host}"),
        format!("cat@localhost:{}", host.rsplit(':').next().unwrap()),
        format!("{}@{host}", "c".repeat(400)),
    ] {
        assert!(
            scene.accts(&ann, &resolve(&text)).await.is_empty(),
            "{text}"
        );
        let all = scene.json(&resolve_all(&text)).await;
        assert_eq!(all["accounts"], json!([]), "{text}");
    }
    assert_eq!(scene.paths().len(), 1);
    // Once it is, it is asked as for an account that nobody has.
    scene.public().await;
    for text in [name, format!("dog@{host}")] {
        assert!(scene.accts(&ann, &resolve(&text)).await.is_empty());
    }
    let asked = [looked_up_account("cat"), looked_up_account("dog")];
    assert_eq!(scene.paths()[1..], asked);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_account_than_the_one_asked_for_is_dropped() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    scene.public().await;
    let others = [
        account("dog@victim.example", 9),
        account("cat", 10),
        account("cat@unknown.example.evil.example", 11),
        json!({ "acct": FAR }),
        json!(7),
    ];
    scene.answers_page(searched_account("ann-token", FAR), accounts(&others));
    scene.answers_page(looked_up_account("cat"), account("dog@victim.example", 9));
    assert!(scene.accts(&ann, &resolve(FAR)).await.is_empty());
    let own = scene.own("cat");
    assert!(scene.accts(&bob, &resolve(&own)).await.is_empty());
    for who in [&ann, &bob] {
        for name in ["dog", "cat", "dog@victim.example"] {
            assert!(scene.accts(who, &search_for(name)).await.is_empty());
        }
    }
    assert_eq!(scene.paths().len(), 2);
    // What was not found is not asked for again at once.
    assert!(scene.accts(&ann, &resolve(FAR)).await.is_empty());
    assert_eq!(scene.paths().len(), 2);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_share_the_room_and_the_quota_of_addresses() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    scene.home_of(ann.id, "ann-token").await;
    let fail = |status| *scene.upstream.fails_with.lock() = status;
    fail(Some(StatusCode::UNAUTHORIZED));
    assert!(scene.accts(&ann, &resolve(FAR)).await.is_empty());
    // A refusal of this search says nothing of the token elsewhere.
    let credentials = scene.store.read(credential::list).await.unwrap();
    assert!(credentials.iter().all(|it| it.quarantine.is_none()));
    fail(Some(StatusCode::TOO_MANY_REQUESTS));
    assert!(
        scene
            .accts(&ann, &resolve("one@a.example"))
            .await
            .is_empty()
    );
    fail(None);
    // From now on the quota is used up, for addresses too.
    assert!(
        scene
            .accts(&ann, &resolve("two@a.example"))
            .await
            .is_empty()
    );
    let address = "/api/v2/search?q=https%3A%2F%2Fa.example%2F%40u%2F1&resolve=true";
    ann.get(address).await;
    let asked = [FAR, "one@a.example"].map(|name| searched_account("ann-token", name));
    assert_eq!(scene.paths(), asked);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_account_published_resolves_no_names_for_others() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    let owner = Owner::Account(bob.id);
    let source = scene.source(owner, Audience::Public, None).await;
    scene.feed_of(source).poll(&[status(1)]).await;
    scene.accts(&ann, &resolve(&scene.own("cat"))).await;
    assert!(scene.paths().is_empty());
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_makes_an_account_up_shows_nothing_of_what_others_have() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(bob.id, "bob-token").await;
    let name = scene.own("cat");
    let asked = searched_account("bob-token", &name);
    scene.answers_page(asked, accounts(&[account("cat", 7)]));
    assert_eq!(scene.accts(&bob, &resolve(&name)).await.len(), 1);
    // Ann's own server says that it knows that account, too.
    let second = scene.moved().await;
    second.home_of(ann.id, "ann-token").await;
    let mut made_up = account(&name, 8);
    made_up["display_name"] = json!("Made up");
    let asked = searched_account("ann-token", &name);
    second.answers_page(asked, accounts(&[made_up]));
    assert_eq!(second.accts(&ann, &resolve(&name)).await, [&*name]);
    for (who, shown) in [(&ann, "Made up"), (&bob, "Cat")] {
        let path = format!("/api/v1/accounts/{}", who.look_up(&name).await);
        assert_eq!(who.get(&path).await["display_name"], shown);
    }
    second.close().await;
}
