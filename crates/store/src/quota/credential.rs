//! Credentials for requests to upstreams.

use driftline_core::{api::Api, names::audience::Audience};
use driftline_db::{Root, Row, ToValue, Tx};

use crate::{
    directory::{self, Kind},
    error::StoreError,
    id_types::{CredentialId, CredentialKey, InstanceId, LocalAccountId, from_sql, sql},
    local_ids,
    mirror::source::{self, NameRefused, TokenLocation},
    posts::instance,
    viewer::Owner,
};

/// A credential for requests to one upstream: a token, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Its ID.
    pub id: CredentialId,
    /// The upstream.
    pub instance: InstanceId,
    /// Its owner. It looks up only posts that this owner has. A credential without a token belongs
    /// to the operator, and looks up public posts.
    pub owner: Owner,
    /// Its name, unique here.
    pub name: String,
    /// The location of its token; `None` for requests without one.
    pub token: Option<TokenLocation>,
    /// The audience of posts read with its token: that of the widest source that is read with it. A
    /// credential that the operator has added serves all sources, and so does one without a token.
    pub audience: Audience,
    /// True if the operator has added it for look-ups; otherwise it came with a source.
    pub is_added: bool,
    /// The largest number of posts that it may read in a calendar month (UTC), if the upstream has
    /// a cap.
    pub monthly_posts: Option<i64>,
    /// Its quarantine, if it is in one.
    pub quarantine: Option<Quarantine>,
}

impl Credential {
    /// The key of its row and all rows below it.
    pub fn key(&self) -> CredentialKey {
        CredentialKey {
            id: self.id,
            instance: self.instance,
        }
    }
}

/// A period in which a credential is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Its beginning, in Unix ms.
    pub since_ms: i64,
    /// The time of the next attempt, in Unix ms.
    pub until_ms: i64,
    /// The upstream's message, without secrets.
    pub reason: String,
}

impl Quarantine {
    /// The longest quarantine, ms.
    pub const MAX_MS: i64 = 3_600_000;

    /// True if the credential is not used at `now_ms`, in Unix ms. A quarantine that ends later
    /// than the longest one was begun by a clock that was ahead, and is over.
    pub fn lasts(&self, now_ms: i64) -> bool {
        (now_ms..now_ms.saturating_add(Self::MAX_MS)).contains(&(self.until_ms.saturating_sub(1)))
    }
}

/// A credential for the operator to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCredential {
    /// Its name: 1 to 64 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The upstream's origin.
    pub origin: String,
    /// The upstream's API, if it is not known yet.
    pub api: Api,
    /// The location of its token.
    pub token: Option<TokenLocation>,
    /// See [`Credential::monthly_posts`].
    pub monthly_posts: Option<i64>,
}

/// The root of writes to a credential and its quotas.
pub fn root(credential: CredentialKey) -> Root {
    Root::row("credential", "id", credential.id()).within("instance_id", credential.instance_id())
}

/// Adds a credential. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn add(
    tx: &mut Tx<'_>,
    new: &NewCredential,
    now_ms: i64,
) -> Result<Result<CredentialKey, NameRefused>, StoreError> {
    if !source::is_name(&new.name) {
        return Ok(Err(NameRefused::Bad));
    }
    if by_name(tx, &new.name)?.is_some() {
        return Ok(Err(NameRefused::Taken));
    }
    let instance = instance::find_or_add(tx, &new.origin, new.api)?;
    let (token, monthly_posts) = (new.token.as_ref(), new.monthly_posts);
    let owned = (Owner::Operator, token);
    let key = insert(tx, instance, &new.name, owned, monthly_posts, now_ms)?;
    tx.execute(
        "update credential set is_added = true where id = $1 and instance_id = $2",
        &[&key.id(), &key.instance_id()],
    )?;
    Ok(Ok(key))
}

