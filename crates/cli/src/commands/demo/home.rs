//! An account that reads what Driftline mirrored, over HTTP as an app does.

use std::collections::{HashMap, HashSet};

use axum::Router;
use driftline_api::{
    OwnInstance,
    auth::{Authorization, PassphraseHasher, TokenKeys},
    people::People,
    transport::TrustedProxies,
};
use driftline_core::social::{MailAddress, Passphrase, Role};
use driftline_mirror::{PollersOptions, UpstreamAccess};
use driftline_runtime::now_ms;
use driftline_server::{
    Daemon, HttpOptions,
    admin::{ChangeAccountHome, CreateAccount, Host, PauseSource, Request as _},
};
use driftline_sim::{TruePost, Truth};
use driftline_store::{
    SourceKey, Store,
    export::{self, ExportRow},
};
use reqwest::Client;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot};

use super::devices::{self, Devices};
use crate::{error::CliError, listen};

/// What the account found in its home timeline, next to what the server has by its own record.
#[derive(Debug, Default, Serialize)]
pub(super) struct Home {
    /// Its name.
    account: &'static str,
    /// Posts that it read.
    read: usize,
    /// Posts that it read again.
    repeated: usize,
    /// Stored posts that the server has not deleted and that it did not find.
    missing: usize,
    /// Pages that it asked for.
    pages: usize,
    deleted: Deleted,
}

/// What became of the stored posts that the server has deleted.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Deleted {
    /// Marked as deleted.
    marked: usize,
    /// Boosts that left the timeline: a boost that is taken back is no deleted post.
    left_boosts: usize,
    /// Other posts that left the timeline, and whose look-ups proved nothing.
    left_others: usize,
    /// Still shown.
    shown: usize,
}

impl Home {
    /// Compares what it read with what is stored and with what the server has.
    pub(super) fn new(truth: &Truth, read: &HomeRead) -> Self {
        let truth = truth.posts.iter().map(|post| (post.id.as_str(), post));
        let truth: HashMap<&str, &TruePost> = truth.collect();
        let uris: HashSet<&String> = read.uris.iter().collect();
        let mut home = Self {
            account: ACCOUNT,
            read: read.uris.len(),
            repeated: read.uris.len() - uris.len(),
            pages: read.pages,
            ..Self::default()
        };
        for row in &read.stored {
            let post = truth.get(&*row.post.upstream_id);
            let Some(gone) = post.filter(|post| post.deleted_at_ms.is_some()) else {
                let is_found = row.post.uri.as_ref().is_some_and(|uri| uris.contains(uri));
                home.missing += usize::from(!is_found);
                continue;
            };
            let is_marked = row.post.deleted_at_ms.is_some();
            let count = match (is_marked, row.left_at_ms, &gone.boost_of) {
                (true, ..) => &mut home.deleted.marked,
                (false, Some(_), Some(_)) => &mut home.deleted.left_boosts,
                (false, Some(_), None) => &mut home.deleted.left_others,
                (false, None, _) => &mut home.deleted.shown,
            };
            *count += 1;
        }
        home
    }

    /// Whether it found all that it should, once.
    pub(super) fn is_complete(&self) -> bool {
        self.missing + self.repeated == 0
    }

    /// It in words.
    pub(super) fn line(&self) -> String {
        format!(
            "An account, {}, logged in over HTTP as an app does, and paged through its home timeline: {} posts in {} pages, {} missing, {} twice.",
            self.account, self.read, self.pages, self.missing, self.repeated
        )
    }

    /// What became of the posts that the server deleted, in words.
    pub(super) fn deleted_line(&self) -> String {
        let Deleted {
            marked,
            left_boosts,
            left_others,
            shown,
        } = self.deleted;
        let all = marked + left_boosts + left_others + shown;
        let parts = [
            (marked, "found deleted"),
            (
                left_boosts,
                "boosts that left the timeline, which is no proof that a post was deleted",
            ),
            (
                left_others,
                "others that left the timeline, whose look-ups proved nothing",
            ),
            (shown, "still shown"),
        ];
        let parts = parts.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        format!(
            "By the server's own record, {all} of the stored posts were deleted: {}.",
            parts.join("; ")
        )
    }
}

