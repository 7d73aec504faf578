//! Authors of stored posts.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use driftline_core::{names::acct::AcctKey, post::Author, upstream_id::UpstreamId};
use driftline_db::{Column, DbError, PendingRows, Tx};

use crate::{
    error::StoreError,
    id_types::{AccountId, InstanceId, MIN_COPY_ID, SourceKey, from_sql, sql},
    new_ids::TakenIds,
    posts::object_uri::{self, NamedKind},
    text::without_nul,
    viewer::ReadableSources,
};

/// An account as a source has shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its local ID.
    pub id: AccountId,
    /// The source that showed it.
    pub source: SourceKey,
    /// Its ID at the source's instance.
    pub upstream_id: String,
    /// `name`, or `name@host`.
    pub acct: String,
    /// The name that people read.
    pub display_name: String,
    /// Its address for people.
    pub url: Option<String>,
    /// The account object as it was received, JSON. Its counts and pictures are as old as the last
    /// change of a name; the posts' own JSON is newer.
    pub raw: String,
    /// The time at which the source first showed these names, in Unix ms.
    pub seen_at_ms: i64,
}

impl Account {
    /// True if the account belongs to the instance that showed it.
    pub fn is_of_instance(&self) -> bool {
        !self.acct.is_empty() && !self.acct.contains('@')
    }
}

/// The accounts with these IDs, as each of these sources has shown them, in no order.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_ids(
    tx: &mut Tx<'_>,
    ids: &[AccountId],
    sources: &[SourceKey],
) -> Result<Vec<Account>, StoreError> {
    if ids.is_empty() || sources.is_empty() {
        return Ok(Vec::new());
    }
    Ok(tx.query(
        "select p.acct_id, p.source_id, p.instance_id, a.upstream_id, p.acct, p.display_name, p.url, p.raw,
             p.seen_at_ms
         from account_profile p
         join account a on a.id = p.account_id and a.instance_id = p.instance_id
         where p.acct_id {in $1} and p.source_id {in $2} and p.instance_id {in $3}",
        &[
            &Column::i64(ids.iter().map(|id| sql(*id))),
            &Column::i64(sources.iter().map(|source| source.id())),
            &Column::i64(sources.iter().map(|source| source.instance_id())),
        ],
        |row| {
            Ok(Account {
                id: from_sql(row.i64("acct_id")?)?,
                source: SourceKey {
                    id: from_sql(row.i64("source_id")?)?,
                    instance: from_sql(row.i64("instance_id")?)?,
                },
                upstream_id: row.text("upstream_id")?,
                acct: row.text("acct")?,
                display_name: row.text("display_name")?,
                url: row.opt_text("url")?,
                raw: row.text("raw")?,
                seen_at_ms: row.i64("seen_at_ms")?,
            })
        },
    )?)
}

/// The names of accounts, each with an instance at which the account has that name. They tell
/// nothing to those who do not know the accounts already, because an ID is derived from the name.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn names(
    tx: &mut Tx<'_>,
    ids: &[AccountId],
) -> Result<HashMap<AccountId, (InstanceId, String)>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let found = tx.query(
        "select acct_id, instance_id, acct from account where acct_id {in $1} and acct <> ''
         order by instance_id desc",
        &[&Column::i64(ids.iter().map(|id| sql(*id)))],
        |row| {
            let name = (from_sql(row.i64("instance_id")?)?, row.text("acct")?);
            Ok((from_sql(row.i64("acct_id")?)?, name))
        },
    )?;
    Ok(found.into_iter().collect())
}

