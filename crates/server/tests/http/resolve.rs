//! Posts that are found by their addresses on other servers.

use std::time::{Duration, Instant};

use driftline_core::names::audience::Audience;
use driftline_server::testing::wait;
use driftline_store::{Owner, credential, find};
use reqwest::{StatusCode, Url};
use serde_json::{Value, json};

use crate::{
    people::Person,
    threads_fetched::{AskedPath, MANY, Scene, json_of, private},
    world::{id, status},
};

/// An address on a server of which nothing is stored.
const FAR: &str = "https://unknown.example/@cat/5";

fn search_for(address: &str) -> String {
    let mut url = Url::parse("http://a/api/v2/search").unwrap();
    url.query_pairs_mut().append_pair("q", address);
    format!("{}?{}", url.path(), url.query().unwrap())
}

fn resolve(address: &str) -> String {
    format!("{}&resolve=true", search_for(address))
}

fn searched_with(token: &str, address: &str) -> AskedPath {
    let path = format!("{}&type=statuses", resolve(address));
    (Some(format!("Bearer {token}")), path)
}

/// The request for an account by its name with a host.
pub(crate) fn searched_account(token: &str, name: &str) -> AskedPath {
    let path = resolve(&format!("@{name}"));
    (
        Some(format!("Bearer {token}")),
        format!("{path}&type=accounts"),
    )
}

/// The request for a server's own account by its name.
pub(crate) fn looked_up_account(name: &str) -> AskedPath {
    (None, format!("/api/v1/accounts/lookup?acct={name}"))
}

fn looked_up(id: u64) -> AskedPath {
    (None, format!("/api/v1/statuses/{id}"))
}

pub(crate) fn found(posts: &[Value]) -> Value {
    json!({ "accounts": [], "statuses": posts, "hashtags": [] })
}

/// A post with that address for people.
fn at(address: &str, n: u64) -> Value {
    let mut json = json_of(n, None);
    json["uri"] = json!(format!("{address}#activity"));
    json["url"] = json!(address);
    json
}

impl Scene {
    pub(crate) fn answers_page(&self, asked: AskedPath, answer: Value) {
        self.upstream.pages.lock().insert(asked, answer);
    }

    pub(crate) fn paths(&self) -> Vec<AskedPath> {
        self.upstream.asked_paths.lock().clone()
    }

