//! The keys of objects that this server creates. `docs/sync-protocol.md` specifies them.

use std::collections::HashMap;

use driftline_core::{
    names::acct::AcctKey,
    sync::{KeyError, LOCAL_HOST, ObjectKey, ObjectKind, POST_ID_PREFIX, UNNAMED_HOST},
};
use driftline_db::{Column, DbError, Tx};

use super::local_account;
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, account_id, from_sql, local_account_id, sql},
    posts::{
        account, instance,
        timeline::{self, PostKey},
    },
    viewer::Viewer,
};

/// A new key of a list or filter.
pub(crate) fn random(kind: ObjectKind) -> Result<ObjectKey, DbError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| DbError::Other(error.to_string()))?;
    Ok(ObjectKey::random(kind, u128::from_ne_bytes(bits)))
}

/// The key of a bookmark or favourite of a post that the account may see.
pub(crate) fn for_post(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    kind: ObjectKind,
    post: PostKey,
) -> Result<ObjectKey, StoreError> {
    let name = post_names(tx, account, &[post])?.remove(&post.post);
    let name = name.unwrap_or_else(|| local_name(post.post));
    let key = ObjectKey::named(kind, &name);
    key.map_err(|error| StoreError::unreadable("a post's name", &error))
}

/// The names of posts in keys and values: the URI, or if the post has none that may be part of a
/// key, `id:` and the ID at which the account sees it. Posts that have neither are omitted.
pub(crate) fn post_names(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    posts: &[PostKey],
) -> Result<HashMap<LocalId, String>, StoreError> {
    if posts.is_empty() {
        return Ok(HashMap::new());
    }
    let uris = tx.query(
        "select id, uri from post where id {in $1} and instance_id {in $2}",
        &[
            &Column::i64(posts.iter().map(|post| sql(post.post))),
            &Column::i64(posts.iter().map(|post| sql(post.instance))),
        ],
        |row| Ok((from_sql(row.i64("id")?)?, row.opt_text("uri")?)),
    )?;
    let uris = uris.into_iter().filter_map(|(id, uri)| Some((id, uri?)));
    let mut names: HashMap<LocalId, String> = uris.filter(|(_, uri)| may_be_in_key(uri)).collect();
    let unnamed = posts.iter().filter(|post| !names.contains_key(&post.post));
    let unnamed: Vec<PostKey> = unnamed.copied().collect();
    let seen = timeline::by_post_ids(tx, &unnamed, Viewer::Account(account))?;
    names.extend(seen.iter().map(|(id, post)| (*id, local_name(post.id))));
    Ok(names)
}

/// True if the key of an object of any kind with this name can be stored.
fn may_be_in_key(name: &str) -> bool {
    ObjectKey::named(ObjectKind::Favourite, name).is_ok()
}

fn local_name(post: LocalId) -> String {
    format!("{POST_ID_PREFIX}{post}")
}

/// The keys of accounts in a list, in their order.
pub(crate) fn for_members(
    tx: &mut Tx<'_>,
    list: &ObjectKey,
    members: &[AccountId],
) -> Result<Vec<ObjectKey>, StoreError> {
    let accts = accts(tx, members)?;
    let key = |acct: &str| ObjectKey::member(list, acct);
    let members = members.iter();
    members
        .map(|member| with_acct(*member, accts.get(member), key))
        .collect()
}

/// The key of a follow, block, mute or note of an account.
pub(crate) fn for_account(
    tx: &mut Tx<'_>,
    kind: ObjectKind,
    account: AccountId,
) -> Result<ObjectKey, StoreError> {
    let accts = accts(tx, &[account])?;
    let key = |acct: &str| ObjectKey::named(kind, acct);
    with_acct(account, accts.get(&account), key)
}

/// The key with an account's name, or with its ID if the name is unknown or cannot be part of a key.
fn with_acct(
    account: AccountId,
    acct: Option<&String>,
    key: impl Fn(&str) -> Result<ObjectKey, KeyError>,
) -> Result<ObjectKey, StoreError> {
    match acct.and_then(|acct| key(acct).ok()) {
        Some(key) => Ok(key),
        None => key(&format!("{account}@{UNNAMED_HOST}"))
            .map_err(|error| StoreError::unreadable("the key of an account", &error)),
    }
}

/// The names of accounts with their hosts, in lower case. Accounts whose names are unknown are
/// omitted.
fn accts(
    tx: &mut Tx<'_>,
    accounts: &[AccountId],
) -> Result<HashMap<AccountId, String>, StoreError> {
    let local: Vec<LocalAccountId> = accounts
        .iter()
        .filter_map(|id| local_account_id(*id))
        .collect();
    let others: Vec<AccountId> = accounts
        .iter()
        .copied()
        .filter(|id| local_account_id(*id).is_none())
        .collect();
    let mut accts = HashMap::new();
    for account in local_account::by_ids(tx, &local)? {
        let acct = format!("{}@{LOCAL_HOST}", account.name.key());
        accts.insert(account_id(account.id), acct);
    }
    let names = account::names(tx, &others)?;
    let instances = match names.is_empty() {
        true => Vec::new(),
        false => instance::all(tx)?,
    };
    for (id, (instance, acct)) in names {
        let instance = instances.iter().find(|of| of.id == instance);
        let origin = instance.map_or("", |of| of.origin.as_str());
        if let Some(key) = AcctKey::new(&acct, origin) {
            accts.insert(id, key.as_str().to_owned());
        }
    }
    Ok(accts)
}
