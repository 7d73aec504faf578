//! Authors of stored posts.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
};

use driftline_core::{post::Author, upstream_id::UpstreamId};
use driftline_db::{Column, DbError, PendingRows, Tx};

use crate::{
    error::StoreError,
    id_types::{AccountId, InstanceId, MIN_COPY_ID, from_sql, sql},
    text::without_nul,
};

/// An account of an instance as it was last seen with a post that was new or edited. One that posts
/// only name, so far, has empty names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its local ID.
    pub id: AccountId,
    /// The instance that it was seen through.
    pub instance: InstanceId,
    /// Its ID there.
    pub upstream_id: String,
    /// `name`, or `name@host`.
    pub acct: String,
    /// The name that people read.
    pub display_name: String,
    /// Its address for people.
    pub url: Option<String>,
    /// The account object as it came, JSON. Counts and pictures in it are as old as the last
    /// change of a name; the posts' own JSON is newer.
    pub raw: String,
}

/// The accounts of those IDs, in no order.
pub fn by_ids(tx: &mut Tx<'_>, ids: &[AccountId]) -> Result<Vec<Account>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Column::i64(ids.iter().map(|id| sql(*id)));
    Ok(tx.query(
        "select id, instance_id, upstream_id, acct, display_name, url, raw
         from account where id {in $1}",
        &[&ids],
        |row| {
            Ok(Account {
                id: from_sql(row.i64("id")?)?,
                instance: from_sql(row.i64("instance_id")?)?,
                upstream_id: row.text("upstream_id")?,
                acct: row.text("acct")?,
                display_name: row.text("display_name")?,
                url: row.opt_text("url")?,
                raw: row.text("raw")?,
            })
        },
    )?)
}

/// Accounts as they are stored, by upstream ID.
pub(crate) struct Known(HashMap<String, Names>);

/// Accounts that were asked for: for [`Known::read`].
pub(crate) struct PendingAccounts(PendingRows<'static, (String, Names)>);

struct Names {
    id: i64,
    acct: String,
    display_name: String,
    url: Option<String>,
}

impl Known {
    /// The accounts of those upstream IDs.
    pub(crate) fn load<'a>(
        tx: &mut Tx<'_>,
        instance_id: i64,
        ids: impl IntoIterator<Item = &'a UpstreamId>,
    ) -> Result<Known, DbError> {
        let pending = Known::load_later(tx, instance_id, ids)?;
        Known::read(tx, pending)
    }

    /// [`Known::load`], along with what is asked next.
    pub(crate) fn load_later<'a>(
        tx: &mut Tx<'_>,
        instance_id: i64,
        ids: impl IntoIterator<Item = &'a UpstreamId>,
    ) -> Result<PendingAccounts, DbError> {
        let ids = ids.into_iter().map(|id| without_nul(id.as_str()));
        let ids: HashSet<Cow<'_, str>> = ids.filter(|id| !id.is_empty()).collect();
        let found = tx.query_each_later(
            "select upstream_id, id, acct, display_name, url from account
             where upstream_id = {row 1} and instance_id = $1",
            &[&instance_id],
            &[Column::text(ids.iter().map(|id| &**id))],
            |row| {
                let names = Names {
                    id: row.i64("id")?,
                    acct: row.text("acct")?,
                    display_name: row.text("display_name")?,
                    url: row.opt_text("url")?,
                };
                Ok((row.text("upstream_id")?, names))
            },
        )?;
        Ok(PendingAccounts(found))
    }

    pub(crate) fn read(tx: &mut Tx<'_>, pending: PendingAccounts) -> Result<Known, DbError> {
        Ok(Known(tx.rows(pending.0)?.into_iter().collect()))
    }
}

/// The local IDs of accounts, with their IDs at the instance, along with what is asked next.
pub(crate) fn local_ids_later<'a>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    upstream_ids: impl Iterator<Item = &'a str>,
) -> Result<PendingRows<'static, (String, AccountId)>, DbError> {
    tx.query_each_later(
        "select upstream_id, id from account where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(upstream_ids)],
        |row| Ok((row.text("upstream_id")?, from_sql(row.i64("id")?)?)),
    )
}

