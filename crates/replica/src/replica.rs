use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
};

use driftline_core::sync::{
    Binding, DeviceIdentity, LibraryProgress, LocalObject, ObjectKey, ObjectKind, ObjectValue,
    same_value,
};
use driftline_db::{Db, Migration, Options, Root, Target, Tx};
use driftline_mastodon::TEXT_EXTRACTION;
use serde::Serialize;
use serde_json::Value;

use crate::{
    ConflictRow, ReplicaError, ReplicaObject,
    backoff::Random,
    chunk_size::ChunkSize,
    client::{Client, Retries},
    conflict_row,
    folder::{self, DATABASE},
    index_row, object_row,
    replica_row::{self, PullCounts, ReplicaRow},
    server_url::ServerUrl,
    subscription_row::{self, Subscription},
    token::Token,
};

/// A device's copy of its account's library. Several processes may read and edit it at once, and one of them may sync it.
#[derive(Debug)]
pub struct Replica {
    folder: PathBuf,
    db: Db,
    /// The server's address.
    pub(crate) url: ServerUrl,
    binding: Binding,
}

/// The outcome of [`Replica::init`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InitOutcome {
    /// A replica was made.
    Made,
    /// The replica has another token; everything else stayed.
    TokenRenewed,
}

/// The state of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplicaStatus {
    /// The server's address.
    pub url: String,
    /// The identity of the server.
    pub server: String,
    /// The account's ID.
    pub account: String,
    /// The name under which this device pushes.
    pub device: String,
    /// The numbers of objects by kind.
    pub kinds: BTreeMap<String, u64>,
    /// The number of objects with changes that were not sent yet.
    pub dirty: u64,
    /// The number of conflicts that were not resolved yet.
    pub open_conflicts: u64,
    /// True if a push was sent whose answer did not arrive.
    pub is_push_pending: bool,
    /// False before the first full sync is complete, and during another one.
    pub is_complete: bool,
    /// The cursor.
    pub cursor: Option<String>,
    /// The time of the last complete sync in Unix ms.
    pub synced_at_ms: Option<i64>,
    /// The sources to which the replica subscribes, by their names.
    pub subscriptions: Vec<Subscription>,
    /// The number of places in timelines that the search index has still to read.
    pub unindexed: u64,
}

/// The outcome of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Edited {
    /// False if the object was so already.
    pub changed: bool,
    /// True if the object has a change that was not sent yet.
    pub dirty: bool,
}

/// The version of an object that stays after a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The version of this device, which the next sync sends.
    Mine,
    /// The version that the replica has now.
    Theirs,
}

impl Replica {
    /// Asks the server whose token the client has, and makes a replica of that account. If the folder has a replica of the
    /// same account, its token is replaced, and the server's address if that is another one.
    ///
    /// # Errors
    /// [`ReplicaError::OtherAccount`] or [`ReplicaError::OtherServer`] if the folder has a replica of another account or
    /// server, which stays as it is. [`ReplicaError::Locked`] if another process syncs the replica for more than 5 s. Another
    /// [`ReplicaError`] if the server does not answer, after which the folder is as it was, or the folder cannot be used.
    pub async fn init(
        folder: &Path,
        client: &Client,
        random: &mut Random<'_>,
    ) -> Result<(Self, InitOutcome), ReplicaError> {
        let held = match folder::check(folder) {
            Ok(()) => Some(folder::lock(folder).await?),
            Err(_) => None,
        };
        // A new folder is made once the server has answered.
        let found = ask(client, random).await?;
        folder::make(folder)?;
        let _lock = match held {
            Some(lock) => lock,
            None => folder::lock(folder).await?,
        };
        let bits = random();
        let replica = Self {
            db: open_db(folder).await?,
            folder: folder.to_owned(),
            url: client.server().clone(),
            binding: found,
        };
        let (url, found) = (replica.url.clone(), replica.binding.clone());
        let bound = replica.write(move |tx| bind(tx, &url, &found, bits));
        let outcome = bound.await?;
        client.token().write(folder)?;
        Ok((replica, outcome))
    }

