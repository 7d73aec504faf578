//! The hidden sources of threads: posts that were fetched for a viewer of a thread, or of an
//! address, and accounts that were fetched by their names.
//!
//! Each instance has one for the world, with its public posts, and one for each owner, with the
//! posts that it shows to that owner only. They are never polled, never listed, and not part of
//! timelines. Their posts are found in threads, and by their IDs.

use std::collections::HashSet;

use driftline_core::{
    names::audience::Audience,
    post::{Author, Post, Visibility},
    refresh::Policy,
    source_kind::SourceKind,
    timeline::Settings,
};
use driftline_db::{DbError, Row, Tx};

use crate::mirror::{
    entry,
    machine::LockedSource,
    observation::{IntakeContext, PostObservation},
    post_intake,
    source::{self, NewSource},
    source_kind::IS_OF_THREADS,
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, SourceKey, from_sql, sql},
    posts::{
        account,
        account_profile::{self, StoredProfiles},
        instance::{self, Instance},
        post,
        timeline::visible::visible,
    },
    viewer::{Owner, Viewer},
};

/// The viewers for which posts were fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchedFor {
    /// Everyone: fetched without a token.
    World,
    /// An owner: fetched with a token of that owner.
    Owner(Owner),
}

impl FetchedFor {
    fn owner(self) -> Owner {
        match self {
            FetchedFor::World => Owner::Operator,
            FetchedFor::Owner(owner) => owner,
        }
    }

    fn audience(self) -> Audience {
        match self {
            FetchedFor::World => Audience::Public,
            FetchedFor::Owner(_) => Audience::Private,
        }
    }

    /// The viewer of the fetched posts.
    fn viewer(self) -> Viewer {
        match self {
            FetchedFor::World => Viewer::Anonymous,
            FetchedFor::Owner(Owner::Operator) => Viewer::Operator,
            FetchedFor::Owner(Owner::Account(id)) => Viewer::Account(id),
        }
    }

    /// The name of the hidden source. No normal source has such a name.
    fn name(self, instance: InstanceId) -> String {
        match self {
            FetchedFor::World => format!("{}:{instance}:world", SourceKind::Threads.name()),
            FetchedFor::Owner(owner) => {
                format!("{}:{instance}:{}", SourceKind::Threads.name(), owner.id())
            }
        }
    }

    fn may_have(self, post: &Post) -> bool {
        let is_for_anyone = matches!(post.visibility, Visibility::Public | Visibility::Unlisted);
        self != FetchedFor::World || is_for_anyone
    }
}

