//! Sources: mirrored timelines of upstreams.

use driftline_core::{
    api::Api, names::audience::Audience, social::AccountName, source_kind::SourceKind,
    timeline::Settings,
};
use driftline_db::{Root, Row, ToValue, Tx};
use serde::{Deserialize, Serialize};

use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::{InstanceId, SourceId, SourceKey, from_sql, sql},
    library, local_ids,
    mirror::{source_kind::IS_LISTED, source_lease::SourceHolder},
    posts::instance::{self, Instance},
    sharing::change,
    text::{from_json, to_json, without_nul},
    viewer::{Owner, Viewer},
};

pub use crate::{
    mirror::source_audience::set_audience,
    mirror::source_change::{rename, set_refreshing, set_suspended},
    mirror::source_removal::{LastPosts, Removed, removal, remove},
    posts::instance::all as instances,
    viewer::owners,
};

/// The root of writes to a source and its descendants.
pub fn root(source: SourceKey) -> Root {
    Root::row("source", "id", source.id()).within("instance_id", source.instance_id())
}

/// A mirrored timeline of an upstream.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Its ID; also the ID of its list in the Mastodon API.
    pub id: SourceId,
    /// Its name, unique here. The name of an account's source begins with the account's in lower
    /// case and a slash.
    pub name: String,
    /// Its owner.
    pub owner: Owner,
    /// Its other readers.
    pub audience: Audience,
    /// Its server.
    pub instance: Instance,
    /// The timeline of the server, in the notation of the upstream crate; the name of its kind if it is not polled.
    pub timeline: String,
    /// The way in which it gets its posts.
    pub kind: SourceKind,
    /// The address of the server's API, in the notation of the upstream crate.
    pub upstream: String,
    /// The settings of its owner.
    pub settings: Settings,
    /// The location of its token.
    pub token: Option<TokenLocation>,
    /// True if its server may be in a private network, and may receive tokens over plain `http`,
    /// even if that is not allowed for others.
    pub allow_private: bool,
    /// True if its posts are refreshed, including those that no other source keeps fresh.
    pub refreshing: bool,
    /// True if fetching is paused, by its owner or because the owner's account is frozen.
    pub paused: bool,
    /// True if the account that owns it is frozen.
    pub suspended: bool,
    /// True if a first page of it is stored, so that others may read its entries. Its history may
    /// still be in progress.
    pub readable: bool,
    /// The last USN of its library.
    pub update_count: i64,
    /// The time at which it was added, in Unix ms.
    pub created_at_ms: i64,
    /// The worker that fetches for it, or the last one.
    pub holding: Option<SourceHolder>,
}

impl Source {
    /// The key of its row and all rows below it.
    pub fn key(&self) -> SourceKey {
        SourceKey {
            id: self.id,
            instance: self.instance.id,
        }
    }

    /// Its name without its owner's.
    pub fn own_name(&self) -> &str {
        parts_of_name(&self.name).1
    }
}

/// The location of a token. The store never contains the token in plain text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenLocation {
    /// The environment variable of this name.
    Environment(String),
    /// The file at this path.
    File(String),
    /// In the store, sealed with a key that is not in the store.
    Sealed(String),
}

/// A source to add.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSource {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`. The name of an account's source comes
    /// from [`name_of`].
    pub name: String,
    /// Its owner.
    pub owner: Owner,
    /// Its other readers.
    pub audience: Audience,
    /// Its server's origin: scheme, host and port. Sources of one origin share their posts.
    pub origin: String,
    /// The server's API.
    pub api: Api,
    /// The timeline of the server; the name of its kind if it is not polled.
    pub timeline: String,
    /// The way in which it gets its posts.
    pub kind: SourceKind,
    /// The address of the server's API.
    pub upstream: String,
    /// The settings of its owner.
    pub settings: Settings,
    /// The location of its token.
    pub token: Option<TokenLocation>,
    /// True if its server may be in a private network.
    pub allow_private: bool,
}

/// The reason why a name was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameRefused {
    /// Another source has the name.
    #[error("another source has that name; choose another one")]
    Taken,
    /// The name is invalid.
    #[error("a source's name is 1 to 64 letters, digits, `-`, `_` and `.`")]
    Bad,
}

/// Adds a source. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::NoSourceIds`] if no IDs of sources are left; [`StoreError::Unreadable`] if a
/// stored value cannot be read; [`StoreError::Db`] if the database fails.
pub fn add(
    tx: &mut Tx<'_>,
    new: &NewSource,
    now_ms: i64,
) -> Result<Result<SourceKey, NameRefused>, StoreError> {
    if !is_name_for(new.owner, &new.name) {
        return Ok(Err(NameRefused::Bad));
    }
    if by_name(tx, &new.name)?.is_some() {
        return Ok(Err(NameRefused::Taken));
    }
    let instance = instance::find_or_add(tx, &new.origin, new.api)?;
    insert(tx, new, instance, now_ms).map(Ok)
}

