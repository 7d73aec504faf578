//! Who attacks: strangers, the operator, apps, and people with tokens of all kinds.

use std::time::Duration;

use driftline_api::people::SignUpMode;
use driftline_core::{names::audience::Audience, social::AccountState};
use driftline_db::testing::Fresh;
use driftline_store::{
    LocalAccountId, Owner, local_ids,
    source::{self, NewSource},
    testing,
    timeline::{self, Range, Viewer},
};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::json;

use crate::{
    people::{OOB, Registered, people_world_on},
    world::{TOKEN, World, parsed, post_of, read_post, status, with_token},
};

use super::operation::Operation;

/// What nobody but Ann may be shown.
pub(super) const SECRET: &str = "what Ann alone may read";
/// The name of her source.
pub(super) const SOURCE: &str = "anns-home";
const ALL: &str = "read write follow push profile driftline:sources driftline:publish";

/// Somebody who sends requests.
pub(super) struct Caller {
    pub(super) name: &'static str,
    /// The value of `Authorization`.
    authorization: Option<String>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stranger,
    UnknownToken,
    FrozenAccount,
    Operator,
    App,
    Account,
    AccountOfFewScopes,
}

/// What a caller is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// What the operation answers to those who may call it.
    Served,
    /// One of these.
    Refused(&'static [u16]),
}

impl Caller {
    pub(super) fn sends(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.authorization {
            Some(value) => request.header("authorization", value),
            None => request,
        }
    }

    pub(super) fn expects(&self, operation: &Operation) -> Expected {
        use Expected::{Refused, Served};
        let is_of_people = operation.names("account") || operation.names("app");
        if operation.names("form") {
            return Refused(&[403]);
        }
        if operation.names("client") {
            return Refused(&[401, 403]);
        }
        if operation.reads_no_token() {
            return Served;
        }
        match self.kind {
            Kind::Stranger if operation.is_for_anyone() => Served,
            Kind::Stranger | Kind::UnknownToken => Refused(&[401]),
            Kind::FrozenAccount if is_of_people => Refused(&[403]),
            Kind::Operator if operation.is_for_anyone() || operation.takes("operator") => Served,
            // No account is theirs, and no app.
            Kind::Operator => Refused(&[403, 404, 422]),
            Kind::App if operation.is_for_anyone() || operation.takes("app") => Served,
            Kind::App if operation.takes("account") => Refused(&[422]),
            Kind::Account if operation.takes("account") => Served,
            Kind::AccountOfFewScopes if operation.takes("account") => {
                match operation.scopes("account") {
                    [] => Served,
                    _ => Refused(&[403]),
                }
            }
            Kind::Account | Kind::AccountOfFewScopes if operation.takes("app") => Refused(&[403]),
            // Their token is not the operator's.
            _ => Refused(&[401]),
        }
    }
}

/// A server with people, a public post, and one that Ann alone may read.
pub(super) struct Scene {
    pub(super) world: World,
    pub(super) callers: Vec<Caller>,
    /// The IDs of what is Ann's alone.
    pub(super) anns: Vec<String>,
    /// The IDs of what the world may know.
    pub(super) public: Vec<String>,
    /// Ann, who may see what is hers.
    pub(super) ann: String,
    /// The app that they use.
    app: Registered,
    /// What she keeps.
    pub(super) kept: Kept,
    /// What the other account keeps.
    pub(super) others: Kept,
}

/// The IDs of what an account keeps.
pub(super) struct Kept {
    pub(super) list: String,
    pub(super) filter: String,
    pub(super) keyword: String,
    /// A status of the filter.
    pub(super) filtered: String,
}

impl Kept {
    pub(super) fn ids(&self) -> [&String; 4] {
        [&self.list, &self.filter, &self.keyword, &self.filtered]
    }
}

impl Scene {
    pub(super) async fn new() -> Self {
        Self::on(Fresh::sqlite()).await
    }

    pub(super) async fn on(fresh: Fresh) -> Self {
        let change = |app: &mut driftline_api::App| {
            with_token(app);
            app.people.sign_up.mode = SignUpMode::Open;
            // Each route is tried many times, and who has failed waits 10 s for the next try otherwise.
            app.people.use_log_in_turns(1, Duration::from_secs(30));
        };
        let (world, _) = people_world_on(fresh, change).await;
        let ann = world.account("ann").await;
        world.account("bob").await;
        let carl = world.account("carl").await;
        let app = world.app("toot", OOB, ALL).await;
        let anns_token = world.token(&app, "ann", ALL).await;
        let mut feed = world.feed("home").await;
        feed.poll(&[status(5)]).await;
        let public = world.page("/api/v1/timelines/public").await;
        let mut anns = private_post(&world, ann).await;
        let devices = world
            .get_with("/api/driftline/v1/devices", &anns_token)
            .await;
        let devices = parsed(devices).await;
        anns.push(devices[0]["id"].as_str().unwrap().to_owned());
        let kept = keep(&world, &anns_token, &format!("{SOURCE} too"), &anns[0]).await;
        anns.extend(kept.ids().map(String::clone));
        let callers = callers(&world, &app, carl).await;
        let post = public[0]["id"].as_str().unwrap().to_owned();
        let bobs_token = world.token(&app, "bob", ALL).await;
        let others = keep(&world, &bobs_token, "another's", &post).await;
        Self {
            public: vec![
                post,
                public[0]["account"]["id"].as_str().unwrap().to_owned(),
                feed.source.id.to_string(),
            ],
            world,
            callers,
            anns,
            ann: anns_token,
            app,
            kept,
            others,
        }
    }
}