    /// Opens the replica in a folder.
    ///
    /// # Errors
    /// [`ReplicaError::NoReplica`] if the folder has none; [`ReplicaError::Db`] if its database cannot be used.
    pub async fn open(folder: &Path) -> Result<Self, ReplicaError> {
        folder::check(folder)?;
        let db = open_db(folder).await?;
        let Some(row) = db.read(replica_row::get).await? else {
            return Err(ReplicaError::NoReplica(folder.display().to_string()));
        };
        let replica = Self {
            folder: folder.to_owned(),
            db,
            url: row.url.parse()?,
            binding: row.binding,
        };
        if row.text_extraction != TEXT_EXTRACTION {
            replica.write(index_again).await?;
        }
        Ok(replica)
    }

    /// The client of the replica's server, with the replica's token.
    ///
    /// # Errors
    /// [`ReplicaError::File`] or [`ReplicaError::Token`] if the token cannot be read.
    pub fn client(&self, retries: Retries) -> Result<Client, ReplicaError> {
        let token = Token::of_folder(&self.folder)?;
        Client::new(&self.url, token, retries)
    }

    /// The server and account to which the replica belongs.
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    /// The state of the replica.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub async fn status(&self) -> Result<ReplicaStatus, ReplicaError> {
        self.read(status).await
    }

    /// The objects whose kind has this name, or all, by their keys. Those that were deleted here are not listed.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub async fn objects(&self, kind: Option<&str>) -> Result<Vec<ReplicaObject>, ReplicaError> {
        let kind = kind.map(str::to_owned);
        let origin = self.url.origin();
        self.read(move |tx| {
            let objects = object_row::list(tx, kind.as_deref())?.into_iter();
            let objects = objects.filter_map(|object| ReplicaObject::from_local(object, &origin));
            Ok(objects.collect())
        })
        .await
    }

    /// An object; `None` if the replica does not have it, or it was deleted here.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub async fn object(&self, key: &ObjectKey) -> Result<Option<ReplicaObject>, ReplicaError> {
        let (key, origin) = (key.clone(), self.url.origin());
        self.read(move |tx| {
            let object = object_row::get(tx, &key)?;
            Ok(object.and_then(|object| ReplicaObject::from_local(object, &origin)))
        })
        .await
    }

    /// Gives an object another value; `None` deletes it, and with a list its accounts. The next sync sends the change.
    ///
    /// # Errors
    /// [`ReplicaError::ReadOnly`] if the kind is unknown or devices do not delete such objects; [`ReplicaError::Value`] if
    /// the value is not one of the kind; [`ReplicaError::Db`] if the database fails.
    pub async fn edit(&self, key: ObjectKey, value: Option<Value>) -> Result<Edited, ReplicaError> {
        let value = checked(&key, value)?;
        self.write(move |tx| edit(tx, &key, value.clone())).await
    }

    /// Gives an object the value that `change` makes of the present one, in one transaction; `None` deletes it. Returns `None`
    /// if the replica does not have the object.
    ///
    /// # Errors
    /// The same as those of [`Replica::edit`].
    pub async fn edit_with(
        &self,
        key: ObjectKey,
        mut change: impl FnMut(Value) -> Option<Value> + Send + 'static,
    ) -> Result<Option<Edited>, ReplicaError> {
        self.write(move |tx| {
            let found = object_row::get(tx, &key)?.and_then(|object| object.value);
            let Some(value) = found else {
                return Ok(None);
            };
            let value = checked(&key, change(value))?;
            edit(tx, &key, value).map(Some)
        })
        .await
    }

    /// The open conflicts, or all, by their numbers.
    ///
    /// # Errors
    /// [`ReplicaError::Db`] if the database fails.
    pub async fn conflicts(&self, all: bool) -> Result<Vec<ConflictRow>, ReplicaError> {
        self.read(move |tx| conflict_row::list(tx, all)).await
    }

    /// Resolves a conflict. Returns the key of its object.
    ///
    /// # Errors
    /// [`ReplicaError::NoConflict`] if there is no open conflict with this number; [`ReplicaError::ReadOnly`] if the
    /// kind is unknown or devices do not delete such objects; [`ReplicaError::Db`] if the database fails.
    pub async fn resolve(
        &self,
        id: i64,
        resolution: Resolution,
    ) -> Result<ObjectKey, ReplicaError> {
        self.write(move |tx| {
            let conflict = conflict_row::open(tx, id)?;
            if resolution == Resolution::Mine {
                let mine = checked(&conflict.key, conflict.mine)?;
                edit(tx, &conflict.key, mine)?;
            }
            conflict_row::resolve(tx, id)?;
            Ok(conflict.key)
        })
        .await
    }

    /// Closes the database.
    pub async fn close(self) {
        self.db.close().await;
    }

    /// Keeps other processes from syncing the replica until the lock is dropped.
    ///
    /// # Errors
    /// The same as those of [`folder::lock`].
    pub(crate) async fn lock(&self) -> Result<File, ReplicaError> {
        folder::lock(&self.folder).await
    }

    /// Runs a transaction that only reads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, ReplicaError> + Send + 'static,
    ) -> Result<T, ReplicaError> {
        self.db.read(job).await
    }

    /// Runs a transaction that may write.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        job: impl FnMut(&mut Tx<'_>) -> Result<T, ReplicaError> + Send + 'static,
    ) -> Result<T, ReplicaError> {
        self.db.write(Root::none(), job).await
    }
}