/// Adds a source with a free name at the given instance.
pub(crate) fn insert(
    tx: &mut Tx<'_>,
    new: &NewSource,
    instance: i64,
    now_ms: i64,
) -> Result<SourceKey, StoreError> {
    let id = local_ids::take_source_id(tx)?;
    tx.execute(
        "insert into source (id, instance_id, name, timeline, kind, upstream, settings, token, paused,
             readable, created_at_ms, lease_holder, lease_fence, lease_until_ms,
             machine, allow_private, owner_id, audience)
         values ($1, $2, $3, $4, $13, $5, $6, $7, false, $9, $8, null, 0, 0, '{}', $10, $11, $12)",
        &[
            &id,
            &instance,
            &new.name,
            &new.timeline,
            &new.upstream,
            &to_json(SETTINGS, &new.settings)?,
            &new.token.as_ref().map(TokenLocation::to_text),
            &now_ms,
            &!new.kind.is_polled(),
            &new.allow_private,
            &new.owner.id(),
            &new.audience.name(),
            &new.kind.name(),
        ],
    )?;
    let key = SourceKey {
        id: from_sql(id)?,
        instance: from_sql(instance)?,
    };
    directory::add(tx, Kind::Source, &new.name, (id, instance))?;
    library::add(tx, library::LibraryOwner::Source(key))?;
    change::raise_later(tx)?;
    Ok(key)
}

/// All sources, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<Source>, StoreError> {
    select(tx, "", &format!("s.{IS_LISTED} order by s.id"), &[])
}

/// The sources that a viewer may read, including those that the viewer owns, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn readable(tx: &mut Tx<'_>, viewer: Viewer) -> Result<Vec<Source>, StoreError> {
    let owner_id = viewer.owner().map(Owner::id);
    select(
        tx,
        "",
        &format!(
            "(s.audience = 'public' or s.owner_id = $1 or s.audience = 'members' and $2)
                 and s.{IS_LISTED} order by s.id"
        ),
        &[&owner_id, &owner_id.is_some()],
    )
}

/// An owner's sources, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn owned(tx: &mut Tx<'_>, owner: Owner) -> Result<Vec<Source>, StoreError> {
    select(
        tx,
        "",
        &format!("s.owner_id = $1 and s.{IS_LISTED} order by s.id"),
        &[&owner.id()],
    )
}

/// The source called `name`. An account's part of the name may be in any case.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_name(tx: &mut Tx<'_>, name: &str) -> Result<Option<Source>, StoreError> {
    let name = without_nul(name);
    let name = match parts_of_name(&name) {
        (Some(account), own) => format!("{}/{own}", account.to_ascii_lowercase()).into(),
        (None, _) => name,
    };
    Ok(select(
        tx,
        &join(),
        &format!("d.name = $1 and s.{IS_LISTED}"),
        &[&&*name],
    )?
    .pop())
}

/// The source with this ID.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_id(tx: &mut Tx<'_>, id: SourceId) -> Result<Option<Source>, StoreError> {
    Ok(select(
        tx,
        &join(),
        &format!("d.id = $1 and s.{IS_LISTED}"),
        &[&sql(id)],
    )?
    .pop())
}

/// The key of the source with this ID.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn key(tx: &mut Tx<'_>, id: SourceId) -> Result<Option<SourceKey>, StoreError> {
    let instance = directory::instance_of(tx, Kind::Source, sql(id))?;
    let instance = instance.map(from_sql).transpose()?;
    Ok(instance.map(|instance| SourceKey { id, instance }))
}

fn join() -> String {
    Kind::Source.join("s", "instance_id")
}

/// Stops fetching for a source, or starts it again. Returns `false` if nothing changed.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn set_paused(tx: &mut Tx<'_>, source: SourceKey, paused: bool) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "update source set paused = $2 where id = $1 and instance_id = $3 and paused <> $2",
        &[&source.id(), &paused, &source.instance_id()],
    )?;
    if changed > 0 {
        change::raise_later(tx)?;
    }
    Ok(changed > 0)
}

/// Replaces a source's settings.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn set_settings(
    tx: &mut Tx<'_>,
    source: SourceKey,
    settings: &Settings,
) -> Result<(), StoreError> {
    set(tx, source, "settings", &to_json(SETTINGS, settings)?)
}

/// Sets the location of a source's token.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn set_token(
    tx: &mut Tx<'_>,
    source: SourceKey,
    token: Option<&TokenLocation>,
) -> Result<(), StoreError> {
    set(tx, source, "token", &token.map(TokenLocation::to_text))
}

/// Allows a source's server to be in a private network, or forbids it.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn set_allow_private(
    tx: &mut Tx<'_>,
    source: SourceKey,
    allow_private: bool,
) -> Result<(), StoreError> {
    set(tx, source, "allow_private", &allow_private)
}

/// True if a source of this instance allows its server to be in a private network, which only the
/// operator may set.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn allows_private(tx: &mut Tx<'_>, instance: InstanceId) -> Result<bool, StoreError> {
    let found = tx.query_opt(
        "select id from source where instance_id = $1 and allow_private and owner_id = 0 limit 1",
        &[&sql(instance)],
        |row| row.i64("id"),
    )?;
    Ok(found.is_some())
}