/// The hidden source of an instance for these viewers, added if it is missing. Must be written
/// below [`crate::local_ids::root`].
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::NoSourceIds`] if no IDs of
/// sources are left; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn find_or_add(
    tx: &mut Tx<'_>,
    instance: &Instance,
    whose: FetchedFor,
    now_ms: i64,
) -> Result<SourceKey, StoreError> {
    let (owner, audience) = (whose.owner(), whose.audience());
    let known = tx.query_opt(
        &format!(
            "select id from source
             where instance_id = $1 and {IS_OF_THREADS} and owner_id = $2 and audience = $3"
        ),
        &[&sql(instance.id), &owner.id(), &audience.name()],
        |row| from_sql(row.i64("id")?),
    )?;
    if let Some(id) = known {
        let instance = instance.id;
        return Ok(SourceKey { id, instance });
    }
    let new = NewSource {
        name: whose.name(instance.id),
        owner,
        audience,
        origin: instance.origin.clone(),
        api: instance.api,
        timeline: SourceKind::Threads.name().to_owned(),
        kind: SourceKind::Threads,
        upstream: instance.origin.clone(),
        settings: Settings::default(),
        token: None,
        allow_private: false,
    };
    let key = source::insert(tx, &new, sql(instance.id), now_ms)?;
    source::set(tx, key, "refreshing", &false)?;
    Ok(key)
}

/// The hidden sources of an instance.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_instance(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Vec<SourceKey>, StoreError> {
    Ok(tx.query(
        &format!(
            "select id, instance_id from source
             where {IS_OF_THREADS} and instance_id = $1 order by id"
        ),
        &[&sql(instance)],
        key_from_row,
    )?)
}

/// The hidden sources of an owner.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_owner(tx: &mut Tx<'_>, owner: Owner) -> Result<Vec<SourceKey>, StoreError> {
    Ok(tx.query(
        &format!(
            "select id, instance_id from source
             where {IS_OF_THREADS} and owner_id = $1 order by id"
        ),
        &[&owner.id()],
        key_from_row,
    )?)
}

fn key_from_row(row: &Row<'_>) -> Result<SourceKey, DbError> {
    Ok(SourceKey {
        id: from_sql(row.i64("id")?)?,
        instance: from_sql(row.i64("instance_id")?)?,
    })
}

/// Posts that were fetched together.
#[derive(Clone, Copy, Debug)]
pub struct FetchedPosts<'a> {
    /// The viewers.
    pub whose: FetchedFor,
    /// The posts.
    pub posts: &'a [Post],
    /// The time of the request, in Unix ms.
    pub asked_at_ms: i64,
}

/// Stores fetched posts in a hidden source, except for those that its viewers see elsewhere, and,
/// in the world's source, those that are not public at their server. Must be written below
/// [`source::root`] of the source. Returns the number of posts that the source did not have.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Unreadable`] if a stored
/// value cannot be read; [`StoreError::Db`] if the database fails.
pub fn store(
    tx: &mut Tx<'_>,
    source: SourceKey,
    fetched: &FetchedPosts<'_>,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut held = LockedSource::load(tx, source, None)?;
    // Its contents are not part of any timeline, including the world's.
    held.audience = Audience::Private;
    let instance_id = held.instance_id;
    instance::hold(tx, instance_id)?;
    let mut once = HashSet::new();
    let posts: Vec<&Post> = fetched
        .posts
        .iter()
        .filter(|post| fetched.whose.may_have(post) && once.insert(post.id.as_str()))
        .collect();
    let ids: Vec<&str> = posts.iter().map(|post| post.id.as_str()).collect();
    let mut entries = entry::at(tx, source, &ids)?;
    let stored = post::known(tx, instance_id, &ids)?;
    let local = stored.values().map(|post| from_sql(post.id));
    let local = local.collect::<Result<Vec<LocalId>, _>>()?;
    let seen = visible(tx, source.instance, &local, fetched.whose.viewer())?;
    let is_seen = |post: &Post| {
        let known = stored.get(post.id.as_str());
        known.is_some_and(|known| seen.contains(&LocalId::new(known.id.cast_unsigned())))
    };
    let observations: Vec<PostObservation<'_>> = posts
        .iter()
        .filter_map(|post| {
            let position = post.id.as_str();
            let entry = entries.remove(position);
            let is_wanted = entry.is_some() || !is_seen(post);
            is_wanted.then(|| PostObservation::new(post, position, None, entry))
        })
        .filter(PostObservation::may_be_news)
        .collect();
    let never = Policy::Never {
        ages: Policy::default().ages().clone(),
    };
    let context = IntakeContext::answered(fetched.asked_at_ms, now_ms, &never);
    let new = post_intake::take_in(tx, &mut held, &observations, context)?.new;
    held.library.save(tx)?;
    Ok(new)
}

/// Stores an account that was fetched by its name for these viewers, so that they can see it
/// without a post. Must be written below [`source::root`] of their hidden source. Returns true if
/// it had not been fetched for them; `false` for an account without a name.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn store_account(
    tx: &mut Tx<'_>,
    source: SourceKey,
    account: &Author,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    if account.acct.is_empty() {
        return Ok(false);
    }
    let instance_id = held.instance_id;
    instance::hold(tx, instance_id)?;
    let known = account::KnownAccount::load(tx, instance_id, [&account.id])?;
    let profiles = StoredProfiles::ask(tx, source, [account])?;
    let profiles = StoredProfiles::read(tx, profiles)?;
    let accounts = account::store(tx, instance_id, known, [account], [])?;
    let Some(stored) = accounts.of(account) else {
        return Ok(false);
    };
    let usn = held.library.update_count;
    account_profile::store(tx, source, &profiles, &accounts, [account], usn, now_ms)?;
    let added = tx.execute(
        "insert into fetched_account (source_id, acct_id, instance_id) values ($1, $2, $3)
         on conflict ({key source_id, acct_id + instance_id}) do nothing",
        &[&source.id(), &stored.acct_id, &instance_id],
    )?;
    Ok(added == 1)
}
