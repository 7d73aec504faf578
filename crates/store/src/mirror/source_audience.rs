//! Who else than its owner may read a source, and what that makes public.

use std::collections::{HashMap, HashSet};

use driftline_core::{audience::Audience, post::Visibility};
use driftline_db::{Column, DbError, Tx};

use crate::{
    error::StoreError,
    id_types::SourceKey,
    mirror::{
        machine::LockedSource,
        source::set,
        source_removal::{next_posts, without_public_source},
    },
    posts::{instance, post, timeline::Standing},
};

/// Lets others read a source, or no more. Its public posts enter the world's public timeline where its own
/// timeline has them, or leave it but for those that another public source has: for its readers that is
/// a new timeline. All of it is seen at once. To be written below [`crate::mirror::source::root`] of it.
pub fn set_audience(
    tx: &mut Tx<'_>,
    source: SourceKey,
    audience: Audience,
) -> Result<(), StoreError> {
    let held = LockedSource::load(tx, source, None)?;
    instance::hold(tx, held.instance_id)?;
    set(tx, source, "audience", &audience.name())?;
    let is_public = audience == Audience::Public;
    if held.is_public() == is_public {
        return Ok(());
    }
    let mut after = i64::MIN;
    loop {
        let above = after;
        let Some(ids) = next_posts(tx, source, &mut after)? else {
            return Ok(());
        };
        match is_public {
            true => publish(tx, source, (above, after))?,
            false => hide(tx, source, &ids)?,
        }
    }
}

/// Lists the posts of entries above one ID and up to another in the world's public timeline, unless they are
/// there already.
fn publish(tx: &mut Tx<'_>, source: SourceKey, (above, last): (i64, i64)) -> Result<(), DbError> {
    let entries = tx.query(
        "select post_id, coalesce(place_id, id) as place, visibility from entry
         where source_id = $1 and instance_id = $2 and id > $3 and id <= $4 and not gone",
        &[&source.id(), &source.instance_id(), &above, &last],
        |row| {
            let is_listed = row.i64("visibility")? == Visibility::Public.narrowness();
            Ok((row.i64("post_id")?, row.i64("place")?, is_listed))
        },
    )?;
    let mut entries = entries;
    // A source may list a post more than once: the first place counts.
    entries.sort_unstable();
    entries.dedup_by_key(|(post_id, ..)| *post_id);
    tx.execute_many_later(
        "update post set in_public = true, public_id = r.place,
             listed = r.is_listed and visibility = 'public' and deleted_at_ms is null
         from {rows as r(id, place, is_listed)}
         where post.id = r.id and post.instance_id = $1 and not post.in_public",
        &[&source.instance_id()],
        &[
            Column::i64(entries.iter().map(|(post_id, ..)| *post_id)),
            Column::i64(entries.iter().map(|(_, place, _)| *place)),
            Column::bool(entries.iter().map(|(.., is_listed)| *is_listed)),
        ],
    )
}

/// Takes posts out of the world's public timeline that it has from this source alone. Those that another
/// public source has are listed where that one has them, if they stood at this one's place: no answer to the world
/// names the ID of an entry that it may not see.
fn hide(tx: &mut Tx<'_>, source: SourceKey, post_ids: &[i64]) -> Result<(), DbError> {
    let hidden = without_public_source(tx, source, post_ids)?;
    post::withdraw(tx, source.instance_id(), &hidden)?;
    let hidden: HashSet<i64> = hidden.into_iter().collect();
    let stay = post_ids.iter().copied().filter(|id| !hidden.contains(id));
    let stay = Column::i64(stay);
    let entries = tx.query(
        "select e.post_id, e.id, coalesce(e.place_id, e.id) as place, e.arrival_id, e.visibility,
             e.source_id = $2 as is_own
         from entry e join source s on s.id = e.source_id and s.instance_id = e.instance_id
         where e.instance_id = $3 and not e.gone and (s.audience = 'public' or s.id = $2)
             and (e.id {in $1} or e.post_id {in $1} and e.id <> e.post_id)",
        &[&stay, &source.id(), &source.instance_id()],
        |row| {
            let (id, place) = (row.i64("id")?, row.i64("place")?);
            let standing = Standing::of(id, place, row.opt_i64("arrival_id")?);
            let is_shown = row.i64("visibility")? == Visibility::Public.narrowness();
            Ok((row.i64("post_id")?, standing, is_shown, row.bool("is_own")?))
        },
    )?;
    let mut own = HashSet::new();
    let mut first: HashMap<i64, Option<Standing>> = HashMap::new();
    for (post_id, standing, is_shown, is_own) in entries {
        if is_own {
            own.insert((post_id, standing.place));
            continue;
        }
        let first = first.entry(post_id).or_default();
        let is_first = first.is_none_or(|first| standing.came < first.came);
        if is_shown && is_first {
            *first = Some(standing);
        }
    }
    let stood = tx.query(
        "select id, coalesce(public_id, id) as place from post
         where id {in $1} and instance_id = $2 and listed",
        &[&stay, &source.instance_id()],
        |row| Ok((row.i64("id")?, row.i64("place")?)),
    )?;
    let moved: Vec<(i64, Option<i64>)> = stood
        .into_iter()
        .filter(|stood| own.contains(stood))
        .map(|(id, _)| {
            let other = first.get(&id).copied().flatten();
            (id, other.map(|standing| standing.place))
        })
        .collect();
    tx.execute_many_later(
        "update post set listed = r.public_id is not null,
             public_id = coalesce(r.public_id, post.public_id)
         from {rows as r(id, public_id)} where post.id = r.id and post.instance_id = $1",
        &[&source.instance_id()],
        &[
            Column::i64(moved.iter().map(|(id, _)| *id)),
            Column::i64(moved.iter().map(|(_, public_id)| *public_id)),
        ],
    )
}