/// A home timeline as it was read over HTTP, and what is stored.
#[derive(Debug, Default)]
pub(super) struct HomeRead {
    /// The posts, in the order of the timeline.
    uris: Vec<String>,
    /// The posts that are no boosts, in the same order.
    originals: Vec<String>,
    pages: usize,
    stored: Vec<ExportRow>,
    /// Two devices of the account.
    pub(super) devices: Devices,
}

/// Makes an account whose home timeline is that source, reads it to its end, and has two devices of the account converge.
/// The source is not polled any more.
///
/// # Errors
/// [`CliError`] if something of it cannot be done.
pub(super) async fn read(
    store: &Store,
    access: UpstreamAccess,
    (source, name): (SourceKey, &str),
) -> Result<HomeRead, CliError> {
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
    let account_name = account.name.clone();
    account.execute(&host).await?;
    let home = ChangeAccountHome {
        name: account_name,
        add: vec![pause.name],
        remove: Vec::new(),
    };
    home.execute(&host).await?;
    let stored = store.read(move |tx| export::rows(tx, source, 0, u32::MAX));
    let stored = stored.await?;

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
        proxies: TrustedProxies::default(),
        own: OwnInstance::default(),
        authorization: Authorization::Closed,
        people,
        ids_for_anyone: false,
    });
    let read = over_http(router, &passphrase, name).await;
    daemon.stop().await;
    Ok(HomeRead { stored, ..read? })
}

async fn over_http(router: Router, passphrase: &str, source: &str) -> Result<HomeRead, CliError> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|error| listen::broke(&error))?;
    let address = listener
        .local_addr()
        .map_err(|error| listen::broke(&error))?;
    let (end, ended) = oneshot::channel::<()>();
    let serving = listen::serve(listener, router, TrustedProxies::default(), async {
        drop(ended.await);
        Ok(())
    });
    let reading = async {
        let read = visit(&format!("http://{address}"), passphrase, source).await;
        drop(end);
        read
    };
    let (served, read) = tokio::join!(serving, reading);
    served.and(read)
}

async fn visit(base: &str, passphrase: &str, source: &str) -> Result<HomeRead, CliError> {
    let failed = |error: reqwest::Error| {
        CliError::failed(format!("the home timeline was not read: {error}"))
    };
    let client = Client::builder().no_proxy().build().map_err(failed)?;
    let token = log_in(&client, base, passphrase).await.map_err(failed)?;
    let mut read = page_through(&client, base, &token).await.map_err(failed)?;
    let server = devices::Server {
        client: &client,
        base,
        token: &token,
        source,
    };
    read.devices = Box::pin(devices::converge(server, &read.originals)).await?;
    Ok(read)
}

async fn log_in(client: &Client, base: &str, passphrase: &str) -> Result<String, reqwest::Error> {
    let who = json!({ "who": ACCOUNT, "passphrase": passphrase });
    let log_in = client
        .post(format!("{base}/api/driftline/v1/log-in"))
        .header("content-type", "application/json")
        .body(who.to_string());
    Ok(text_of(&parsed(log_in).await?["token"]))
}

async fn page_through(
    client: &Client,
    base: &str,
    token: &str,
) -> Result<HomeRead, reqwest::Error> {
    let (mut read, mut below) = (HomeRead::default(), String::new());
    loop {
        let page = client
            .get(format!("{base}/api/v1/timelines/home?limit=40{below}"))
            .bearer_auth(token);
        let page = parsed(page).await?;
        let posts = page.as_array().map(Vec::as_slice).unwrap_or_default();
        let Some(last) = posts.last() else { break };
        read.pages += 1;
        read.uris
            .extend(posts.iter().map(|post| text_of(&post["uri"])));
        let originals = posts.iter().filter(|post| post["reblog"].is_null());
        read.originals
            .extend(originals.map(|post| text_of(&post["uri"])));
        below = format!("&max_id={}", text_of(&last["id"]));
    }
    Ok(read)
}

/// Sends a request. Returns the JSON of its answer.
///
/// # Errors
/// [`reqwest::Error`] if there is no answer, or one with the status of an error.
pub(super) async fn parsed(request: reqwest::RequestBuilder) -> Result<Value, reqwest::Error> {
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
