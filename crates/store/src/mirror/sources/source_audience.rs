//! The readers of a source in addition to its owner, and the resulting public posts.

use std::collections::{HashMap, HashSet};

use driftline_core::{names::audience::Audience, post::Visibility};
use driftline_db::{Column, DbError, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        machine::{LockedSource, source_scope},
        source::set,
        source_removal::{next_posts, no_longer_public},
    },
    new_ids::TakenIds,
    posts::{index_pending, instance, post, post_text, scoped_content, timeline::came},
};

/// Lets others read a source, or ends that. Its public posts enter the world's public timeline at
/// their positions in its own timeline, or leave it, except for those that another public source
/// has. For its readers that is a new timeline, which changes as a whole. Must be written below
/// [`crate::mirror::source::root`] of it.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn set_audience(
    tx: &mut Tx<'_>,
    source: SourceKey,
    audience: Audience,
) -> Result<(), StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    set(tx, source, "audience", &audience.name())?;
    let (was_public, is_public) = (held.is_public(), audience == Audience::Public);
    let scopes = (held.scope, source_scope(tx, source)?);
    if was_public == is_public && scopes.0 == scopes.1 {
        return Ok(());
    }
    let mut after = i64::MIN;
    loop {
        let above = after;
        let Some(ids) = next_posts(tx, source, &mut after)? else {
            return Ok(());
        };
        match audience > held.audience {
            _ if scopes.0 == scopes.1 => {}
            true => scoped_content::widen(tx, source, &ids, scopes)?,
            false => scoped_content::release(tx, held.instance_id, &ids, (scopes.0, None))?,
        }
        post_text::remove_unused(tx, held.instance_id, &ids)?;
        match (was_public, is_public) {
            (false, true) => publish(tx, &held, (above, after))?,
            (true, false) => hide(tx, &held, &ids)?,
            _ => {}
        }
        index_pending::add(tx, held.instance_id, ids, &TakenIds::NONE)?;
    }
}

/// Lists the posts of entries above one ID and up to another in the world's public timeline, unless
/// they are already there.
fn publish(tx: &mut Tx<'_>, held: &LockedSource, (above, last): (i64, i64)) -> Result<(), DbError> {
    let source = held.key;
    let entries = tx.query(
        "select post_id, id, arrival_id, visibility from entry
         where source_id = $1 and instance_id = $2 and id > $3 and id <= $4 and not gone",
        &[&source.id(), &source.instance_id(), &above, &last],
        |row| {
            let is_listed = row.i64("visibility")? == Visibility::Public.narrowness();
            let id = row.i64("id")?;
            let came = came(id, row.opt_i64("arrival_id")?);
            Ok((row.i64("post_id")?, came, id, is_listed))
        },
    )?;
    let mut entries = entries;
    // A source may list a post more than once. The first position counts.
    entries.sort_unstable();
    entries.dedup_by_key(|(post_id, ..)| *post_id);
    tx.execute_many_later(
        "update post set in_public = true, public_id = r.place, from_history = r.from_history,
             listed = r.is_listed and visibility = 'public' and deleted_at_ms is null
         from {rows as r(id, place, from_history, is_listed)}
         where post.id = r.id and post.instance_id = $1 and not post.in_public and not (claimed and $2)",
        &[&source.instance_id(), &held.is_accounts],
        &[
            Column::i64(entries.iter().map(|(post_id, ..)| *post_id)),
            Column::i64(entries.iter().map(|(_, _, id, _)| *id)),
            Column::bool(
                entries
                    .iter()
                    .map(|(_, (from_history, _), ..)| *from_history),
            ),
            Column::bool(entries.iter().map(|(.., is_listed)| *is_listed)),
        ],
    )
}

/// Removes posts from the world's public timeline that come from this source only. Posts that
/// another public source has are listed at that one's position, if they were at this one's: no
/// answer to the world contains the ID of an entry that it may not see.
fn hide(tx: &mut Tx<'_>, held: &LockedSource, post_ids: &[i64]) -> Result<(), DbError> {
    let source = held.key;
    let hidden = no_longer_public(tx, held, post_ids)?;
    post::withdraw(tx, source.instance_id(), &hidden)?;
    let hidden: HashSet<i64> = hidden.into_iter().collect();
    let stay = post_ids.iter().copied().filter(|id| !hidden.contains(id));
    let stay = Column::i64(stay);
    let entries = tx.query(
        "select e.post_id, e.id, e.arrival_id, e.visibility, e.source_id = $2 as is_own
         from entry e join source s on s.id = e.source_id and s.instance_id = e.instance_id
         join post p on p.id = e.post_id and p.instance_id = e.instance_id
         where e.instance_id = $3 and not e.gone
             and (s.audience = 'public' and not (s.owner_id <> 0 and p.claimed) or s.id = $2)
             and (e.id {in $1} or e.post_id {in $1} and e.id <> e.post_id)",
        &[&stay, &source.id(), &source.instance_id()],
        |row| {
            let id = row.i64("id")?;
            let entry = (came(id, row.opt_i64("arrival_id")?), id);
            let is_shown = row.i64("visibility")? == Visibility::Public.narrowness();
            Ok((row.i64("post_id")?, entry, is_shown, row.bool("is_own")?))
        },
    )?;
    let mut own = HashSet::new();
    let mut first: HashMap<i64, Arrival> = HashMap::new();
    for (post_id, entry, is_shown, is_own) in entries {
        if is_own {
            own.insert((post_id, entry.1));
        } else if is_shown {
            let first = first.entry(post_id).or_insert(entry);
            *first = entry.min(*first);
        }
    }
    let stood = tx.query(
        "select id, coalesce(public_id, id) as place from post
         where id {in $1} and instance_id = $2 and listed",
        &[&stay, &source.instance_id()],
        |row| Ok((row.i64("id")?, row.i64("place")?)),
    )?;
    let moved = stood.into_iter().filter(|stood| own.contains(stood));
    let moved: Vec<_> = moved.map(|(id, _)| (id, first.get(&id))).collect();
    let from_history = |(_, other): &(i64, Option<&Arrival>)| other.is_some_and(|((is, _), _)| *is);
    tx.execute_many_later(
        "update post set listed = r.public_id is not null,
             public_id = coalesce(r.public_id, post.public_id), from_history = r.from_history
         from {rows as r(id, public_id, from_history)}
         where post.id = r.id and post.instance_id = $1",
        &[&source.instance_id()],
        &[
            Column::i64(moved.iter().map(|(id, _)| *id)),
            Column::i64(moved.iter().map(|(_, other)| other.map(|(_, id)| *id))),
            Column::bool(moved.iter().map(from_history)),
        ],
    )
}

/// The time of an entry's arrival ([`came`]), and its ID.
type Arrival = ((bool, i64), i64);
