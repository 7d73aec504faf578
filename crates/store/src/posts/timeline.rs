//! Reads timelines.

use std::collections::HashMap;

use driftline_core::post::Visibility;
use driftline_db::{Column, DbError, Row, ToValue, Tx};

use crate::{
    error::StoreError,
    id_types::{AccountId, InstanceId, LocalId, SourceKey, from_sql, sql},
    reservation::Bound,
};

/// A part of a timeline, with Mastodon's bounds.
///
/// Without `min` these are the newest posts within the bounds; with `min`, those just above it.
/// The newest post comes first either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// Only IDs above this one.
    pub since: Option<LocalId>,
    /// Only IDs above this one, the lowest of them.
    pub min: Option<LocalId>,
    /// Only IDs below this one.
    pub max: Option<LocalId>,
    /// The most posts.
    pub limit: u16,
}

/// Who views a timeline or a post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Anyone: sees public posts only.
    Anonymous,
    /// The operator: sees all that the sources' tokens may see.
    Operator,
}

/// What one transaction read of a part of a timeline of which not every post is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The posts that are shown, the newest first.
    pub posts: Vec<TimelinePost>,
    /// The rest, to be read next; `None` if there are posts enough, or no more.
    pub rest: Option<Range>,
}

/// A post in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelinePost {
    /// Its ID in this timeline: its entry's, or its public one. For a post requested by one of its
    /// IDs, that one.
    pub id: LocalId,
    /// The ID that the store knows it by: that of its first entry.
    pub post_id: LocalId,
    /// Its ID in the public timeline, by which other posts refer to it: that of its first entry,
    /// and a new one each time that it returned after a deletion.
    pub public_id: LocalId,
    /// The instance that it was seen through.
    pub instance: InstanceId,
    /// Its ID there.
    pub upstream_id: String,
    /// Its name across servers.
    pub uri: Option<String>,
    /// Its address for people.
    pub url: Option<String>,
    /// Its author's local ID; `None` if the upstream left the author out.
    pub account: Option<AccountId>,
    /// When its author says that it was written, Unix ms.
    pub created_at_ms: Option<i64>,
    /// When it was last edited, Unix ms.
    pub edited_at_ms: Option<i64>,
    /// Who may see it at the upstream.
    pub visibility: Visibility,
    /// The upstream ID of the post that it boosts.
    pub boost_of: Option<String>,
    /// The post as it came, JSON.
    pub raw: String,
}

/// The public timeline of all sources.
pub fn public(tx: &mut Tx<'_>, range: &Range) -> Result<Vec<TimelinePost>, StoreError> {
    Ok(read_public(tx, range, None)?.posts)
}

/// The posts of the public timeline that `shows` picks. A page is filled by reading on through
/// [`Stretch::rest`]: a short one would look like the timeline's end.
pub fn public_picked(
    tx: &mut Tx<'_>,
    range: &Range,
    shows: &dyn Fn(&TimelinePost) -> bool,
) -> Result<Stretch, StoreError> {
    read_public(tx, range, Some(shows))
}

fn read_public(
    tx: &mut Tx<'_>,
    range: &Range,
    picked: Option<Picked<'_>>,
) -> Result<Stretch, StoreError> {
    let bound = Bound::read(tx)?;
    let places = "select coalesce(public_id, id) as place, id as post_id, instance_id,
             cast(null as {i64}) as returns
         from post
         where listed and coalesce(public_id, id) > $1 and coalesce(public_id, id) < $2
         order by coalesce(public_id, id)";
    read(tx, range, bound, places, &[], picked, |found| {
        found.listed && found.post.visibility == Visibility::Public
    })
}

/// The timeline of a source; empty if there is no such source.
pub fn source(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
) -> Result<Vec<TimelinePost>, StoreError> {
    Ok(read_source(tx, source, range, viewer, None)?.posts)
}

/// The posts of a source's timeline that `shows` picks: see [`public_picked`].
pub fn source_picked(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
    shows: &dyn Fn(&TimelinePost) -> bool,
) -> Result<Stretch, StoreError> {
    read_source(tx, source, range, viewer, Some(shows))
}

