//! Lists of accounts and of what predicates select, which are objects of their owner's library. Must be written below the
//! account's root.

use driftline_core::{
    predicate::{Predicate, PredicateSet},
    social::{ListSettings, MAX_LISTS, TextError},
    sync::{ObjectKey, ObjectKind},
};
use driftline_db::{Column, Row, Tx};

use super::{
    SecretHash, list_bell,
    list_entry::{self, ListKey},
    local_account, object_keys, parsed,
};
use crate::{
    error::StoreError,
    id_types::{AccountId, LocalAccountId, LocalId, from_sql, sql},
    library::object::AccountLibrary,
    search,
};

/// A list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Its ID, which is a local one. Sources, which are lists of the operator, have smaller ones.
    pub id: LocalId,
    /// Its settings.
    pub settings: ListSettings,
    /// The reason why its predicate cannot be read, for example because a newer version wrote it. The
    /// settings have no predicate then, and the list no posts.
    pub unreadable: Option<String>,
    /// The readers of the posts in its feed; `None` if it has no feed.
    pub feed: Option<FeedReaders>,
}

impl List {
    /// True for a list of the posts that a predicate selects, even if that cannot be read.
    pub const fn has_predicate(&self) -> bool {
        self.settings.predicate.is_some() || self.unreadable.is_some()
    }
}

/// The reason why a list cannot be created or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListRefused {
    /// A setting is invalid.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The list would become one of accounts, or one of a predicate.
    #[error("a list of accounts has no predicate, and a list with a predicate has no accounts")]
    Kind,
    /// A list without a predicate notifies of nothing.
    #[error("only a list with a predicate notifies of posts")]
    Notify,
    /// Too many lists of the account notify of posts.
    #[error("at most {MAX_NOTIFYING_LISTS} lists of an account notify of posts")]
    ManyNotify,
    /// Too many lists that notify require no word, author, instance or hashtag.
    #[error(
        "at most {MAX_BROAD_LISTS} lists of an account notify of posts without a word, an author, an instance or a hashtag that each post must have: add one to the predicate"
    )]
    ManyBroad,
    /// The account has too many lists.
    #[error("You have reached the maximum number of lists")]
    Many,
}

/// Creates a list.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more).
pub fn create(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    settings: ListSettings,
    now_ms: i64,
) -> Result<Result<List, ListRefused>, StoreError> {
    let key = object_keys::random(ObjectKind::List)?;
    create_with_key(tx, account, key, settings, now_ms)
}

/// Creates a list whose key is that of no list of the account.
pub(crate) fn create_with_key(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    key: ObjectKey,
    settings: ListSettings,
    now_ms: i64,
) -> Result<Result<List, ListRefused>, StoreError> {
    if let Err(refused) = settings.check() {
        return Ok(Err(refused.into()));
    }
    local_account::require(tx, account)?;
    if all(tx, account)?.len() >= MAX_LISTS {
        return Ok(Err(ListRefused::Many));
    }
    if let Err(refused) = check_notify(tx, account, None, &settings)? {
        return Ok(Err(refused));
    }
    let notified = match settings.notify {
        true => Some(sql(search::end(tx)?)),
        false => None,
    };
    let id = AccountLibrary::load(tx, account)?.add(tx, ObjectKind::List, &[key], now_ms)?;
    tx.execute_later(
        "insert into list (account_id, id, title, replies_policy, exclusive, predicate, notified_id)
         values ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &sql(account),
            &id,
            &settings.title,
            &settings.replies_policy.name(),
            &settings.exclusive,
            &predicate_json(&settings)?,
            &notified,
        ],
    )?;
    let id = from_sql(id)?;
    Ok(Ok(List {
        id,
        settings,
        unreadable: None,
        feed: None,
    }))
}

