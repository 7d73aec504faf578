//! Posts that someone named and that are not stored yet.
//!
//! Each stands in the schedule under a *ticket*, a negative number, so that it is claimed, leased
//! and retried as stored posts are. When it is found, it becomes a post with an entry in the source
//! of tracked posts, and the ticket is gone; when it is not, the ticket stays as the record of that.

use std::collections::{HashMap, HashSet};

use driftline_core::{
    post::{Post, Visibility},
    refresh::Policy,
};
use driftline_db::{Column, DbError, Tx};

use super::{
    bucket, revive,
    schedule::{self, Slot},
};
use crate::{
    clock, entry,
    error::StoreError,
    fingerprint,
    ids::{SourceId, sql},
    intake::{self, Circumstances, Sighting},
    machine::Held,
    post,
    text::clean,
};

/// What became of IDs that someone named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// IDs that will be looked up.
    pub new: u64,
    /// IDs whose post is stored already.
    pub stored: u64,
    /// IDs that were named before: they wait, or were not to be had.
    pub named: u64,
}

/// How a source of tracked posts stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracked {
    /// IDs that wait to be looked up.
    pub waiting: u64,
    /// IDs that were looked up and not to be had.
    pub missing: u64,
    /// Posts that were found.
    pub found: u64,
}

/// A post that a ticket stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'a> {
    /// The ticket.
    pub ticket: i64,
    /// The post.
    pub post: &'a Post,
    /// When it was asked for, Unix ms.
    pub asked_at_ms: i64,
}

/// Notes IDs of an upstream, each at most once, to be looked up at once and kept in that source.
/// With `once` they are not refreshed afterwards. Those whose post is stored get an entry there, if
/// they have none, and without `once` a due time, if the policy has one for them. To be written
/// below [`crate::source::root`] of the source.
pub fn want(
    tx: &mut Tx<'_>,
    source: SourceId,
    upstream_ids: &[String],
    once: bool,
    policy: &Policy,
    now_ms: i64,
) -> Result<Noted, StoreError> {
    let mut held = Held::load(tx, source, None)?;
    let instance_id = held.instance_id;
    // Another source of the instance may be storing the same posts.
    clock::take(tx, now_ms, 0)?;
    let cleaned: Vec<_> = upstream_ids.iter().map(|id| clean(id)).collect();
    let ids: Vec<&str> = cleaned.iter().map(|id| &**id).collect();
    let stored = post::known(tx, instance_id, &ids)?;
    let named = named_in_wanted(tx, instance_id, &ids)?;
    adopt(tx, &mut held, &stored, now_ms)?;
    if !once {
        let alive = stored.values().filter(|post| post.deleted_at_ms.is_none());
        let alive: Vec<i64> = alive.map(|post| post.id).collect();
        // None was asked for: their last answers stay the last.
        revive(tx, policy, i64::MIN, &alive)?;
    }
    let mut once_each = HashSet::new();
    let new: Vec<&str> = ids
        .into_iter()
        .filter(|id| !stored.contains_key(*id) && !named.contains(*id) && once_each.insert(*id))
        .collect();
    let noted = Noted {
        new: new.len() as u64,
        stored: stored.len() as u64,
        // A source may have stored a post while its ticket waited.
        named: named.iter().filter(|id| !stored.contains_key(*id)).count() as u64,
    };
    if new.is_empty() {
        return Ok(noted);
    }
    let first = clock::count(tx, clock::Counter::Ticket, new.len())?;
    let tickets: Vec<i64> = (first..).take(new.len()).map(|ticket| -ticket).collect();
    let slots: Vec<Slot> = tickets
        .iter()
        .map(|&ticket| Slot {
            bucket: bucket(instance_id, ticket),
            due_at_ms: now_ms,
            post_id: ticket,
        })
        .collect();
    tx.execute_many_later(
        "insert into wanted (upstream_id, instance_id, ticket, source_id, once, waits) {rows}",
        &[],
        &[
            Column::text(new.iter().copied()),
            Column::i64(new.iter().map(|_| instance_id)),
            Column::i64(tickets.iter().copied()),
            Column::i64(new.iter().map(|_| sql(source))),
            Column::bool(new.iter().map(|_| once)),
            Column::bool(new.iter().map(|_| true)),
        ],
    )?;
    // Born now, so that failures are retried for as long as a post of today would be.
    tx.execute_many_later(
        "insert into freshness (post_id, bucket, born_at_ms, first_at_ms, refreshed_at_ms,
             due_at_ms, refreshes, failures, missing, before_total, told_at_ms, told_total) {rows}",
        &[],
        &[
            Column::i64(tickets.iter().copied()),
            Column::i64(slots.iter().map(|slot| slot.bucket)),
            Column::i64(slots.iter().map(|_| now_ms)),
            Column::i64(slots.iter().map(|_| now_ms)),
            Column::i64(slots.iter().map(|_| now_ms - 1)),
            Column::i64(slots.iter().map(|slot| slot.due_at_ms)),
            Column::i64(slots.iter().map(|_| 0)),
            Column::i64(slots.iter().map(|_| 0)),
            Column::bool(slots.iter().map(|_| false)),
            Column::i64(slots.iter().map(|_| 0)),
            Column::i64(slots.iter().map(|_| now_ms)),
            Column::i64(slots.iter().map(|_| 0)),
        ],
    )?;
    schedule::insert(tx, &slots)?;
    Ok(noted)
}

