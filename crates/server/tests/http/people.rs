//! Accounts, apps and browsers for the tests of people's log-ins.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use driftline_api::{
    App,
    auth::PassphraseHasher,
    people::{Mail, MailPort},
};
use driftline_core::social::{
    AccountName, AccountState, HashCost, MailAddress, Passphrase, PassphraseHash, Role,
};
use driftline_db::testing::Fresh;
use driftline_store::{
    LocalAccountId, local_ids,
    social::local_account::{self, NewAccount},
};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use reqwest::{Client, Method, Response, StatusCode, redirect::Policy};
use serde_json::{Value, json};

use crate::world::{World, id, parsed};

pub(crate) const PASSPHRASE: &str = "correct horse battery";
pub(crate) const OOB: &str = "urn:ietf:wg:oauth:2.0:oob";
/// A verifier of PKCE and its challenge (RFC 7636, appendix B).
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
pub(crate) const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// What passphrases cost here: next to nothing.
const CHEAP: HashCost = HashCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};

/// Mail that was sent.
#[derive(Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Vec<Mail>>>);

impl MailPort for Mailbox {
    fn send(&self, mail: Mail) -> BoxFuture<'static, ()> {
        self.0.lock().push(mail);
        Box::pin(async {})
    }
}

impl Mailbox {
    pub(crate) fn all(&self) -> Vec<Mail> {
        self.0.lock().clone()
    }
}

/// A server with people, whose mail is kept and whose passphrases cost nothing.
pub(crate) async fn people_world(change: impl FnOnce(&mut App)) -> (World, Mailbox) {
    people_world_on(Fresh::sqlite(), change).await
}

/// The same, on a database.
pub(crate) async fn people_world_on(
    fresh: Fresh,
    change: impl FnOnce(&mut App),
) -> (World, Mailbox) {
    let mailbox = Mailbox::default();
    let mail = Arc::new(mailbox.clone());
    let world = World::on(fresh, |app| {
        app.people.hasher = PassphraseHasher::new(CHEAP, 4);
        app.people.mail = mail;
        change(app);
    })
    .await;
    (world, mailbox)
}

/// A clock that a test sets. Each test that uses one has a clock of its own.
#[macro_export]
macro_rules! test_clock {
    () => {{
        static NOW_MS: std::sync::atomic::AtomicI64 =
            std::sync::atomic::AtomicI64::new($crate::world::START_MS);
        let clock: fn() -> i64 = || NOW_MS.load(std::sync::atomic::Ordering::SeqCst);
        (clock, &NOW_MS)
    }};
}

pub(crate) fn pass(now_ms: &AtomicI64, by_ms: i64) {
    now_ms.fetch_add(by_ms, Ordering::SeqCst);
}

/// The hash of a passphrase.
pub(crate) async fn hashed(passphrase: &str) -> PassphraseHash {
    let chosen = Passphrase::choose(&passphrase.to_owned().into()).unwrap();
    PassphraseHasher::new(CHEAP, 1).hash(chosen).await.unwrap()
}