/// Changes the settings of a list; `None` if the account does not have it. Another predicate ends the feed
/// of the list, whose address was given away for other posts, and the entries of its posts. A list that notifies
/// then begins with later posts. A predicate that cannot be read stays unless another one replaces it.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    settings: ListSettings,
) -> Result<Result<Option<List>, ListRefused>, StoreError> {
    if let Err(refused) = settings.check() {
        return Ok(Err(refused.into()));
    }
    let Some(known) = by_id(tx, account, id)? else {
        return Ok(Ok(None));
    };
    let keeps_unreadable = known.unreadable.is_some() && settings.predicate.is_none();
    if !keeps_unreadable && known.has_predicate() != settings.predicate.is_some() {
        return Ok(Err(ListRefused::Kind));
    }
    if let Err(refused) = check_notify(tx, account, Some(&known), &settings)? {
        return Ok(Err(refused));
    }
    let key = ListKey { account, list: id };
    let is_other = known.settings.predicate != settings.predicate;
    if is_other {
        list_entry::clear(tx, key)?;
    }
    if known.settings != settings {
        let notified = match settings.notify {
            true if known.settings.notify && !is_other => {
                let standing = list_bell::standing_list(tx, key)?;
                standing.and_then(|standing| standing.notified.map(sql))
            }
            true => Some(sql(search::end(tx)?)),
            false => None,
        };
        AccountLibrary::load(tx, account)?.change(tx, sql(id))?;
        tx.execute_later(
            "update list set title = $3, replies_policy = $4, exclusive = $5,
                 predicate = case when $9 then predicate else $6 end, notified_id = $7, feed_hash = case when $8 then null else feed_hash end,
                 feed_readers = case when $8 then null else feed_readers end
             where account_id = $1 and id = $2",
            &[
                &sql(account),
                &sql(id),
                &settings.title,
                &settings.replies_policy.name(),
                &settings.exclusive,
                &predicate_json(&settings)?,
                &notified,
                &is_other,
                &keeps_unreadable,
            ],
        )?;
    }
    Ok(Ok(Some(List {
        id,
        settings,
        unreadable: known.unreadable.filter(|_| keeps_unreadable),
        feed: known.feed.filter(|_| !is_other),
    })))
}

/// Checks that a new list, or one that is known, may notify.
fn check_notify(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    known: Option<&List>,
    settings: &ListSettings,
) -> Result<Result<(), ListRefused>, StoreError> {
    if !settings.notify {
        return Ok(Ok(()));
    }
    if settings.predicate.is_none() && !known.is_some_and(List::has_predicate) {
        return Ok(Err(ListRefused::Notify));
    }
    let known = known.map(|list| list.id);
    let lists = all(tx, account)?.into_iter();
    let others = lists.filter(|other| other.settings.notify && Some(other.id) != known);
    let others: Vec<ListSettings> = others.map(|other| other.settings).collect();
    if others.len() >= MAX_NOTIFYING_LISTS {
        return Ok(Err(ListRefused::ManyNotify));
    }
    let broad = others.iter().filter(|other| is_broad(other)).count();
    Ok(match is_broad(settings) && broad >= MAX_BROAD_LISTS {
        true => Err(ListRefused::ManyBroad),
        false => Ok(()),
    })
}

/// Returns true if a list has to be searched whatever the words, author, instance and hashtags of a
/// new post are.
fn is_broad(settings: &ListSettings) -> bool {
    let set = PredicateSet::new(&settings.predicate);
    !set.is_empty() && set.is_unconditional(0)
}

/// The number of lists of an account that notify of posts.
const MAX_NOTIFYING_LISTS: usize = 20;
/// The number of them that are searched every few seconds, whatever is new.
const MAX_BROAD_LISTS: usize = 5;

/// The readers to whom all posts of a feed may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedReaders {
    /// The posts that everybody may read.
    World,
    /// The posts that the list's owner may read.
    Owner,
}

impl FeedReaders {
    /// The name in the store and in answers.
    pub const fn name(self) -> &'static str {
        match self {
            FeedReaders::World => "world",
            FeedReaders::Owner => "owner",
        }
    }
}

/// Sets or ends the feed of a list with a predicate: the hash of its secret, and its readers. Returns `false` if the account has no such list.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn set_feed(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
    feed: Option<(SecretHash, FeedReaders)>,
) -> Result<bool, StoreError> {
    let known = by_id(tx, account, list)?;
    if known.is_none_or(|known| !known.has_predicate()) {
        return Ok(false);
    }
    AccountLibrary::load(tx, account)?.change(tx, sql(list))?;
    let (hash, readers) = feed.unzip();
    let readers = readers.map(FeedReaders::name);
    tx.execute_later(
        "update list set feed_hash = $3, feed_readers = $4 where account_id = $1 and id = $2",
        &[&sql(account), &sql(list), &hash, &readers],
    )?;
    Ok(true)
}

/// The list of an account whose feed has a secret with this hash.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_feed(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    hash: &SecretHash,
) -> Result<Option<(List, FeedReaders)>, StoreError> {
    let found = tx.query_opt(
        "select id, title, replies_policy, exclusive, predicate, notified_id, feed_readers from list
         where account_id = $1 and feed_hash = $2",
        &[&sql(account), hash],
        |row| Ok(from_row(row)),
    )?;
    let list = found.transpose()?;
    Ok(list.and_then(|list| list.feed.map(|readers| (list, readers))))
}