/// At most `limit` accounts that these sources have shown and whose names with hosts begin with
/// `beginning`, in lower case: those with names above `after`, in the order of the names, with the
/// accounts' IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn beginning_with(
    tx: &mut Tx<'_>,
    (beginning, after): (&str, &str),
    sources: &[SourceKey],
    limit: u32,
) -> Result<Vec<(String, AccountId)>, StoreError> {
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let end = format!("{beginning}{}", char::MAX);
    let found = tx.query(
        "select distinct acct_key, acct_id from account_profile
         where acct_key >= $1 and acct_key < $2 and acct_key > $3
             and source_id {in $4} and instance_id {in $5}
         order by acct_key limit $6",
        &[
            &beginning,
            &end.as_str(),
            &after,
            &Column::i64(sources.iter().map(|source| source.id())),
            &Column::i64(sources.iter().map(|source| source.instance_id())),
            &i64::from(limit),
        ],
        |row| Ok((row.text("acct_key")?, from_sql(row.i64("acct_id")?)?)),
    )?;
    Ok(found)
}

/// Stored accounts, by upstream ID.
pub(crate) struct KnownAccount {
    origin: String,
    names: HashMap<String, Names>,
}

/// The IDs of stored accounts, by upstream ID.
#[derive(Default)]
pub(crate) struct StoredIds {
    ids: HashMap<String, StoredId>,
    /// The origin of their instance.
    pub(crate) origin: String,
}

/// The IDs of a stored account.
#[derive(Clone, Copy)]
pub(crate) struct StoredId {
    /// The ID of its row, which belongs to one instance.
    pub(crate) id: i64,
    /// The ID that people know, which is the same for all instances; `None` if this transaction
    /// writes it to the row later.
    pub(crate) acct_id: i64,
}

impl StoredIds {
    /// The IDs of an author; `None` if the upstream left the author out.
    pub(crate) fn of(&self, author: &Author) -> Option<StoredId> {
        self.ids.get(&*without_nul(author.id.as_str())).copied()
    }
}

/// Accounts that were requested: for [`KnownAccount::read`].
pub(crate) struct PendingAccounts {
    origin: PendingRows<'static, String>,
    names: PendingRows<'static, (String, Names)>,
}

struct Names {
    id: i64,
    acct_id: i64,
    acct: String,
    has_uri: bool,
}

impl KnownAccount {
    /// The accounts with these upstream IDs.
    pub(crate) fn load<'a>(
        tx: &mut Tx<'_>,
        instance_id: i64,
        ids: impl IntoIterator<Item = &'a UpstreamId>,
    ) -> Result<KnownAccount, DbError> {
        let pending = KnownAccount::load_later(tx, instance_id, ids)?;
        KnownAccount::read(tx, pending)
    }

    /// [`KnownAccount::load`], requested together with the next statement.
    pub(crate) fn load_later<'a>(
        tx: &mut Tx<'_>,
        instance_id: i64,
        ids: impl IntoIterator<Item = &'a UpstreamId>,
    ) -> Result<PendingAccounts, DbError> {
        let ids = ids.into_iter().map(|id| without_nul(id.as_str()));
        let ids: HashSet<Cow<'_, str>> = ids.filter(|id| !id.is_empty()).collect();
        let origin = tx.query_later(
            "select origin from instance where id = $1",
            &[&instance_id],
            |row| row.text("origin"),
        )?;
        let names = tx.query_each_later(
            "select upstream_id, id, acct_id, acct, uri is not null as has_uri from account
             where upstream_id = {row 1} and instance_id = $1",
            &[&instance_id],
            &[Column::text(ids.iter().map(|id| &**id))],
            |row| {
                let names = Names {
                    id: row.i64("id")?,
                    acct_id: row.i64("acct_id")?,
                    acct: row.text("acct")?,
                    has_uri: row.bool("has_uri")?,
                };
                Ok((row.text("upstream_id")?, names))
            },
        )?;
        Ok(PendingAccounts { origin, names })
    }

    pub(crate) fn read(tx: &mut Tx<'_>, pending: PendingAccounts) -> Result<KnownAccount, DbError> {
        Ok(KnownAccount {
            origin: tx.rows(pending.origin)?.pop().unwrap_or_default(),
            names: tx.rows(pending.names)?.into_iter().collect(),
        })
    }
}