impl World {
    /// An active account.
    pub(crate) async fn account(&self, name: &str) -> LocalAccountId {
        let new = NewAccount {
            name: AccountName::new(name).unwrap(),
            mail: MailAddress::new(format!("{name}@mail.example")).unwrap(),
            passphrase: hashed(PASSPHRASE).await,
            role: Role::Member,
            awaits_approval: false,
            reason: String::new(),
        };
        let create = move |tx: &mut driftline_store::Tx<'_>| {
            local_account::create(tx, &new, driftline_store::testing::START_MS)
        };
        let created = self.store.write(local_ids::root(), create).await;
        let id = created.unwrap().unwrap().id;
        self.set_state(id, AccountState::Active).await;
        id
    }

    /// Changes a state as another process would: nothing in this one is told.
    pub(crate) async fn set_state(&self, account: LocalAccountId, to: AccountState) {
        let change =
            move |tx: &mut driftline_store::Tx<'_>| local_account::change_state(tx, account, to);
        let root = local_account::root(account);
        self.store.write(root, change).await.unwrap().unwrap();
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Response {
        let request = self.client.post(format!("{}{path}", self.base));
        let request = request.header("content-type", "application/json");
        request.body(body.to_string()).send().await.unwrap()
    }

    pub(crate) async fn get_with(&self, path: &str, token: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.base));
        request.bearer_auth(token).send().await.unwrap()
    }

    /// The status of the account that a token is of.
    pub(crate) async fn verified(&self, token: &str) -> StatusCode {
        let path = "/api/v1/accounts/verify_credentials";
        self.get_with(path, token).await.status()
    }

    /// Registers an app.
    pub(crate) async fn app(&self, name: &str, redirect_uri: &str, scopes: &str) -> Registered {
        let body = json!({ "client_name": name, "redirect_uris": redirect_uri, "scopes": scopes });
        let answer = self.post("/api/v1/apps", &body).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let app = parsed(answer).await;
        Registered {
            id: app["client_id"].as_str().unwrap().to_owned(),
            secret: app["client_secret"].as_str().unwrap().to_owned(),
            redirect_uri: redirect_uri.to_owned(),
            scopes: scopes.to_owned(),
        }
    }

    /// A token of an account by the password grant.
    pub(crate) async fn token(&self, app: &Registered, name: &str, scopes: &str) -> String {
        let body = json!({
            "grant_type": "password", "client_id": app.id, "client_secret": app.secret,
            "username": name, "password": PASSPHRASE, "scope": scopes,
        });
        let answer = self.post("/oauth/token", &body).await;
        let status = answer.status();
        let answer = parsed(answer).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["access_token"].as_str().unwrap().to_owned()
    }

    pub(crate) fn browser(&self) -> Browser {
        let client = Client::builder().redirect(Policy::none()).no_proxy();
        Browser {
            base: self.base.clone(),
            client: client.build().unwrap(),
            cookies: BTreeMap::new(),
        }
    }
}

/// A person with a token.
pub(crate) struct Person {
    base: String,
    client: Client,
    pub(crate) id: LocalAccountId,
    pub(crate) token: String,
}

impl Person {
    /// One with an account of its own.
    pub(crate) async fn new(world: &World, name: &str) -> Person {
        let id = world.account(name).await;
        let app = world.app("Reader", OOB, "read write follow").await;
        Person {
            base: world.base.clone(),
            client: world.client.clone(),
            id,
            token: world.token(&app, name, "read write follow").await,
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: &Value,
    ) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("{}{path}", self.base));
        let mut request = request.bearer_auth(&self.token);
        if !body.is_null() {
            request = request.header("content-type", "application/json");
            request = request.body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        (answer.status(), parsed(answer).await)
    }

    pub(crate) async fn ok(&self, method: Method, path: &str, body: &Value) -> Value {
        let (status, answer) = self.send(method, path, body).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.ok(Method::GET, path, &Value::Null).await
    }

    pub(crate) async fn post(&self, path: &str) -> Value {
        self.ok(Method::POST, path, &Value::Null).await
    }

    pub(crate) async fn post_json(&self, path: &str, body: &Value) -> Value {
        self.ok(Method::POST, path, body).await
    }

    pub(crate) async fn page(&self, path: &str) -> Vec<Value> {
        let body = self.get(path).await;
        body.as_array().cloned().unwrap_or_else(|| panic!("{body}"))
    }

    /// The ID of the account of an `acct`.
    pub(crate) async fn look_up(&self, acct: &str) -> u64 {
        let path = format!("/api/v1/accounts/lookup?acct={acct}");
        id(&self.get(&path).await)
    }

    /// Follows the account of an `acct`, and returns its ID.
    pub(crate) async fn follow(&self, acct: &str) -> String {
        let id = self.look_up(acct).await;
        self.post(&format!("/api/v1/accounts/{id}/follow")).await;
        id.to_string()
    }
}

/// An app that is registered.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) redirect_uri: String,
    pub(crate) scopes: String,
}

impl Registered {
    /// The address of the page of consent.
    pub(crate) fn authorize(&self, more: &[(&str, &str)]) -> String {
        let mut params = vec![
            ("response_type", "code"),
            ("client_id", &self.id),
            ("redirect_uri", &self.redirect_uri),
            ("scope", &self.scopes),
        ];
        params.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        params.extend(more);
        format!("/oauth/authorize?{}", form(&params))
    }

    /// What it sends to exchange a code.
    pub(crate) fn exchange(&self, code: &str, verifier: Option<&str>) -> Value {
        let mut body = json!({
            "grant_type": "authorization_code", "code": code, "client_id": self.id,
            "client_secret": self.secret, "redirect_uri": self.redirect_uri,
        });
        if let Some(verifier) = verifier {
            body["code_verifier"] = json!(verifier);
        }
        body
    }
}

