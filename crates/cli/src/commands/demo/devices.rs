//! Two devices of the account. One is edited without a network. Both converge with the server.

use std::path::Path;

use driftline_core::sync::{ObjectKey, ObjectKind};
use driftline_replica::{
    Client, Direction, Replica, ReplicaError, Retries, ServerUrl, SyncContext, Token,
};
use driftline_runtime::now_ms;
use serde::Serialize;
use serde_json::{Value, json};

use super::{home::parsed, mirrored::no_files};
use crate::{commands::replica::random, error::CliError, shown::count};

/// The server of the devices.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) client: &'a reqwest::Client,
    pub(super) base: &'a str,
    /// A token of the account.
    pub(super) token: &'a str,
    /// The name of a source.
    pub(super) source: &'a str,
}

/// The two devices in the end.
#[derive(Debug, Default, Serialize)]
pub(super) struct Devices {
    /// Posts that the first device copied.
    posts: usize,
    /// Edits on it without a network.
    offline_edits: usize,
    /// Edits on the other device and the server meanwhile.
    other_edits: usize,
    /// Objects of the account's library.
    objects: usize,
    /// Conflicts that were not resolved.
    conflicts: u64,
    /// True if both devices have the same objects as the server, and every edit is among them.
    is_equal: bool,
}

impl Devices {
    /// True if nothing was lost.
    pub(super) fn have_converged(&self) -> bool {
        self.is_equal && self.conflicts == 0
    }

    /// The result in words.
    pub(super) fn lines(&self) -> Vec<String> {
        let outcome = match self.is_equal {
            true => "all three have the same",
            false => "they differ, or lost an edit of the",
        };
        vec![
            format!(
                "A device of the account copied {}, and was edited {} offline.",
                count(self.posts as u64, "post"),
                count(self.offline_edits as u64, "time"),
            ),
            format!(
                "Meanwhile another device and the server were edited {}, and after a sync",
                count(self.other_edits as u64, "time"),
            ),
            format!(
                "{outcome} {}; {}.",
                count(self.objects as u64, "object"),
                count(self.conflicts, "conflict"),
            ),
        ]
    }
}

/// Makes two replicas, edits one offline, and the other one and the server meanwhile, and syncs them.
///
/// # Errors
/// [`CliError`] if there are fewer than three posts, or something of it cannot be done.
pub(super) async fn converge(server: Server<'_>, posts: &[String]) -> Result<Devices, CliError> {
    let [first, second, third, ..] = posts else {
        return Err(CliError::failed("the home timeline has too few posts"));
    };
    let folder = tempfile::Builder::new()
        .prefix("driftline-demo-")
        .tempdir()
        .map_err(|error| no_files(&error))?;
    let phone = Device::make(&folder.path().join("phone"), server).await?;
    let laptop = Device::make(&folder.path().join("laptop"), server).await?;
    let outcome = edit(&phone, &laptop, server, [first, second, third]).await;
    phone.replica.close().await;
    laptop.replica.close().await;
    outcome
}

async fn edit(
    phone: &Device,
    laptop: &Device,
    server: Server<'_>,
    [first, second, third]: [&String; 3],
) -> Result<Devices, CliError> {
    phone.subscribe(server.source).await?;
    let before = note("to read", "by Ann");
    phone.put(ObjectKind::Note, first, before).await?;
    phone.sync().await?;
    laptop.sync().await?;

    // The phone has no network from here on.
    let changed = note("read on a train", "by Ann");
    phone.put(ObjectKind::Note, first, changed).await?;
    for post in [second, third] {
        phone.put(ObjectKind::Bookmark, post, json!({})).await?;
    }
    let changed = note("to read", "by Ann and Ben");
    laptop.put(ObjectKind::Note, first, changed).await?;
    laptop.sync().await?;
    add_list(server).await?;

    // It has one again.
    phone.sync().await?;
    laptop.sync().await?;
    let objects = phone.replica.objects(None).await?;
    let merged = note("read on a train", "by Ann and Ben");
    let is_kept = objects.len() == KEPT && objects.iter().any(|object| object.value == merged);
    let is_equal = objects == laptop.replica.objects(None).await?
        && phone.is_verified().await?
        && laptop.is_verified().await?;
    let (on_phone, on_laptop) = (
        phone.replica.status().await?,
        laptop.replica.status().await?,
    );
    let copied = on_phone.subscriptions.iter();
    Ok(Devices {
        posts: copied.map(|subscription| subscription.entries).sum(),
        offline_edits: 3,
        other_edits: 2,
        objects: objects.len(),
        conflicts: on_phone.open_conflicts + on_laptop.open_conflicts,
        is_equal: is_kept && is_equal,
    })
}

/// Adds a list on the server, as an app does.
async fn add_list(server: Server<'_>) -> Result<(), CliError> {
    let list = server
        .client
        .post(format!("{}/api/v1/lists", server.base))
        .bearer_auth(server.token)
        .header("content-type", "application/json")
        .body(json!({ "title": "trains" }).to_string());
    let added = parsed(list).await;
    added.map_err(|error| CliError::failed(format!("no list was added: {error}")))?;
    Ok(())
}

/// A device of the account.
struct Device {
    replica: Replica,
    client: Client,
}

impl Device {
    async fn make(folder: &Path, server: Server<'_>) -> Result<Self, ReplicaError> {
        let url: ServerUrl = server.base.parse()?;
        let token = Token::read(server.token.as_bytes())?;
        let client = Client::new(&url, token, Retries::few())?;
        let (replica, _) = Replica::init(folder, &client, &mut random).await?;
        Ok(Self { replica, client })
    }

    async fn subscribe(&self, source: &str) -> Result<(), ReplicaError> {
        let names = [source.to_owned()];
        let replica = &self.replica;
        replica
            .subscribe(&self.client, &names, None, &mut random)
            .await?;
        Ok(())
    }

    async fn put(&self, kind: ObjectKind, post: &str, value: Value) -> Result<(), ReplicaError> {
        let key = ObjectKey::named(kind, post)?;
        self.replica.edit(key, Some(value)).await?;
        Ok(())
    }

    async fn sync(&self) -> Result<(), ReplicaError> {
        let mut random = random;
        let mut context = SyncContext::new(now_ms(), &mut random);
        self.replica
            .sync(&self.client, &mut context, Direction::Both)
            .await?;
        Ok(())
    }

    /// True if the server has the same objects.
    async fn is_verified(&self) -> Result<bool, ReplicaError> {
        let mut random = random;
        let mut context = SyncContext::new(now_ms(), &mut random);
        let verified = self.replica.verify(&self.client, &mut context).await?;
        Ok(verified.is_equal)
    }
}

/// A note of two lines that are not next to each other.
fn note(first: &str, last: &str) -> Value {
    json!({ "text": format!("{first}\n\n{last}") })
}

/// A note, two bookmarks and a list.
const KEPT: usize = 4;