    /// The addresses of what a search shows.
    async fn addresses(&self, who: Option<&Person>, path: &str) -> Vec<String> {
        let found = match who {
            Some(person) => person.get(path).await,
            None => self.json(path).await,
        };
        let all = found["statuses"].as_array().unwrap().iter();
        all.map(|status| status["url"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_found_with_ones_own_token_and_for_oneself() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    let asked = searched_with("ann-token", FAR);
    scene.answers_page(asked.clone(), found(&[at(FAR, 7)]));
    assert!(
        scene
            .addresses(Some(&ann), &search_for(FAR))
            .await
            .is_empty()
    );
    assert_eq!(scene.paths(), [], "not without resolve=true");
    assert_eq!(scene.addresses(Some(&ann), &resolve(FAR)).await, [FAR]);
    assert_eq!(scene.paths(), [asked]);
    let body = ann.get(&search_for(FAR)).await;
    let path = format!("/api/v1/statuses/{}", id(&body["statuses"][0]));
    assert_eq!(ann.get(&path).await["url"], FAR);
    assert!(ann.page("/api/v1/timelines/public").await.is_empty());
    // What her token showed is hers, and nobody else's request is sent with it.
    assert!(scene.addresses(Some(&bob), &resolve(FAR)).await.is_empty());
    assert!(scene.addresses(None, &resolve(FAR)).await.is_empty());
    let answer = scene.get_with(&path, &bob.token).await;
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert_eq!(scene.paths().len(), 1);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_is_found_without_a_token_on_a_server_that_is_read_in_public() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    scene.public().await;
    let address = format!("{}/@drifter/5", scene.origin);
    scene.answers_page(looked_up(5), at(&address, 5));
    assert!(scene.addresses(None, &resolve(&address)).await.is_empty());
    assert_eq!(scene.paths(), [], "nobody is asked for strangers");
    let shown = scene.addresses(Some(&ann), &resolve(&address)).await;
    assert_eq!(shown, [&*address]);
    let shown = scene.addresses(None, &search_for(&address)).await;
    assert_eq!(shown, [&*address], "it is public");
    assert!(scene.page("/api/v1/timelines/public").await.is_empty());
    // By the name across servers, and never what only some may see.
    let name = format!("{}/users/drifter/statuses/6", scene.origin);
    let mut named = at(&format!("{}/@drifter/6", scene.origin), 6);
    named["uri"] = json!(name);
    scene.answers_page(looked_up(6), named);
    assert_eq!(scene.addresses(Some(&ann), &resolve(&name)).await.len(), 1);
    let hidden = format!("{}/@drifter/8", scene.origin);
    scene.answers_page(looked_up(8), private(at(&hidden, 8)));
    assert!(
        scene
            .addresses(Some(&ann), &resolve(&hidden))
            .await
            .is_empty()
    );
    assert_eq!(scene.paths(), [5, 6, 8].map(looked_up));
    let stored = scene.store.read(move |tx| find::posts_at(tx, &hidden));
    assert_eq!(stored.await.unwrap(), [], "it is not even stored");
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_post_is_its_finders_alone_and_changes_nothing_for_others() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(bob.id, "bob-token").await;
    let address = format!("{}/@drifter/5", scene.origin);
    let asked = searched_with("bob-token", &address);
    scene.answers_page(asked.clone(), found(&[private(at(&address, 5))]));
    let (to_bob, to_ann) = (Some(&bob), Some(&ann));
    assert_eq!(scene.addresses(to_bob, &resolve(&address)).await.len(), 1);
    // Bob's server is not one that all know of.
    assert!(scene.addresses(to_ann, &resolve(&address)).await.is_empty());
    assert_eq!(scene.paths(), [asked]);
    // Once it is, it is asked as for a post that nobody has.
    scene.public().await;
    let unknown = format!("{}/@drifter/6", scene.origin);
    for address in [&address, &unknown] {
        for who in [to_ann, None] {
            assert!(scene.addresses(who, &resolve(address)).await.is_empty());
        }
    }
    assert_eq!(scene.paths()[1..], [looked_up(5), looked_up(6)]);
    // Ann finds it through her own server, although the other one has it for Bob alone.
    let second = scene.moved().await;
    second.home_of(ann.id, "ann-token").await;
    let asked = searched_with("ann-token", &address);
    second.answers_page(asked.clone(), found(&[at(&address, 77)]));
    assert_eq!(second.addresses(to_ann, &resolve(&address)).await.len(), 1);
    assert_eq!(second.paths(), [asked]);
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_post_than_the_one_asked_for_is_dropped() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.home_of(ann.id, "ann-token").await;
    scene.public().await;
    let other = "https://victim.example/@dog/9";
    let asked = searched_with("ann-token", FAR);
    scene.answers_page(asked, found(&[at(other, 9)]));
    let address = format!("{}/@drifter/5", scene.origin);
    scene.answers_page(looked_up(5), at(other, 5));
    assert!(scene.addresses(Some(&ann), &resolve(FAR)).await.is_empty());
    let shown = scene.addresses(Some(&bob), &resolve(&address)).await;
    assert!(shown.is_empty(), "{shown:?}");
    assert_eq!(scene.paths().len(), 2);
    for who in [&ann, &bob] {
        assert!(
            scene
                .addresses(Some(who), &search_for(other))
                .await
                .is_empty()
        );
    }
    // What was not found is not asked for again at once.
    assert!(scene.addresses(Some(&ann), &resolve(FAR)).await.is_empty());
    assert_eq!(scene.paths().len(), 2);
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_nobody_reads_in_public_are_not_asked() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    let bob = Person::new(&scene, "bob").await;
    scene.public().await;
    let first = scene.upstream.clone();
    let read = scene.origin.clone();
    let second = scene.moved().await;
    let port = second.origin.rsplit(':').next().unwrap();
    for address in [
        format!("{}/@drifter/5", second.origin),
        format!("http://localhost:{port}/@drifter/5"),
        format!("{read}@127.0.0.1:{port}/@drifter/5"),
        format!("{read}/@drifter/..%2f5"),
        format!("{read}/about"),
        format!("{read}/api/v1/statuses/5"),
        format!("{read}/@drifter/5{}", "0".repeat(2_000)),
    ] {
        let shown = second.addresses(Some(&bob), &resolve(&address)).await;
        assert!(shown.is_empty(), "{address}");
    }
    // Through her own server she asks for any, of that server alone.
    second.home_of(ann.id, "ann-token").await;
    assert!(second.addresses(Some(&ann), &resolve(FAR)).await.is_empty());
    assert_eq!(second.paths(), [searched_with("ann-token", FAR)]);
    assert_eq!(*first.asked_paths.lock(), []);
    second.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accounts_source_reaches_no_private_networks_and_serves_no_others() {
    for reaches in [true, false] {
        let scene = Scene::reaching(MANY, reaches).await;
        let ann = Person::new(&scene, "ann").await;
        let bob = Person::new(&scene, "bob").await;
        let owner = Owner::Account(bob.id);
        let source = scene
            .source(owner, Audience::Public, Some("bob-token"))
            .await;
        scene.feed_of(source).poll(&[status(1)]).await;
        let address = format!("{}/@drifter/5", scene.origin);
        scene.addresses(Some(&ann), &resolve(&address)).await;
        assert!(scene.paths().is_empty());
        scene.addresses(Some(&bob), &resolve(&address)).await;
        assert_eq!(!scene.paths().is_empty(), reaches);
        scene.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_server_is_waited_for_for_a_short_while() {
    let scene = Scene::new(0).await;
    let ann = Person::new(&scene, "ann").await;
    scene.home_of(ann.id, "ann-token").await;
    let asked = searched_with("ann-token", FAR);
    scene.answers_page(asked.clone(), found(&[at(FAR, 7)]));
    let began = Instant::now();
    let path = resolve(FAR);
    let (first, second) = tokio::join!(
        scene.addresses(Some(&ann), &path),
        scene.addresses(Some(&ann), &path),
    );
    assert!(first.is_empty() && second.is_empty());
    assert!(
        began.elapsed() >= Duration::from_secs(2),
        "it is waited for"
    );
    // Others of her addresses take no more room than one more.
    let other = |n: u64| format!("https://unknown.example/@cat/{n}");
    for n in 10..13 {
        scene.addresses(Some(&ann), &resolve(&other(n))).await;
    }
    let expected = [asked, searched_with("ann-token", &other(10))];
    assert_eq!(scene.paths(), expected);
    scene.upstream.may_answer.add_permits(MANY);
    wait("the answer", async || {
        scene.addresses(Some(&ann), &search_for(FAR)).await == [FAR]
    })
    .await;
    scene.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_throttles_or_refuses_costs_an_empty_answer() {
    let scene = Scene::new(MANY).await;
    let ann = Person::new(&scene, "ann").await;
    scene.home_of(ann.id, "ann-token").await;
    scene.public().await;
    let address = |n: u64| format!("{}/@drifter/{n}", scene.origin);
    let fail = |status| *scene.upstream.fails_with.lock() = status;
    fail(Some(StatusCode::UNAUTHORIZED));
    assert!(
        scene
            .addresses(Some(&ann), &resolve(&address(5)))
            .await
            .is_empty()
    );
    // The token may not search, or the server shows this one post to nobody: that says nothing of others.
    let credentials = scene.store.read(credential::list).await.unwrap();
    assert_eq!(credentials.len(), 2);
    assert!(credentials.iter().all(|it| it.quarantine.is_none()));
    fail(None);
    scene.answers_page(looked_up(6), at(&address(6), 6));
    assert_eq!(
        scene
            .addresses(Some(&ann), &resolve(&address(6)))
            .await
            .len(),
        1
    );
    fail(Some(StatusCode::TOO_MANY_REQUESTS));
    assert!(
        scene
            .addresses(Some(&ann), &resolve(&address(7)))
            .await
            .is_empty()
    );
    // From now on the quota is used up, whatever the server would answer.
    fail(None);
    scene.answers_page(looked_up(8), at(&address(8), 8));
    assert!(
        scene
            .addresses(Some(&ann), &resolve(&address(8)))
            .await
            .is_empty()
    );
    let both = |n: u64| [searched_with("ann-token", &address(n)), looked_up(n)];
    assert_eq!(scene.paths(), [both(5), both(6), both(7)].concat());
    scene.close().await;
}