/// Gives stored posts an entry in a source that has none of theirs.
fn adopt(
    tx: &mut Tx<'_>,
    held: &mut Held,
    stored: &HashMap<String, post::Known>,
    now_ms: i64,
) -> Result<(), StoreError> {
    if stored.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = stored.values().map(|post| post.id).collect();
    let known = entry::of_posts(tx, held.id, &ids)?;
    let known: HashSet<i64> = known.iter().map(|entry| entry.post_id).collect();
    let mut strange: Vec<(&String, &post::Known)> = stored
        .iter()
        .filter(|(_, post)| !known.contains(&post.id))
        .collect();
    if strange.is_empty() {
        return Ok(());
    }
    strange.sort_by_key(|(_, post)| post.id);
    let first = clock::take(tx, now_ms, strange.len())?;
    held.shows(first);
    let drafts: Vec<entry::Draft<'_>> = (first..)
        .zip(&strange)
        .map(|(id, (upstream_id, post))| {
            let gone = post.deleted_at_ms.is_some();
            entry::Draft {
                id,
                post_id: post.id,
                position: upstream_id,
                usn: held.next_usn(),
                content_hash: post.content_hash,
                gone,
                listed: !gone && post.visibility == Visibility::Public,
                streamed: false,
                returns: post.returns,
            }
        })
        .collect();
    entry::insert(tx, held.id, now_ms, &drafts)?;
    held.save_usn(tx)
}