/// The credential for reading an owner's sources: the one of its instance with the same token.
/// Added if it is missing, so that the requests count. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn find_or_add(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    (owner, token): (Owner, Option<&TokenLocation>),
    name: &str,
    now_ms: i64,
) -> Result<Credential, StoreError> {
    if let Some(known) = find(tx, instance, (owner, token))? {
        return Ok(known);
    }
    let taken = directory::names_from(tx, Kind::Credential, name)?;
    let (mut number, mut free_name) = (1, name.to_owned());
    while taken.contains(&free_name) {
        number += 1;
        free_name = format!("{name}-{number}");
    }
    let owned = (credential_owner(owner, token), token);
    let key = insert(tx, sql(instance), &free_name, owned, None, now_ms)?;
    by_key(tx, key)?.ok_or_else(|| StoreError::unreadable("a credential", &"it was just added"))
}

/// The credential of an instance with an owner's token. Without a token all owners have the same
/// one, and share its quota.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn find(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    (owner, token): (Owner, Option<&TokenLocation>),
) -> Result<Option<Credential>, StoreError> {
    let owner = credential_owner(owner, token);
    let is_it = |known: &Credential| known.token.as_ref() == token && known.owner == owner;
    Ok(of_instance(tx, instance)?.into_iter().find(is_it))
}

/// The owner of the credential that reads a source of `owner`.
fn credential_owner(owner: Owner, token: Option<&TokenLocation>) -> Owner {
    match token {
        Some(_) => owner,
        None => Owner::Operator,
    }
}

/// Removes the credentials of an account at an instance with which none of its sources there is
/// read any more. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn remove_unused(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    account: LocalAccountId,
) -> Result<(), StoreError> {
    let owner = Owner::Account(account);
    let used: Vec<Option<String>> = tx.query(
        "select token from source where instance_id = $1 and owner_id = $2",
        &[&sql(instance), &owner.id()],
        |row| row.opt_text("token"),
    )?;
    for credential in of_instance(tx, instance)? {
        let token = credential.token.as_ref().map(TokenLocation::to_text);
        if credential.owner == owner && !used.contains(&token) {
            remove(tx, credential.key())?;
        }
    }
    Ok(())
}

/// Removes all credentials of an account. Must be written below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn remove_of_account(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<(), StoreError> {
    let mut all = list(tx)?;
    all.retain(|credential| credential.owner == Owner::Account(account));
    for credential in all {
        remove(tx, credential.key())?;
    }
    Ok(())
}

/// All credentials, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn list(tx: &mut Tx<'_>) -> Result<Vec<Credential>, StoreError> {
    select(tx, "", "order by c.id", &[])
}

/// The credentials of an instance, in order of their IDs.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn of_instance(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Vec<Credential>, StoreError> {
    let which = "where c.instance_id = $1 order by c.id";
    select(tx, "", which, &[&sql(instance)])
}

/// The credential called `name`.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_name(tx: &mut Tx<'_>, name: &str) -> Result<Option<Credential>, StoreError> {
    let name = crate::text::without_nul(name);
    let join = Kind::Credential.join("c", "instance_id");
    Ok(select(tx, &join, "where d.name = $1", &[&&*name])?.pop())
}

/// The credential with this key.
///
/// # Errors
/// [`StoreError::Unreadable`] if a stored value cannot be read; [`StoreError::Db`] if the database
/// fails.
pub fn by_key(tx: &mut Tx<'_>, key: CredentialKey) -> Result<Option<Credential>, StoreError> {
    let which = "where c.id = $1 and c.instance_id = $2";
    Ok(select(tx, "", which, &[&key.id(), &key.instance_id()])?.pop())
}

/// Removes a credential with its quotas. Returns `false` if it does not exist. Must be written
/// below [`local_ids::root`].
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn remove(tx: &mut Tx<'_>, credential: CredentialKey) -> Result<bool, StoreError> {
    let key: [&dyn ToValue; 2] = [&credential.id(), &credential.instance_id()];
    for table in ["quota", "look_up_ability"] {
        let rows = format!("delete from {table} where credential_id = $1 and instance_id = $2");
        tx.execute(&rows, &key)?;
    }
    directory::remove(tx, Kind::Credential, credential.id())?;
    let row = "delete from credential where id = $1 and instance_id = $2";
    Ok(tx.execute(row, &key)? > 0)
}