pub(crate) fn set(
    tx: &mut Tx<'_>,
    source: SourceKey,
    column: &str,
    value: &dyn ToValue,
) -> Result<(), StoreError> {
    let update = format!("update source set {column} = $2 where id = $1 and instance_id = $3");
    match tx.execute(&update, &[&source.id(), value, &source.instance_id()])? {
        0 => Err(StoreError::NoSource),
        _ => Ok(change::raise_later(tx)?),
    }
}

/// The name of an account's source.
pub fn name_of(account: &AccountName, own: &str) -> String {
    format!("{}/{own}", account.key())
}

/// The account's part of a source's name, if it has one, and the rest.
pub fn parts_of_name(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((account, own)) => (Some(account), own),
        None => (None, name),
    }
}

/// True if a source of `owner` may be called `name`.
pub(crate) fn is_name_for(owner: Owner, name: &str) -> bool {
    let (account, own) = parts_of_name(name);
    let is_prefixed = account.is_some_and(|account| {
        let known = AccountName::new(account);
        known.is_ok_and(|known| known.key() == account)
    });
    is_name(own)
        && match owner {
            Owner::Operator => account.is_none(),
            Owner::Account(_) => is_prefixed,
        }
}

/// True if a text is a valid name for a source of the operator.
pub fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

impl std::fmt::Debug for TokenLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenLocation::Environment(name) => write!(f, "Environment({name:?})"),
            TokenLocation::File(path) => write!(f, "File({path:?})"),
            TokenLocation::Sealed(_) => f.write_str("Sealed(…)"),
        }
    }
}

impl TokenLocation {
    pub(crate) fn to_text(&self) -> String {
        match self {
            TokenLocation::Sealed(sealed) => format!("sealed:{sealed}"),
            TokenLocation::Environment(name) => format!("env:{name}"),
            TokenLocation::File(path) => format!("file:{path}"),
        }
    }

    pub(crate) fn of_row(row: &Row<'_>, column: &str) -> Result<Option<TokenLocation>, StoreError> {
        let Some(text) = row.opt_str(column)? else {
            return Ok(None);
        };
        match text.split_once(':') {
            Some(("env", name)) => Ok(Some(TokenLocation::Environment(name.to_owned()))),
            Some(("sealed", sealed)) => Ok(Some(TokenLocation::Sealed(sealed.to_owned()))),
            Some(("file", path)) => Ok(Some(TokenLocation::File(path.to_owned()))),
            _ => Err(StoreError::unreadable(
                "a token's location",
                &"unknown kind",
            )),
        }
    }
}

fn select(
    tx: &mut Tx<'_>,
    join: &str,
    rest: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<Source>, StoreError> {
    let sql = format!(
        "select {COLUMNS} from source s {} join instance i on i.id = s.instance_id {join} where {rest}",
        library::OF_SOURCES
    );
    // Each row has its own result, because the database's closure can only fail with the database's
    // errors.
    let rows = tx.query(&sql, params, |row| Ok(from_row(row)))?;
    rows.into_iter().collect()
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str = "s.id, s.name, s.owner_id, s.audience, s.instance_id, i.origin, i.api, s.timeline, s.kind, s.upstream,
    s.settings, s.token, s.allow_private, s.refreshing, s.paused, s.suspended, s.readable, l.update_count, s.created_at_ms, s.lease_holder,
    s.lease_fence, s.lease_until_ms";

fn from_row(row: &Row<'_>) -> Result<Source, StoreError> {
    let (fence, until_ms) = (row.i64("lease_fence")?, row.i64("lease_until_ms")?);
    Ok(Source {
        id: from_sql(row.i64("id")?)?,
        name: row.text("name")?,
        owner: Owner::of(row.i64("owner_id")?)?,
        audience: Audience::named_or_narrowest(row.str("audience")?),
        instance: Instance {
            id: from_sql(row.i64("instance_id")?)?,
            origin: row.text("origin")?,
            api: instance::api(row.str("api")?)?,
        },
        timeline: row.text("timeline")?,
        kind: row
            .str("kind")?
            .parse()
            .map_err(|error| StoreError::unreadable("a source's kind", &error))?,
        upstream: row.text("upstream")?,
        settings: from_json(SETTINGS, row.str("settings")?)?,
        token: TokenLocation::of_row(row, "token")?,
        allow_private: row.bool("allow_private")?,
        refreshing: row.bool("refreshing")?,
        paused: row.bool("paused")? || row.bool("suspended")?,
        suspended: row.bool("suspended")?,
        readable: row.bool("readable")?,
        update_count: row.i64("update_count")?,
        created_at_ms: row.i64("created_at_ms")?,
        holding: row.opt_text("lease_holder")?.map(|holder| SourceHolder {
            holder,
            fence,
            until_ms,
        }),
    })
}

const MAX_NAME_BYTES: usize = 64;
const SETTINGS: &str = "a source's settings";