/// Those of these accounts that the sources have shown. Of sources that others have published, only
/// the accounts of their servers count.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn shown(
    tx: &mut Tx<'_>,
    ids: &[AccountId],
    readable: &ReadableSources,
) -> Result<HashSet<AccountId>, StoreError> {
    let sources = readable.all();
    let vouching = sources.iter().filter(|source| !source.is_published());
    if ids.is_empty() || sources.is_empty() {
        return Ok(HashSet::new());
    }
    let found = tx.query(
        "select distinct acct_id from account_profile
         where acct_id {in $1} and source_id {in $2} and instance_id {in $3}
             and (source_id {in $4} or acct not like '%@%')",
        &[
            &Column::i64(ids.iter().map(|id| sql(*id))),
            &Column::i64(sources.iter().map(|source| source.key.id())),
            &Column::i64(sources.iter().map(|source| source.key.instance_id())),
            &Column::i64(vouching.map(|source| source.key.id())),
        ],
        |row| from_sql(row.i64("acct_id")?),
    )?;
    Ok(found.into_iter().collect())
}

/// Local IDs of accounts that were requested, by their IDs at the instance.
pub(crate) type PendingAccountIds = PendingRows<'static, (String, (AccountId, AccountId))>;

/// The local IDs of accounts, by their IDs at the instance: those that people know, and those of
/// their rows, which say nothing about their names. Requested together with the next statement.
pub(crate) fn local_ids_later<'a>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: impl Iterator<Item = &'a str>,
) -> Result<PendingAccountIds, DbError> {
    tx.query_each_later(
        "select upstream_id, id, acct_id from account
         where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(upstream_ids)],
        |row| {
            let ids = (from_sql(row.i64("acct_id")?)?, from_sql(row.i64("id")?)?);
            Ok((row.text("upstream_id")?, ids))
        },
    )
}