/// Asks the server whose token the client has.
///
/// # Errors
/// [`ReplicaError`] if the server gives no good answer.
pub(crate) async fn ask(client: &Client, random: &mut Random<'_>) -> Result<Binding, ReplicaError> {
    // An answer about no library says who answers.
    let mut size = ChunkSize::new(false);
    let answer = client.pull_chunk(Vec::new(), &mut size, random).await?;
    Ok(Binding {
        server: answer.server,
        account: answer.account,
    })
}

async fn open_db(folder: &Path) -> Result<Db, ReplicaError> {
    let path = folder.join(DATABASE);
    let options = Options {
        readers: 1,
        group: 1,
        ..Options::new(Target::Sqlite { path }, MIGRATIONS)
    };
    let opened = tokio::task::spawn_blocking(move || Db::open(options)).await;
    Ok(opened.map_err(ReplicaError::damaged)??)
}

/// Adds the row of a new replica, or checks that of an old one.
fn bind(
    tx: &mut Tx<'_>,
    url: &ServerUrl,
    found: &Binding,
    bits: u128,
) -> Result<InitOutcome, ReplicaError> {
    let Some(row) = replica_row::get(tx)? else {
        let row = ReplicaRow {
            url: url.as_str().to_owned(),
            binding: found.clone(),
            progress: LibraryProgress::default(),
            identity: DeviceIdentity::new(bits),
            generation: 0,
            synced_at_ms: None,
            pull: PullCounts::default(),
            chunk_bytes: None,
            text_extraction: TEXT_EXTRACTION,
        };
        replica_row::put(tx, &row)?;
        return Ok(InitOutcome::Made);
    };
    let checked = row.binding.check(&found.server, &found.account);
    checked.map_err(|stop| ReplicaError::stopped(url, stop))?;
    // The documents of the server's own accounts have its host.
    if row.url != url.as_str() || row.text_extraction != TEXT_EXTRACTION {
        index_again(tx)?;
    }
    replica_row::update(tx, |row| {
        row.url = url.as_str().to_owned();
        row.binding = found.clone();
    })?;
    Ok(InitOutcome::TokenRenewed)
}

/// Records that the index has still to read all entries, by the terms of this version. Until then searches read them one after
/// the other.
fn index_again(tx: &mut Tx<'_>) -> Result<(), ReplicaError> {
    index_row::add_all_unindexed(tx)?;
    replica_row::update(tx, |row| row.text_extraction = TEXT_EXTRACTION)?;
    Ok(())
}

