//! An account that reads what Driftline mirrored, over HTTP as an app does.

use std::collections::BTreeSet;

use axum::Router;
use driftline_api::{
    OwnInstance,
    auth::{Authorization, PassphraseHasher, TokenKeys},
    people::People,
};
use driftline_core::social::{MailAddress, Passphrase, Role};
use driftline_mirror::{PollersOptions, UpstreamAccess};
use driftline_runtime::now_ms;
use driftline_server::{
    Daemon, HttpOptions,
    admin::{ChangeAccountHome, CreateAccount, Host, PauseSource, Request as _},
};
use driftline_store::{SourceKey, Store, StoreError, export};
use reqwest::Client;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use crate::{error::CliError, listen};

/// What the account found in its home timeline.
#[derive(Debug, Default, Serialize)]
pub(super) struct Home {
    /// Its name.
    account: String,
    /// Posts that it read.
    pub(super) read: usize,
    /// Posts that it read again.
    pub(super) repeated: usize,
    /// Posts that are stored and not deleted, and that it did not find.
    pub(super) missing: usize,
    /// Pages that it asked for.
    pages: usize,
}

impl Home {
    /// It in words.
    pub(super) fn line(&self) -> String {
        format!(
            "An account, {}, logged in over HTTP as an app does, and paged through its home timeline: {} posts in {} pages, {} missing, {} twice.",
            self.account, self.read, self.pages, self.missing, self.repeated
        )
    }
}

/// Makes an account whose home timeline is that source, and reads it to its end. The source is not polled any more.
///
/// # Errors
/// [`CliError`] if something of it cannot be done.
pub(super) async fn read(
    store: &Store,
    access: UpstreamAccess,
    (source, name): (SourceKey, &str),
) -> Result<Home, CliError> {
    let host = Host::of(store);
    let pause = PauseSource {
        name: name.to_owned(),
        paused: true,
    };
    pause.clone().execute(&host).await?;
    let passphrase = random_text()?;
    let chosen = SecretString::from(passphrase.clone());
    let chosen = Passphrase::choose(&chosen).map_err(CliError::failed)?;
    let hash = PassphraseHasher::default().hash(chosen).await;
    let account = CreateAccount {
        name: ACCOUNT.parse().map_err(CliError::failed)?,
        mail: MAIL.parse::<MailAddress>().map_err(CliError::failed)?,
        role: Role::Member,
        passphrase: hash.map_err(CliError::failed)?,
    };
    let name = account.name.clone();
    account.execute(&host).await?;
    let home = ChangeAccountHome {
        name,
        add: vec![pause.name],
        remove: Vec::new(),
    };
    home.execute(&host).await?;
    let expected = store
        .read(move |tx| {
            let rows = export::rows(tx, source, 0, u32::MAX)?.into_iter();
            let kept = rows.filter(|row| row.post.deleted_at_ms.is_none());
            Ok::<_, StoreError>(kept.filter_map(|row| row.post.uri).collect())
        })
        .await?;

    let nonce = store.read(driftline_store::nonce).await?;
    let people = People::new(TokenKeys::new(random()?, random()?, now_ms()), &nonce);
    let daemon = Daemon::start(
        store.clone(),
        access,
        PollersOptions::new("home"),
        None,
        None,
    );
    let router = daemon.router(HttpOptions {
        metrics: None,
        public_base: None,
        own: OwnInstance::default(),
        authorization: Authorization::Closed,
        people,
        ids_for_anyone: false,
    });
    let read = over_http(router, &passphrase, expected).await;
    daemon.stop().await;
    read
}

async fn over_http(
    router: Router,
    passphrase: &str,
    expected: BTreeSet<String>,
) -> Result<Home, CliError> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| listen::broke(&error))?;
    let address = listener
        .local_addr()
        .map_err(|error| listen::broke(&error))?;
    let (end, ended) = oneshot::channel::<()>();
    let serving = listen::serve(listener, router, async {
        drop(ended.await);
        Ok(())
    });
    let reading = async {
        let read = page_through(&format!("http://{address}"), passphrase, expected).await;
        drop(end);
        read.map_err(|error| CliError::failed(format!("the home timeline was not read: {error}")))
    };
    let (served, read) = tokio::join!(serving, reading);
    served.and(read)
}

async fn page_through(
    base: &str,
    passphrase: &str,
    expected: BTreeSet<String>,
) -> Result<Home, reqwest::Error> {
    let client = Client::builder().no_proxy().build()?;
    let who = json!({ "who": ACCOUNT, "passphrase": passphrase });
    let log_in = client
        .post(format!("{base}/api/driftline/v1/log-in"))
        .header("content-type", "application/json")
        .body(who.to_string());
    let token = text_of(&parsed(log_in).await?["token"]);
    let mut home = Home {
        account: ACCOUNT.to_owned(),
        ..Home::default()
    };
    let (mut read, mut below) = (BTreeSet::new(), String::new());
    loop {
        let page = client
            .get(format!("{base}/api/v1/timelines/home?limit=40{below}"))
            .bearer_auth(&token);
        let page = parsed(page).await?;
        let posts = page.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(last) = posts.last() else { break };
        home.pages += 1;
        for post in posts {
            home.read += 1;
            home.repeated += usize::from(!read.insert(text_of(&post["uri"])));
        }
        below = format!("&max_id={}", text_of(&last["id"]));
    }
    home.missing = expected.difference(&read).count();
    Ok(home)
}

async fn parsed(request: reqwest::RequestBuilder) -> Result<Value, reqwest::Error> {
    let answer = request.send().await?.error_for_status()?;
    let body = answer.bytes().await?;
    Ok(serde_json::from_slice(&body).unwrap_or_default())
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn random_text() -> Result<String, CliError> {
    let bytes: [u8; 16] = random()?;
    Ok(bytes.map(|byte| format!("{byte:02x}")).concat())
}

fn random<const N: usize>() -> Result<[u8; N], CliError> {
    let mut bytes = [0; N];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| CliError::failed("the system has no random numbers"))?;
    Ok(bytes)
}

const ACCOUNT: &str = "ann";
const MAIL: &str = "ann@mail.example";