/// Stores authors that are new or have changed their names, and accounts that are only `named`. The
/// texts of authors that people read are stored by [`account_profile`](super::account_profile).
/// Returns their local IDs by upstream ID. An author whom the upstream left out has no ID and no
/// account. The instance must be held, also when `known` was read, which must hold all of them that
/// are stored.
pub(crate) fn store<'a>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    known: KnownAccount,
    authors: impl IntoIterator<Item = &'a Author>,
    named: impl IntoIterator<Item = &'a UpstreamId>,
) -> Result<StoredIds, DbError> {
    let mut unstored: HashMap<String, Fields<'a>> = HashMap::new();
    for author in authors {
        let upstream_id = without_nul(author.id.as_str());
        if !upstream_id.is_empty() {
            unstored.insert(upstream_id.into_owned(), Fields::of(author));
        }
    }
    for id in named {
        let upstream_id = without_nul(id.as_str());
        if !upstream_id.is_empty()
            && !known.names.contains_key(&*upstream_id)
            && !unstored.contains_key(&*upstream_id)
        {
            unstored.insert(upstream_id.into_owned(), Fields::NAMED);
        }
    }
    let mut ids = HashMap::with_capacity(unstored.len());
    let mut changed: Vec<(StoredId, Fields<'a>)> = Vec::new();
    let mut unnamed: HashSet<i64> = HashSet::new();
    let origin = known.origin;
    for (upstream_id, names) in known.names {
        if let Some(fields) = unstored.remove(&upstream_id)
            && !fields.acct.is_empty()
            && (fields.acct != names.acct || fields.uri.is_some() && !names.has_uri)
        {
            let stored = StoredId {
                id: names.id,
                acct_id: fields.acct_id(&origin, names.id),
            };
            ids.insert(upstream_id, stored);
            if !names.has_uri {
                unnamed.insert(stored.id);
            }
            changed.push((stored, fields));
        } else {
            let (id, acct_id) = (names.id, names.acct_id);
            ids.insert(upstream_id, StoredId { id, acct_id });
        }
    }
    update(tx, instance_id, &changed)?;
    let new: Vec<(String, Fields<'a>)> = unstored.into_iter().collect();
    insert(tx, instance_id, &new, &origin, &mut ids)?;
    // Like a post's, the name of an account stays.
    let changed = changed.iter().map(|(stored, fields)| (*stored, fields));
    let changed = changed.filter(|(stored, _)| unnamed.contains(&stored.id));
    let new = new
        .iter()
        .filter_map(|(upstream_id, fields)| Some((*ids.get(upstream_id)?, fields)));
    let named = changed.chain(new);
    let named = named.filter_map(|(stored, fields)| Some((stored.id, fields.uri.as_deref()?)));
    object_uri::add(
        tx,
        (instance_id, &origin),
        NamedKind::Account,
        named,
        &TakenIds::NONE,
    )?;
    Ok(StoredIds { ids, origin })
}

struct Fields<'a> {
    acct: Cow<'a, str>,
    uri: Option<Cow<'a, str>>,
}

impl<'a> Fields<'a> {
    /// The fields of an account that is only named.
    const NAMED: Fields<'static> = Fields {
        acct: Cow::Borrowed(""),
        uri: None,
    };

    fn of(author: &'a Author) -> Fields<'a> {
        Fields {
            acct: without_nul(&author.acct),
            uri: author.uri.as_deref().map(without_nul),
        }
    }

    /// The ID by which people know it. While its name is unknown, that is the ID of its row.
    fn acct_id(&self, origin: &str, id: i64) -> i64 {
        let key = AcctKey::new(&self.acct, origin);
        key.map_or(id, |key| key.account_id().cast_signed())
    }
}

fn update(
    tx: &mut Tx<'_>,
    instance_id: i64,
    changed: &[(StoredId, Fields<'_>)],
) -> Result<(), DbError> {
    let fields = || changed.iter().map(|(_, fields)| fields);
    tx.execute_many_later(
        "update account set acct_id = r.acct_id, acct = r.acct, uri = coalesce(account.uri, r.uri)
         from {rows as r(id, acct_id, acct, uri)}
         where account.id = r.id and account.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(changed.iter().map(|(stored, _)| stored.id)),
            Column::i64(changed.iter().map(|(stored, _)| stored.acct_id)),
            Column::text(fields().map(|f| &*f.acct)),
            Column::text(fields().map(|f| f.uri.as_deref())),
        ],
    )
}

fn insert(
    tx: &mut Tx<'_>,
    instance_id: i64,
    new: &[(String, Fields<'_>)],
    origin: &str,
    ids: &mut HashMap<String, StoredId>,
) -> Result<(), DbError> {
    if new.is_empty() {
        return Ok(());
    }
    let new_ids = (0..new.len()).map(|_| random_id());
    let new_ids: Vec<i64> = new_ids.collect::<Result<_, _>>()?;
    let fields = || new.iter().map(|(_, fields)| fields);
    let stored = new_ids.iter().zip(fields()).map(|(id, fields)| StoredId {
        id: *id,
        acct_id: fields.acct_id(origin, *id),
    });
    let stored: Vec<StoredId> = stored.collect();
    tx.execute_many_later(
        "insert into account (id, instance_id, acct_id, upstream_id, acct, uri)
         select r.id, $1, r.acct_id, r.upstream_id, r.acct, r.uri
         from {rows as r(id, acct_id, upstream_id, acct, uri)}",
        &[&instance_id],
        &[
            Column::i64(stored.iter().map(|stored| stored.id)),
            Column::i64(stored.iter().map(|stored| stored.acct_id)),
            Column::text(new.iter().map(|(upstream_id, _)| upstream_id.as_str())),
            Column::text(fields().map(|f| &*f.acct)),
            Column::text(fields().map(|f| f.uri.as_deref())),
        ],
    )?;
    let upstream_ids = new.iter().map(|(upstream_id, _)| upstream_id.clone());
    ids.extend(upstream_ids.zip(stored));
    Ok(())
}

/// An account ID that no local account has.
fn random_id() -> Result<i64, DbError> {
    loop {
        let random = getrandom::u64().map_err(|error| DbError::Other(error.to_string()))?;
        let id = (random >> 1).cast_signed();
        if id >= MIN_COPY_ID {
            return Ok(id);
        }
    }
}