fn read_source(
    tx: &mut Tx<'_>,
    source: SourceKey,
    range: &Range,
    viewer: Viewer,
    picked: Option<Picked<'_>>,
) -> Result<Stretch, StoreError> {
    let is_operator = viewer == Viewer::Operator;
    let which = if is_operator { "not gone" } else { "listed" };
    let places = format!(
        "select id as place, post_id, instance_id, returns from entry
         where source_id = $4 and instance_id = $5 and {which} and id > $1 and id < $2
         order by id"
    );
    let key: [&dyn ToValue; 2] = [&source.id(), &source.instance_id()];
    // One instance's rows lie on one node.
    read(tx, range, Bound::NONE, &places, &key, picked, |found| {
        is_operator || found.post.visibility == Visibility::Public
    })
}

/// A post by its own ID or by the ID of one of its entries; `None` if it is deleted or this
/// viewer may not see it.
pub fn status(
    tx: &mut Tx<'_>,
    id: LocalId,
    viewer: Viewer,
) -> Result<Option<TimelinePost>, StoreError> {
    let raw_id = sql(id);
    let mut found = posts(tx, &[raw_id], None)?.remove(&raw_id);
    if found.is_none() {
        let post_id = tx.query_opt(
            "select post_id from entry_alias where id = $1",
            &[&raw_id],
            |row| row.opt_i64("post_id"),
        )?;
        if let Some(post_id) = post_id.flatten() {
            found = posts(tx, &[post_id], None)?.remove(&post_id);
        }
    }
    Ok(found
        .filter(|found| found.listed || viewer == Viewer::Operator)
        .map(|found| TimelinePost { id, ..found.post }))
}

/// Where a post stands in a timeline.
struct Place {
    id: i64,
    post_id: i64,
    instance_id: i64,
    /// In a source: how often the post had returned when it took this place. After another return
    /// it is no longer shown there.
    returns: Option<i64>,
}

impl Place {
    fn from_row(row: &Row<'_>) -> Result<Place, DbError> {
        Ok(Place {
            id: row.i64("place")?,
            post_id: row.i64("post_id")?,
            instance_id: row.i64("instance_id")?,
            returns: row.opt_i64("returns")?,
        })
    }
}

/// A post that is not deleted.
struct Found {
    post: TimelinePost,
    /// Whether the public timeline shows it.
    listed: bool,
    returns: i64,
}

/// What picks posts among those that may be shown.
type Picked<'a> = &'a dyn Fn(&TimelinePost) -> bool;