/// A browser without JavaScript: it keeps cookies and sends forms.
pub(crate) struct Browser {
    base: String,
    pub(crate) client: Client,
    pub(crate) cookies: BTreeMap<String, String>,
}

impl Browser {
    fn cookie_header(&self) -> String {
        let cookies = self.cookies.iter();
        let cookies: Vec<String> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        cookies.join("; ")
    }

    fn keep_cookies(&mut self, answer: &Response) {
        for set in answer.headers().get_all("set-cookie") {
            let set = set.to_str().unwrap();
            assert!(
                set.contains("HttpOnly") && set.contains("SameSite=Lax"),
                "{set}"
            );
            let (name, value) = set.split(';').next().unwrap().split_once('=').unwrap();
            match value {
                "" => self.cookies.remove(name),
                value => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response {
        let request = self.client.get(format!("{}{path}", self.base));
        let request = request.header("cookie", self.cookie_header());
        let answer = request.send().await.unwrap();
        self.keep_cookies(&answer);
        answer
    }

    pub(crate) async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Response {
        self.submit_with(path, fields, &[("sec-fetch-site", "same-origin")])
            .await
    }

    pub(crate) async fn submit_with(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = self
            .client
            .post(format!("{}{path}", self.base))
            .header("cookie", self.cookie_header())
            .header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(form(fields)).send().await.unwrap();
        self.keep_cookies(&answer);
        answer
    }

    /// Logs in on the page, and returns the answer.
    pub(crate) async fn log_in(&mut self, who: &str, passphrase: &str) -> Response {
        let page = self.get("/log-in").await.text().await.unwrap();
        let token = hidden(&page, "form_token");
        let fields = [
            ("form_token", &*token),
            ("who", who),
            ("passphrase", passphrase),
        ];
        self.submit("/log-in", &fields).await
    }

    /// Sees the page of consent, and answers it.
    pub(crate) async fn decide(&mut self, address: &str, decision: &str) -> Response {
        let page = self.get(address).await;
        assert_eq!(page.status(), StatusCode::OK, "{address}");
        let page = page.text().await.unwrap();
        let mut fields = hidden_fields(&page);
        fields.push(("decision".to_owned(), decision.to_owned()));
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        self.submit("/oauth/authorize", &fields).await
    }

    /// The code that an app is sent once its person has allowed it.
    pub(crate) async fn allow(&mut self, app: &Registered, more: &[(&str, &str)]) -> String {
        let answer = self.decide(&app.authorize(more), "allow").await;
        if app.redirect_uri == OOB {
            assert_eq!(answer.status(), StatusCode::OK);
            let page = answer.text().await.unwrap();
            let (_, rest) = page.split_once("<code class=\"copy\">").unwrap();
            return rest.split('<').next().unwrap().to_owned();
        }
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        param(&location(&answer), "code").unwrap()
    }
}

pub(crate) fn location(answer: &Response) -> String {
    answer.headers()["location"].to_str().unwrap().to_owned()
}

pub(crate) fn param(address: &str, name: &str) -> Option<String> {
    let url = url::Url::parse(address).unwrap();
    let mut pairs = url.query_pairs();
    pairs
        .find(|(known, _)| known == name)
        .map(|(_, value)| value.into_owned())
}

pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.extend_pairs(fields).finish()
}

/// The hidden fields of a page's first form, as they are before escapes.
pub(crate) fn hidden_fields(page: &str) -> Vec<(String, String)> {
    let form = page
        .split("<form")
        .nth(1)
        .unwrap()
        .split("</form>")
        .next()
        .unwrap();
    let inputs = form.split("<input type=\"hidden\" ").skip(1);
    let attribute = |input: &str, name: &str| {
        let (_, rest) = input.split_once(&format!("{name}=\"")).unwrap();
        let value = rest.split('"').next().unwrap();
        value
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&amp;", "&")
    };
    inputs
        .map(|input| (attribute(input, "name"), attribute(input, "value")))
        .collect()
}

pub(crate) fn hidden(page: &str, name: &str) -> String {
    let fields = hidden_fields(page);
    let found = fields.into_iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name} in {page}")).1
}

/// The claims of a JWT.
pub(crate) fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap()
}