fn status(tx: &mut Tx<'_>) -> Result<ReplicaStatus, ReplicaError> {
    let row = replica_row::require(tx)?;
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Ok(ReplicaStatus {
        url: row.url,
        server: row.binding.server,
        account: row.binding.account,
        device: row.identity.device,
        kinds: object_row::kinds(tx)?,
        dirty: number(object_row::count_dirty(tx)?),
        open_conflicts: number(conflict_row::count_open(tx)?),
        is_push_pending: replica_row::pending_push(tx)?.is_some(),
        is_complete: row.progress.is_complete(),
        cursor: row.progress.cursor,
        synced_at_ms: row.synced_at_ms,
        subscriptions: subscription_row::counted(tx)?,
        unindexed: number(index_row::count_unindexed(tx)?),
    })
}

/// The value that a device may give an object.
fn checked(key: &ObjectKey, value: Option<Value>) -> Result<Option<Value>, ReplicaError> {
    let is_editable = |kind: ObjectKind| value.is_some() || kind.is_deletable();
    if !key.kind().is_some_and(is_editable) {
        return Err(ReplicaError::ReadOnly(key.clone()));
    }
    let value = value
        .map(|value| ObjectValue::read(key, value))
        .transpose()?;
    Ok(value.map(|value| value.json()))
}

fn edit(tx: &mut Tx<'_>, key: &ObjectKey, value: Option<Value>) -> Result<Edited, ReplicaError> {
    let before = object_row::get(tx, key)?;
    let old = before.as_ref().and_then(|object| object.value.as_ref());
    let value = value.map(|value| with_unknown_members(key, old, value));
    if same_value(key.kind(), old, value.as_ref()) {
        return Ok(Edited {
            changed: false,
            dirty: before.is_some_and(|object| object.is_dirty()),
        });
    }
    if value.is_none() && key.kind() == Some(ObjectKind::List) {
        delete_members(tx, key)?;
    }
    let generation = replica_row::next_generation(tx)?;
    let push = replica_row::pending_push(tx)?;
    let is_sent = push.is_some_and(|push| push.change(key).is_some());
    let after = match before {
        Some(object) => object.edit(value, generation, is_sent),
        None => value.map(|value| LocalObject::added(key.clone(), value, generation)),
    };
    match &after {
        Some(object) => object_row::put(tx, object)?,
        None => object_row::remove(tx, key)?,
    }
    Ok(Edited {
        changed: true,
        dirty: after.is_some_and(|object| object.is_dirty()),
    })
}

/// The value with the old one's members that this version does not know, since a later version may have given them. Only those of
/// the value itself: not those within its keywords or fields.
fn with_unknown_members(key: &ObjectKey, old: Option<&Value>, mut value: Value) -> Value {
    let Some(old) = old else {
        return value;
    };
    // Of an old value that this version cannot read, it knows the members that the new one has.
    let known = ObjectValue::read(key, old.clone());
    let known = known.map_or_else(|_| value.clone(), |known| known.json());
    if let (Value::Object(old), Value::Object(known), Value::Object(members)) =
        (old, known, &mut value)
    {
        for (name, member) in old {
            if !known.contains_key(name) {
                members.entry(name).or_insert_with(|| member.clone());
            }
        }
    }
    value
}

/// Deletes the accounts of a list, as the server does with the list.
fn delete_members(tx: &mut Tx<'_>, list: &ObjectKey) -> Result<(), ReplicaError> {
    let is_member = |member: &LocalObject| {
        let of = member.key.list_and_acct();
        member.value.is_some() && of.is_some_and(|(of, _)| of == *list)
    };
    let members = object_row::list(tx, Some(ObjectKind::ListMember.name()))?;
    for member in members.into_iter().filter(is_member) {
        edit(tx, &member.key, None)?;
    }
    Ok(())
}

/// The schema, in one step. Until the first release it is edited in place.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "replica",
    compat_version: 1,
    sql: include_str!("schema.sql"),
}];