/// Reads places and their posts, until there are enough that may be shown: a source need not have
/// noticed yet that a post of its was deleted, and a page that is short for that reason would look
/// like the timeline's end. Where posts are picked, it stops after many places, since whoever waits
/// may be gone, and others wait for the connection.
///
/// `places` selects places above `$1` and below `$2` in their order; `params` are `$4` and so on.
fn read(
    tx: &mut Tx<'_>,
    range: &Range,
    bound: Bound,
    places: &str,
    params: &[&dyn ToValue],
    picked: Option<Picked<'_>>,
    may_show: impl Fn(&Found) -> bool,
) -> Result<Stretch, StoreError> {
    let above = range.since.max(range.min).map_or(i64::MIN, sql);
    let mut above = above.max(bound.from.saturating_sub(1));
    let mut below = range.max.map_or(i64::MAX, sql).min(bound.below);
    let is_upward = range.min.is_some();
    let order = if is_upward { "asc" } else { "desc" };
    let limit = usize::from(range.limit);
    let mut shown = Vec::with_capacity(limit);
    let mut places_left = picked.map(|_| MAX_PICKED_FROM);
    let mut rest = None;
    while shown.len() < limit {
        let missing = (limit - shown.len()) as i64;
        let count = match places_left {
            Some(left) => left.min(PICKED_FROM_AT_ONCE).max(missing),
            None => missing,
        };
        let mut all: Vec<&dyn ToValue> = vec![&above, &below, &count];
        all.extend(params);
        let sql = format!("{places} {order} limit $3");
        let places = tx.query(&sql, &all, Place::from_row)?;
        let Some(last) = places.last() else { break };
        *(if is_upward { &mut above } else { &mut below }) = last.id;
        let post_ids: Vec<i64> = places.iter().map(|place| place.post_id).collect();
        let mut instance_ids: Vec<i64> = places.iter().map(|place| place.instance_id).collect();
        instance_ids.sort_unstable();
        instance_ids.dedup();
        let posts = posts(tx, &post_ids, Some(&instance_ids))?;
        for place in &places {
            if shown.len() < limit
                && let Some(found) = posts.get(&place.post_id)
                && place.returns.is_none_or(|returns| returns == found.returns)
                && may_show(found)
                && picked.is_none_or(|picks| picks(&found.post))
            {
                shown.push(TimelinePost {
                    id: from_sql(place.id)?,
                    ..found.post.clone()
                });
            }
        }
        if (places.len() as i64) < count {
            break;
        }
        places_left = places_left.map(|left| left - count);
        if places_left.is_some_and(|left| left <= 0) && shown.len() < limit {
            let (mut next, stopped_at) = (*range, Some(from_sql(last.id)?));
            *(if is_upward {
                &mut next.min
            } else {
                &mut next.max
            }) = stopped_at;
            next.limit -= u16::try_from(shown.len()).unwrap_or(next.limit);
            rest = Some(next);
            break;
        }
    }
    if is_upward {
        shown.reverse();
    }
    Ok(Stretch { posts: shown, rest })
}

/// How many places a transaction picks from.
const MAX_PICKED_FROM: i64 = 2_000;
/// How many of them are read at once.
const PICKED_FROM_AT_ONCE: i64 = 200;

/// Posts that are not deleted, by the IDs that the store knows them by; of these instances, if they are
/// known, so that a distributed database asks no other nodes.
fn posts(
    tx: &mut Tx<'_>,
    ids: &[i64],
    instance_ids: Option<&[i64]>,
) -> Result<HashMap<i64, Found>, DbError> {
    let ids = Column::i64(ids.iter().copied());
    let mut sql =
        format!("select {COLUMNS} from post where id {{in $1}} and deleted_at_ms is null");
    let found = match instance_ids {
        Some(instance_ids) => {
            sql.push_str(" and instance_id {in $2}");
            let instance_ids = Column::i64(instance_ids.iter().copied());
            tx.query(&sql, &[&ids, &instance_ids], from_row)?
        }
        None => tx.query(&sql, &[&ids], from_row)?,
    };
    Ok(found.into_iter().collect())
}

/// The columns that [`from_row`] reads.
const COLUMNS: &str = "id, instance_id, upstream_id, uri, url, account_id, created_at_ms,
    edited_at_ms, visibility, boost_of_upstream_id, listed, raw,
    coalesce(public_id, id) as listed_id, returns";

fn from_row(row: &Row<'_>) -> Result<(i64, Found), DbError> {
    let id = row.i64("id")?;
    let post = TimelinePost {
        id: from_sql(id)?,
        post_id: from_sql(id)?,
        public_id: from_sql(row.i64("listed_id")?)?,
        instance: from_sql(row.i64("instance_id")?)?,
        upstream_id: row.text("upstream_id")?,
        uri: row.opt_text("uri")?,
        url: row.opt_text("url")?,
        account: row.opt_i64("account_id")?.map(from_sql).transpose()?,
        created_at_ms: row.opt_i64("created_at_ms")?,
        edited_at_ms: row.opt_i64("edited_at_ms")?,
        visibility: Visibility::named_or_narrowest(row.str("visibility")?),
        boost_of: row.opt_text("boost_of_upstream_id")?,
        raw: row.text("raw")?,
    };
    let found = Found {
        post,
        listed: row.bool("listed")?,
        returns: row.i64("returns")?,
    };
    Ok((id, found))
}