/// Puts a credential into quarantine, or extends the quarantine.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn quarantine(
    tx: &mut Tx<'_>,
    credential: CredentialKey,
    quarantine: &Quarantine,
) -> Result<(), StoreError> {
    let reason = crate::text::without_nul(&quarantine.reason);
    tx.execute(
        "update credential set quarantined_at_ms = coalesce(quarantined_at_ms, $2),
             quarantine_until_ms = $3, quarantine_reason = $4
         where id = $1 and instance_id = $5",
        &[
            &credential.id(),
            &quarantine.since_ms,
            &quarantine.until_ms,
            &&*reason,
            &credential.instance_id(),
        ],
    )?;
    Ok(())
}

/// Ends a credential's quarantine. Returns `false` if it was in none.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn restore(tx: &mut Tx<'_>, credential: CredentialKey) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "update credential set quarantined_at_ms = null, quarantine_until_ms = null,
             quarantine_reason = null
         where id = $1 and instance_id = $2 and quarantined_at_ms is not null",
        &[&credential.id(), &credential.instance_id()],
    )?;
    Ok(changed > 0)
}

fn insert(
    tx: &mut Tx<'_>,
    instance_id: i64,
    name: &str,
    (owner, token): (Owner, Option<&TokenLocation>),
    monthly_posts: Option<i64>,
    now_ms: i64,
) -> Result<CredentialKey, StoreError> {
    let id = local_ids::take_numbers(tx, "last_credential_id", 1)?;
    tx.execute(
        "insert into credential (id, instance_id, name, place, monthly_posts, created_at_ms, owner_id)
         values ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &id,
            &instance_id,
            &name,
            &token.map(TokenLocation::to_text),
            &monthly_posts,
            &now_ms,
            &owner.id(),
        ],
    )?;
    directory::add(tx, Kind::Credential, name, (id, instance_id))?;
    Ok(CredentialKey {
        id: from_sql(id)?,
        instance: from_sql(instance_id)?,
    })
}

fn select(
    tx: &mut Tx<'_>,
    join: &str,
    rest: &str,
    params: &[&dyn ToValue],
) -> Result<Vec<Credential>, StoreError> {
    let sql = format!("select {COLUMNS} from credential c {join} {rest}");
    let rows = tx.query(&sql, params, |row| Ok(from_row(row)))?;
    rows.into_iter().collect()
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str =
    "c.id, c.instance_id, c.owner_id, c.name, place, c.is_added, monthly_posts, quarantined_at_ms,
    quarantine_until_ms, quarantine_reason,
    case when c.is_added or c.place is null then 2 else coalesce(
        (select max(case s.audience when 'public' then 2 when 'members' then 1 else 0 end) from source s
         where s.instance_id = c.instance_id and s.token = c.place), 0) end as audience";

fn from_row(row: &Row<'_>) -> Result<Credential, StoreError> {
    let until_ms = row.opt_i64("quarantine_until_ms")?;
    let reason = row.opt_text("quarantine_reason")?;
    Ok(Credential {
        id: from_sql(row.i64("id")?)?,
        instance: from_sql(row.i64("instance_id")?)?,
        owner: Owner::of(row.i64("owner_id")?)?,
        name: row.text("name")?,
        token: TokenLocation::of_row(row, "place")?,
        audience: match row.i64("audience")? {
            2 => Audience::Public,
            1 => Audience::Members,
            _ => Audience::Private,
        },
        is_added: row.bool("is_added")?,
        monthly_posts: row.opt_i64("monthly_posts")?,
        quarantine: row
            .opt_i64("quarantined_at_ms")?
            .map(|since_ms| Quarantine {
                since_ms,
                until_ms: until_ms.unwrap_or(since_ms),
                reason: reason.unwrap_or_default(),
            }),
    })
}