impl Scene {
    /// Bob's authorization with these scopes alone.
    pub(super) async fn with_scopes(&self, scopes: &str) -> Caller {
        let token = self.world.token(&self.app, "bob", scopes).await;
        Caller {
            name: "an account with some scopes",
            authorization: Some(format!("Bearer {token}")),
            kind: Kind::AccountOfFewScopes,
        }
    }
}

/// A source of Ann's own, with a public post of its upstream: its IDs.
async fn private_post(world: &World, ann: LocalAccountId) -> Vec<String> {
    let new = NewSource {
        owner: Owner::Account(ann),
        audience: Audience::Private,
        ..testing::new_source(&format!("ann/{SOURCE}"))
    };
    let add = move |tx: &mut driftline_store::Tx<'_>| source::add(tx, &new, testing::START_MS);
    let key = world.store.write(local_ids::root(), add).await;
    let key = key.unwrap().unwrap();
    let mut feed = testing::Feed::of(&world.store, key, read_post);
    feed.poll(Vec::new());
    let mut raw: serde_json::Value = serde_json::from_str(&status(6).to_post().raw).unwrap();
    raw["content"] = json!(SECRET);
    feed.poll(vec![post_of(6, &raw)]);
    let all = Range {
        limit: 40,
        ..Range::default()
    };
    let read = move |tx: &mut driftline_store::Tx<'_>| {
        timeline::source(tx, key, &all, Viewer::Account(ann))
    };
    let posts = world.store.read(read).await.unwrap();
    assert_eq!(posts.len(), 1);
    let id_among_anns = testing::START_MS.to_string();
    vec![posts[0].id.to_string(), id_among_anns, key.id.to_string()]
}

/// A list, and a filter of a word and a status, which they name so.
async fn keep(world: &World, token: &str, name: &str, status: &str) -> Kept {
    let post = async |path: &str, body: serde_json::Value| {
        let request = world.client.post(format!("{}{path}", world.base));
        let request = request.header("content-type", "application/json");
        let request = request.bearer_auth(token).body(body.to_string());
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        parsed(answer).await
    };
    let id = |entity: &serde_json::Value| entity["id"].as_str().unwrap().to_owned();
    let list = post("/api/v1/lists", json!({ "title": name })).await;
    let new = json!({
        "title": name, "context": ["account"], "keywords_attributes": [{ "keyword": name }],
    });
    let filter = post("/api/v2/filters", new).await;
    let path = format!("/api/v2/filters/{}/statuses", id(&filter));
    let filtered = post(&path, json!({ "status_id": status })).await;
    post(&format!("/api/v1/statuses/{status}/bookmark"), json!({})).await;
    Kept {
        list: id(&list),
        keyword: id(&filter["keywords"][0]),
        filter: id(&filter),
        filtered: id(&filtered),
    }
}

async fn callers(world: &World, app: &Registered, carl: LocalAccountId) -> Vec<Caller> {
    let bobs = world.token(app, "bob", ALL).await;
    let few = world.token(app, "bob", "push").await;
    let revoked = world.token(app, "bob", ALL).await;
    let body = json!({ "client_id": app.id, "client_secret": app.secret, "token": revoked });
    let answer = world.post("/oauth/revoke", &body).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let frozen = world.token(app, "carl", ALL).await;
    world.set_state(carl, AccountState::Frozen).await;
    let body = json!({
        "grant_type": "client_credentials", "client_id": app.id, "client_secret": app.secret,
        "scope": ALL,
    });
    let own = parsed(world.post("/oauth/token", &body).await).await;
    let own = own["access_token"].as_str().unwrap().to_owned();
    // The last character of a secret may hold bits that do not count.
    let middle = bobs.len() / 2;
    let other = if bobs.as_bytes()[middle] == b'A' {
        "B"
    } else {
        "A"
    };
    let forged = format!("{}{other}{}", &bobs[..middle], &bobs[middle + 1..]);
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4iLCJpYXQiOjE3NjcyMjU2MDB9.";
    let of = |name, kind, token: Option<String>| Caller {
        name,
        kind,
        authorization: token,
    };
    let bearer = |token: &str| Some(format!("Bearer {token}"));
    vec![
        of("a stranger", Kind::Stranger, None),
        of(
            "the operator's token in another scheme",
            Kind::Stranger,
            Some(format!("Basic {TOKEN}")),
        ),
        of("a forged token", Kind::UnknownToken, bearer(&forged)),
        of("an unsigned JWT", Kind::UnknownToken, bearer(unsigned)),
        of("a revoked token", Kind::UnknownToken, bearer(&revoked)),
        of(
            "a beginning of the operator's token",
            Kind::UnknownToken,
            bearer(&TOKEN[..34]),
        ),
        of("a frozen account", Kind::FrozenAccount, bearer(&frozen)),
        of("an app", Kind::App, bearer(&own)),
        of(
            "another account with too small a scope",
            Kind::AccountOfFewScopes,
            bearer(&few),
        ),
        of("the operator", Kind::Operator, bearer(TOKEN)),
        // The last: it may log itself out.
        of("another account", Kind::Account, bearer(&bobs)),
    ]
}