/// Stores authors that are new or have changed their names, and accounts that are only `named`;
/// returns their local IDs by upstream ID. An author whom the upstream left out has no ID and no
/// account. The instance must be held, and must have been when `known` was read, which holds all of
/// them that are stored.
pub(crate) fn store<'a>(
    tx: &mut Tx<'_>,
    instance_id: i64,
    known: Known,
    authors: impl IntoIterator<Item = &'a Author>,
    named: impl IntoIterator<Item = &'a UpstreamId>,
) -> Result<HashMap<String, i64>, DbError> {
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
            && !known.0.contains_key(&*upstream_id)
            && !unstored.contains_key(&*upstream_id)
        {
            unstored.insert(upstream_id.into_owned(), Fields::NAMED);
        }
    }
    let mut ids = HashMap::with_capacity(unstored.len());
    let mut changed: Vec<(i64, Fields<'a>)> = Vec::new();
    for (upstream_id, names) in known.0 {
        if let Some(fields) = unstored.remove(&upstream_id)
            && !fields.acct.is_empty()
            && (fields.acct != names.acct
                || fields.display_name != names.display_name
                || fields.url.as_deref() != names.url.as_deref())
        {
            changed.push((names.id, fields));
        }
        ids.insert(upstream_id, names.id);
    }
    update(tx, instance_id, &changed)?;
    let new: Vec<(String, Fields<'a>)> = unstored.into_iter().collect();
    insert(tx, instance_id, &new, &mut ids)?;
    Ok(ids)
}

struct Fields<'a> {
    acct: Cow<'a, str>,
    display_name: Cow<'a, str>,
    url: Option<Cow<'a, str>>,
    raw: Cow<'a, str>,
}

impl<'a> Fields<'a> {
    /// Of an account that is only named.
    const NAMED: Fields<'static> = Fields {
        acct: Cow::Borrowed(""),
        display_name: Cow::Borrowed(""),
        url: None,
        raw: Cow::Borrowed("{}"),
    };

    fn of(author: &'a Author) -> Fields<'a> {
        Fields {
            acct: without_nul(&author.acct),
            display_name: without_nul(&author.display_name),
            url: author.url.as_deref().map(without_nul),
            raw: without_nul(&author.raw),
        }
    }
}

fn update(tx: &mut Tx<'_>, instance_id: i64, changed: &[(i64, Fields<'_>)]) -> Result<(), DbError> {
    let fields = || changed.iter().map(|(_, fields)| fields);
    tx.execute_many_later(
        "update account set acct = r.acct, display_name = r.display_name, url = r.url, raw = r.raw
         from {rows as r(id, acct, display_name, url, raw)}
         where account.id = r.id and account.instance_id = $1",
        &[&instance_id],
        &[
            Column::i64(changed.iter().map(|(id, _)| *id)),
            Column::text(fields().map(|f| &*f.acct)),
            Column::text(fields().map(|f| &*f.display_name)),
            Column::text(fields().map(|f| f.url.as_deref())),
            Column::text(fields().map(|f| &*f.raw)),
        ],
    )
}

fn insert(
    tx: &mut Tx<'_>,
    instance_id: i64,
    new: &[(String, Fields<'_>)],
    ids: &mut HashMap<String, i64>,
) -> Result<(), DbError> {
    if new.is_empty() {
        return Ok(());
    }
    let new_ids = (0..new.len()).map(|_| random_id());
    let new_ids: Vec<i64> = new_ids.collect::<Result<_, _>>()?;
    let fields = || new.iter().map(|(_, fields)| fields);
    tx.execute_many_later(
        "insert into account (id, instance_id, upstream_id, acct, display_name, url, raw)
         select r.id, $1, r.upstream_id, r.acct, r.display_name, r.url, r.raw
         from {rows as r(id, upstream_id, acct, display_name, url, raw)}",
        &[&instance_id],
        &[
            Column::i64(new_ids.iter().copied()),
            Column::text(new.iter().map(|(upstream_id, _)| upstream_id.as_str())),
            Column::text(fields().map(|f| &*f.acct)),
            Column::text(fields().map(|f| &*f.display_name)),
            Column::text(fields().map(|f| f.url.as_deref())),
            Column::text(fields().map(|f| &*f.raw)),
        ],
    )?;
    let upstream_ids = new.iter().map(|(upstream_id, _)| upstream_id.clone());
    ids.extend(upstream_ids.zip(new_ids));
    Ok(())
}

/// An account ID such as no counter reached in an earlier version, and no local account has.
fn random_id() -> Result<i64, DbError> {
    loop {
        let random = getrandom::u64().map_err(|error| DbError::Other(error.to_string()))?;
        let id = (random >> 1).cast_signed();
        if id >= MIN_COPY_ID {
            return Ok(id);
        }
    }
}