/// Stores what was found for tickets of one source, and takes the tickets back. Below
/// [`crate::source::root`] of the source. Returns how many posts the source did not have.
pub fn hydrate(
    tx: &mut Tx<'_>,
    source: SourceId,
    found: &[Found<'_>],
    policy: &Policy,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut held = Held::load(tx, source, None)?;
    let tickets = tickets(
        tx,
        &found.iter().map(|found| found.ticket).collect::<Vec<_>>(),
    )?;
    let of_this: Vec<(&Found<'_>, &Ticket)> = found
        .iter()
        .filter_map(|found| Some((found, tickets.get(&found.ticket)?)))
        .filter(|(_, ticket)| ticket.source_id == held.id)
        .collect();
    let mut new = 0;
    for once in [false, true] {
        let part: Vec<&Found<'_>> = of_this
            .iter()
            .filter(|(_, ticket)| ticket.once == once)
            .map(|(found, _)| *found)
            .collect();
        let never = Policy::Never {
            ages: policy.ages().clone(),
        };
        let policy = if once { &never } else { policy };
        new += take_in(tx, &mut held, &part, policy, now_ms)?;
    }
    held.save_usn(tx)?;
    let done: Vec<i64> = of_this.iter().map(|(found, _)| found.ticket).collect();
    for sql in [
        "delete from wanted where (upstream_id, instance_id) in
             (select upstream_id, instance_id from wanted where ticket {in $1})",
        "delete from freshness where post_id {in $1}",
    ] {
        tx.execute_later(sql, &[&Column::i64(done.iter().copied())])?;
    }
    Ok(new)
}

fn take_in(
    tx: &mut Tx<'_>,
    held: &mut Held,
    found: &[&Found<'_>],
    policy: &Policy,
    now_ms: i64,
) -> Result<u64, StoreError> {
    let mut new = 0;
    let mut by_time: HashMap<i64, Vec<&Post>> = HashMap::new();
    for found in found {
        by_time
            .entry(found.asked_at_ms)
            .or_default()
            .push(found.post);
    }
    for (asked_at_ms, posts) in by_time {
        let positions: Vec<&str> = posts.iter().map(|post| post.id.as_str()).collect();
        let mut known = entry::at(tx, held.id, &positions)?;
        let sightings: Vec<Sighting<'_>> = posts
            .iter()
            .map(|post| {
                let position = post.id.as_str();
                Sighting::new(
                    (post, fingerprint::of(post)),
                    position,
                    None,
                    known.remove(position),
                )
            })
            .filter(Sighting::may_be_news)
            .collect();
        let when = Circumstances {
            asked_at_ms,
            now_ms,
            streamed: false,
            policy,
        };
        new += intake::take_in(tx, held, &sightings, when)?.new;
    }
    Ok(new)
}

/// How a source of tracked posts stands. Counts its rows.
pub fn tracked(tx: &mut Tx<'_>, source: SourceId) -> Result<Tracked, StoreError> {
    let id = sql(source);
    let mut count = |what: &str| {
        let sql = format!("select count(*) from {what}");
        tx.query_one(&sql, &[&id], |row| row.i64(0))
    };
    Ok(Tracked {
        waiting: count("wanted where source_id = $1 and waits")?.cast_unsigned(),
        missing: count("wanted where source_id = $1 and not waits")?.cast_unsigned(),
        found: count("entry where source_id = $1")?.cast_unsigned(),
    })
}

/// Notes that tickets are not looked up any more.
pub(crate) fn give_up(tx: &mut Tx<'_>, tickets: &[i64]) -> Result<(), DbError> {
    if tickets.is_empty() {
        return Ok(());
    }
    tx.execute_later(
        "update wanted set waits = false where ticket {in $1}",
        &[&Column::i64(tickets.iter().copied())],
    )
}

/// What a ticket stands for.
pub(crate) struct Ticket {
    pub(crate) upstream_id: String,
    pub(crate) source_id: i64,
    once: bool,
}

pub(crate) fn tickets(tx: &mut Tx<'_>, tickets: &[i64]) -> Result<HashMap<i64, Ticket>, DbError> {
    let negative: Vec<i64> = tickets.iter().copied().filter(|id| *id < 0).collect();
    if negative.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = tx.query(
        "select ticket, upstream_id, source_id, once from wanted where ticket {in $1}",
        &[&Column::i64(negative)],
        |row| {
            let ticket = Ticket {
                upstream_id: row.text(1)?,
                source_id: row.i64(2)?,
                once: row.bool(3)?,
            };
            Ok((row.i64(0)?, ticket))
        },
    )?;
    Ok(rows.into_iter().collect())
}

fn named_in_wanted(
    tx: &mut Tx<'_>,
    instance_id: i64,
    ids: &[&str],
) -> Result<HashSet<String>, DbError> {
    let found = tx.query_each(
        "select upstream_id from wanted where upstream_id = {row 1} and instance_id = $1",
        &[&instance_id],
        &[Column::text(ids.iter().copied())],
        |row| row.text(0),
    )?;
    Ok(found.into_iter().collect())
}
