//! Posts to which replies refer and which their instance does not show to a viewer. They are found
//! through the copies of the replies: another instance that has a copy of a reply may have the post
//! to which it replies.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use driftline_core::names::object_uri::UriEvidence;
use driftline_db::{Column, Tx};

use super::{copies::Copies, first_places::FirstPlaces, rule::Rule, stored_post};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    posts::shown_condition::ShownCondition,
    viewer::ReadableSources,
};

/// The IDs at which a viewer finds posts that replies of an instance name by these IDs. Only
/// replies, copies and posts that are shown to the viewer count, so that hidden ones do not change
/// the answer. Of several copies the best is taken.
pub(super) fn through_copies(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_ids: &[&str],
    readable: &ReadableSources,
) -> Result<HashMap<String, LocalId>, StoreError> {
    if upstream_ids.is_empty() || readable.instances().len() < 2 {
        return Ok(HashMap::new());
    }
    // Replies that the viewer is not shown do not count.
    let condition = ShownCondition::of(readable, instance);
    let [id, world, members, own, scopes] = condition.params();
    let shown = ShownCondition::of_post("r.post_id");
    let text = format!(
        "select r.reply_to_id, r.post_id from upstream_post r
         where r.reply_to_id = $6 and r.instance_id = $1 and r.post_id > 0 and {shown}
         order by r.post_id limit $7"
    );
    let mut asked = Vec::new();
    for upstream_id in upstream_ids.iter().take(MAX_NAMES) {
        asked.push(tx.query_later(
            &text,
            &[id, world, members, own, scopes, upstream_id, &MAX_REPLIES],
            |row| Ok((row.text("reply_to_id")?, row.i64("post_id")?)),
        )?);
    }
    let mut replies: Vec<(String, i64)> = Vec::new();
    for rows in asked {
        replies.extend(tx.rows(rows)?);
    }
    let ids: Vec<i64> = replies.iter().map(|(_, reply)| *reply).collect();
    let mut posts = stored_post::by_ids(tx, &ids, Some(&[sql(instance)]), readable.viewer())?;
    let copies = Copies::load(tx, &mut posts, readable)?;
    posts.retain(|id, _| copies.has(*id));
    if posts.is_empty() {
        return Ok(HashMap::new());
    }
    let shown = FirstPlaces::load(tx, &posts, &copies, &Rule::Readable(readable))?;
    // For each name: the copies of its replies, with their quality.
    let mut asked: Vec<(&str, (i64, &str), Quality)> = Vec::new();
    for (name, reply) in replies.iter().filter(|(_, reply)| shown.shows(*reply)) {
        for copy in copies.others_of(*reply) {
            if let Some(found) = posts.get(&copy).filter(|_| shown.shows(copy)) {
                let at = (sql(found.post.instance), &*found.post.upstream_id);
                asked.push((name, at, (copies.evidence(copy), Reverse(copy))));
            }
        }
    }
    asked.sort_unstable_by_key(|(.., quality)| Reverse(*quality));
    let mut answered: HashMap<(i64, String), i64> = HashMap::new();
    let at_instances: HashSet<i64> = asked.iter().map(|(_, (at, _), _)| *at).collect();
    for at in at_instances {
        let here = asked.iter().filter(|(_, (instance, _), _)| *instance == at);
        let found = tx.query_each(
            "select r.upstream_id, a.post_id from upstream_post r
             join upstream_post a on a.upstream_id = r.reply_to_id and a.instance_id = $1
             where r.upstream_id = {row 1} and r.instance_id = $1 and a.post_id > 0",
            &[&at],
            &[Column::text(here.map(|(_, (_, id), _)| *id))],
            |row| Ok((row.text("upstream_id")?, row.i64("post_id")?)),
        )?;
        answered.extend(found.into_iter().map(|(id, post)| ((at, id), post)));
    }
    let ids: Vec<i64> = answered.values().copied().collect();
    let instance_ids: Vec<i64> = answered.keys().map(|(instance, _)| *instance).collect();
    let mut posts = stored_post::by_ids(tx, &ids, Some(&instance_ids), readable.viewer())?;
    let copies = Copies::load(tx, &mut posts, readable)?;
    let places = FirstPlaces::load(tx, &posts, &copies, &Rule::Readable(readable))?;
    let mut named = HashMap::new();
    for (name, (instance, upstream_id), _) in asked {
        let post = answered.get(&(instance, upstream_id.to_owned()));
        if let Some(first) = post.and_then(|post| places.of_post(*post))
            && !named.contains_key(name)
        {
            named.insert(name.to_owned(), from_sql(first.place)?);
        }
    }
    Ok(named)
}

/// The quality of a copy: the best evidence of its `uri` first, then the greatest age.
type Quality = (UriEvidence, Reverse<i64>);

/// The largest number of names that are looked for, and of replies to each.
const MAX_NAMES: usize = 40;
const MAX_REPLIES: i64 = 40;