fn predicate_json(settings: &ListSettings) -> Result<Option<String>, StoreError> {
    let json = settings.predicate.as_ref().map(serde_json::to_string);
    json.transpose()
        .map_err(|error| StoreError::unreadable("a predicate", &error.to_string()))
}

/// Removes a list with its members. Returns `false` if the account does not have it.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn remove(tx: &mut Tx<'_>, account: LocalAccountId, list: LocalId) -> Result<bool, StoreError> {
    if by_id(tx, account, list)?.is_none() {
        return Ok(false);
    }
    let mut gone: Vec<i64> = member_ids(tx, account, list)?;
    gone.push(sql(list));
    AccountLibrary::load(tx, account)?.remove(tx, &gone)?;
    list_entry::clear(tx, ListKey { account, list })?;
    tx.execute_later(
        "delete from list_member where account_id = $1 and list_id = $2",
        &[&sql(account), &sql(list)],
    )?;
    tx.execute_later(
        "delete from list where account_id = $1 and id = $2",
        &[&sql(account), &sql(list)],
    )?;
    Ok(true)
}

/// Removes an account from all lists of another one, because it is not followed any more, or is
/// gone. Takes no lock: the local clock must not be locked.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist; [`StoreError::Db`] if the database
/// fails.
pub fn forget_member(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    member: AccountId,
) -> Result<(), StoreError> {
    let gone = tx.query(
        "select id from list_member where account_id = $1 and member_id = $2 order by id",
        &[&sql(account), &sql(member)],
        |row| row.i64("id"),
    )?;
    if gone.is_empty() {
        return Ok(());
    }
    AccountLibrary::load(tx, account)?.remove(tx, &gone)?;
    Ok(tx.execute_later(
        "delete from list_member where account_id = $1 and member_id = $2",
        &[&sql(account), &sql(member)],
    )?)
}

/// The IDs of a list's memberships, in order of their beginnings.
fn member_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
) -> Result<Vec<i64>, StoreError> {
    Ok(tx.query(
        "select id from list_member where account_id = $1 and list_id = $2 order by id",
        &[&sql(account), &sql(list)],
        |row| row.i64("id"),
    )?)
}

/// The lists of an account, in the order of their creation.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn all(tx: &mut Tx<'_>, account: LocalAccountId) -> Result<Vec<List>, StoreError> {
    let rows = tx.query(
        "select id, title, replies_policy, exclusive, predicate, notified_id, feed_readers from list
         where account_id = $1 order by id",
        &[&sql(account)],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// The lists with these IDs, in no order.
pub(crate) fn by_ids(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[i64],
) -> Result<Vec<List>, StoreError> {
    let rows = tx.query(
        "select id, title, replies_policy, exclusive, predicate, notified_id, feed_readers from list
         where account_id = $1 and id {in $2}",
        &[&sql(account), &Column::i64(ids.iter().copied())],
        |row| Ok(from_row(row)),
    )?;
    rows.into_iter().collect()
}

/// A list of an account.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn by_id(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    list: LocalId,
) -> Result<Option<List>, StoreError> {
    let found = tx.query_opt(
        "select id, title, replies_policy, exclusive, predicate, notified_id, feed_readers from list
         where account_id = $1 and id = $2",
        &[&sql(account), &sql(list)],
        |row| Ok(from_row(row)),
    )?;
    found.transpose()
}

fn from_row(row: &Row<'_>) -> Result<List, StoreError> {
    let predicate = row.opt_str("predicate")?.map(Predicate::from_json);
    let (predicate, unreadable) = match predicate {
        Some(Ok(predicate)) => (Some(predicate), None),
        Some(Err(error)) => (None, Some(error.to_string())),
        None => (None, None),
    };
    let feed = row.opt_str("feed_readers")?.map(|readers| match readers {
        "owner" => FeedReaders::Owner,
        _ => FeedReaders::World,
    });
    Ok(List {
        feed,
        unreadable,
        id: from_sql(row.i64("id")?)?,
        settings: ListSettings {
            title: row.text("title")?,
            replies_policy: parsed("a policy of replies", row.str("replies_policy")?)?,
            exclusive: row.bool("exclusive")?,
            predicate,
            notify: row.opt_i64("notified_id")?.is_some(),
        },
    })
}
