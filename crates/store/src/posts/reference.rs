//! References: the local IDs by which posts refer to other posts and accounts.
//!
//! A post that everybody may see is referred to by its ID in the public timeline. Any other post
//! takes an ID when a public post first refers to it, both if it is hidden and if it is not stored,
//! so that the two cannot be told apart. That ID finds the post once it may be seen. An account
//! takes a random ID when one of its posts is stored or when it is first named.

use std::collections::{HashMap, HashSet};

use driftline_core::post::{Post, References};
use driftline_db::{Column, DbError, PendingRows, Tx};

use crate::{
    error::StoreError,
    id_types::{AccountId, InstanceId, LocalId, from_sql, sql},
    new_ids::{NewIds, TakenIds},
    posts::{
        account, alias,
        content_scope::ContentScope,
        instance,
        post::{self, PostVersion},
    },
    text::without_nul,
    viewer::ReadableSources,
};

/// Local IDs, by the IDs at the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalIds {
    /// The IDs of posts.
    pub posts: HashMap<String, LocalId>,
    /// The IDs of accounts.
    pub accounts: HashMap<String, AccountId>,
    /// Other IDs of accounts with known names, for viewers whose sources have not shown these
    /// accounts.
    nameless_accounts: HashMap<String, AccountId>,
}

impl LocalIds {
    /// Gives accounts that no source of the viewer has shown the IDs that they would have if nobody
    /// knew their names. The ID of a name would reveal that another source has shown the account.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn for_viewer(
        mut self,
        tx: &mut Tx<'_>,
        readable: &ReadableSources,
    ) -> Result<LocalIds, StoreError> {
        let named = self.nameless_accounts.keys();
        let named = named.filter_map(|upstream_id| self.accounts.get(upstream_id));
        let named: Vec<AccountId> = named.copied().collect();
        let shown = account::shown(tx, &named, readable)?;
        for (upstream_id, nameless) in &self.nameless_accounts {
            if let Some(id) = self.accounts.get_mut(upstream_id)
                && !shown.contains(id)
            {
                *id = *nameless;
            }
        }
        Ok(self)
    }
}

/// The local IDs of the posts and accounts to which posts of an instance refer. Objects that no
/// stored post has referred to yet may be missing. A post that everybody could see when it was
/// first named, and cannot see any more, keeps the ID that it had then. Runs one statement for each
/// kind, and one for the posts among them that everybody may see.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn local_ids(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    references: &References,
) -> Result<LocalIds, StoreError> {
    local_ids_later(tx, instance, references)?.read(tx)
}

/// [`local_ids`], requested together with the next statement.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn local_ids_later(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    references: &References,
) -> Result<PendingLocalIds, StoreError> {
    Ok(PendingLocalIds::ask(tx, sql(instance), references, true)?)
}

/// Local IDs that were requested.
pub struct PendingLocalIds {
    posts: PendingRows<'static, (String, Option<i64>)>,
    accounts: account::PendingAccountIds,
}

impl PendingLocalIds {
    /// [`local_ids`], requested together with the next statement. Only with `was_seen` it includes
    /// the IDs of posts that were seen once.
    pub(crate) fn ask(
        tx: &mut Tx<'_>,
        instance_id: i64,
        references: &References,
        was_seen: bool,
    ) -> Result<PendingLocalIds, DbError> {
        let posts = references.posts.iter().map(|id| id.as_str());
        let accounts = references.accounts.iter().map(|id| id.as_str());
        Ok(PendingLocalIds {
            posts: tx.query_each_later(
                "select upstream_id, coalesce(
                     (select coalesce(p.public_id, p.id) from post p
                      where p.id = upstream_post.post_id
                          and p.instance_id = $1
                          and (p.listed or $2 and upstream_post.reference_id is null)),
                     reference_id) as local_id
                 from upstream_post where upstream_id = {row 1} and instance_id = $1",
                &[&instance_id, &was_seen],
                &[Column::text(posts)],
                |row| Ok((row.text("upstream_id")?, row.opt_i64("local_id")?)),
            )?,
            accounts: account::local_ids_later(tx, instance_id, accounts)?,
        })
    }

    /// Reads the requested IDs.
    ///
    /// # Errors
    /// [`StoreError::Db`] if the database fails.
    pub fn read(self, tx: &mut Tx<'_>) -> Result<LocalIds, StoreError> {
        let mut found = LocalIds::default();
        for (upstream_id, (id, nameless)) in tx.rows(self.accounts)? {
            if nameless != id {
                found
                    .nameless_accounts
                    .insert(upstream_id.clone(), nameless);
            }
            found.accounts.insert(upstream_id, id);
        }
        for (upstream_id, local_id) in tx.rows(self.posts)? {
            if let Some(id) = local_id {
                found.posts.insert(upstream_id, from_sql(id)?);
            }
        }
        Ok(found)
    }
}

/// Leaves only the references that have no local IDs yet, for [`assign`] at the end of the write.
/// If there are any, holds the instance. In most cases all references of stored posts have their
/// IDs.
pub(crate) fn hold_missing(
    tx: &mut Tx<'_>,
    instance_id: i64,
    references: &mut References,
) -> Result<(), StoreError> {
    if *references == References::default() {
        return Ok(());
    }
    let known = PendingLocalIds::ask(tx, instance_id, references, false)?.read(tx)?;
    hold_unknown(tx, instance_id, references, &known)
}

/// [`hold_missing`] for known IDs that have been read already.
pub(crate) fn hold_unknown(
    tx: &mut Tx<'_>,
    instance_id: i64,
    references: &mut References,
    known: &LocalIds,
) -> Result<(), StoreError> {
    references
        .posts
        .retain(|id| !known.posts.contains_key(&*without_nul(id.as_str())));
    references
        .accounts
        .retain(|id| !known.accounts.contains_key(&*without_nul(id.as_str())));
    if *references != References::default() {
        instance::hold(tx, instance_id)?;
    }
    Ok(())
}

/// All references of the posts.
pub(crate) fn together<'a>(posts: impl Iterator<Item = &'a Post>) -> References {
    let mut all = References::default();
    for Post { references, .. } in posts {
        add(&mut all, references);
    }
    all
}

/// Adds references to others.
pub(crate) fn add(all: &mut References, references: &References) {
    all.posts.extend_from_slice(&references.posts);
    all.accounts.extend_from_slice(&references.accounts);
}

/// Gives local IDs to the references of posts of an instance that have none yet. Holds the
/// instance, and then the clock if it gives IDs to posts.
pub(crate) fn assign(
    tx: &mut Tx<'_>,
    instance_id: i64,
    references: &References,
    now_ms: i64,
) -> Result<(), StoreError> {
    if *references == References::default() {
        return Ok(());
    }
    instance::hold(tx, instance_id)?;
    let ids: Vec<_> = references
        .posts
        .iter()
        .map(|id| without_nul(id.as_str()))
        .collect();
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    let stored = post::stored(tx, (instance_id, ContentScope::WORLD), &ids)?;
    let mut new_ids = NewIds::default();
    let mut new = NewReferences::new(stored.references, new_ids.give_run(0));
    for id in ids {
        new.name(id, stored.posts.get(id));
    }
    new_ids.give_run(new.new.len());
    let known = account::KnownAccount::load(tx, instance_id, &references.accounts)?;
    account::store(tx, instance_id, known, [], &references.accounts)?;
    let ids = new_ids.take(tx, instance_id, now_ms)?;
    new.write(tx, instance_id, &ids)?;
    Ok(())
}

/// The references to posts in one commit, collected before any is written.
pub(crate) struct NewReferences {
    /// The IDs that references already have, by upstream ID.
    known: HashMap<String, i64>,
    next_id: i64,
    new: Vec<NewReference>,
    /// New posts that are found by the IDs by which others referred to them before.
    arrived: Vec<(i64, Option<i64>)>,
    named: HashSet<String>,
}

struct NewReference {
    upstream_id: String,
    id: i64,
    /// The post, if it is stored.
    post_id: Option<i64>,
}

impl NewReferences {
    /// Starts without references. `known` are the existing ones by upstream ID; new ones take IDs
    /// from `first_id`.
    pub(crate) fn new(known: HashMap<String, i64>, first_id: i64) -> Self {
        Self {
            known,
            next_id: first_id,
            new: Vec::new(),
            arrived: Vec::new(),
            named: HashSet::new(),
        }
    }

    /// Adds a post to which a public one refers, with its stored facts.
    pub(crate) fn name(&mut self, upstream_id: &str, stored: Option<&post::KnownPost>) {
        let is_public = stored.is_some_and(|post| post.listed && !post.is_gone());
        if is_public
            || upstream_id.is_empty()
            || self.known.contains_key(upstream_id)
            || !self.named.insert(upstream_id.to_owned())
        {
            return;
        }
        self.new.push(NewReference {
            upstream_id: upstream_id.to_owned(),
            id: self.next_id,
            post_id: stored.map(|post| post.id),
        });
        self.next_id += 1;
    }

    /// Adds a new post.
    pub(crate) fn arrives(&mut self, version: &PostVersion<'_>) {
        let upstream_id = without_nul(version.post.id.as_str());
        let known = self.known.get(&*upstream_id);
        self.arrived.extend(known.map(|id| (*id, Some(version.id))));
    }

    /// Writes them, after the new posts, under IDs that may come from `ids`. The instance must be
    /// held.
    pub(crate) fn write(
        self,
        tx: &mut Tx<'_>,
        instance_id: i64,
        ids: &TakenIds,
    ) -> Result<(), DbError> {
        let new = &self.new;
        tx.execute_many_later(
            "insert into upstream_post (upstream_id, instance_id, post_id, reference_id) {rows}
             on conflict (upstream_id, instance_id) do update set reference_id = excluded.reference_id",
            &[],
            &[
                Column::text(new.iter().map(|new| new.upstream_id.as_str())),
                Column::i64(new.iter().map(|_| instance_id)),
                Column::i64(new.iter().map(|_| 0)),
                ids.column(new.iter().map(|new| new.id)),
            ],
        )?;
        let mut aliases = self.arrived;
        aliases.extend(new.iter().map(|new| (new.id, new.post_id)));
        alias::add(tx, (instance_id, None), &aliases, ids)
    }
}
