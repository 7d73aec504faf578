//! Threads: the posts to which a post replies, and the replies to it, as one viewer may read them.

use std::collections::{HashMap, HashSet};

use driftline_core::thread::{Descent, Reply, ThreadLimits, depth_first};
use driftline_db::{DbError, Row, Tx};

use super::{
    PostKey, TimelinePost,
    by_post_id::{ShownCopy, shown_to},
};
use crate::{
    error::StoreError,
    id_types::{InstanceId, LocalId, from_sql, sql},
    posts::shown_condition::ShownCondition,
    viewer::{LazyReadableSources, ReadableSources, Viewer},
};

/// The posts of a thread around one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The posts to which it replies, the first post of the thread at the beginning.
    pub ancestors: Vec<TimelinePost>,
    /// The replies to it, each followed by the replies to that reply.
    pub descendants: Vec<TimelinePost>,
}

/// Returns the upstream ID of the post to which a post replies.
pub type AnsweredBy<'a> = &'a dyn Fn(&TimelinePost) -> Option<String>;

/// The thread of a post, as far as the viewer may read it. Above and below a post that the viewer
/// may not see nothing is shown, because that would reveal that the post exists. Each post is at
/// its place for the viewer.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn thread(
    tx: &mut Tx<'_>,
    post: &TimelinePost,
    viewer: Viewer,
    limits: ThreadLimits,
    answered: AnsweredBy<'_>,
) -> Result<Thread, StoreError> {
    let ancestors = ancestors(tx, post, viewer, limits.ancestors, answered)?;
    let above: Vec<&str> = ancestors.iter().map(|post| &*post.upstream_id).collect();
    let descent = Descent::below(&post.upstream_id, &above, limits);
    // Posts above may reply to posts below, and are not included twice.
    let most = limits.descendants.saturating_add(above.len());
    let descendants = descendants(tx, post, viewer, (descent, most))?;
    Ok(Thread {
        ancestors,
        descendants,
    })
}

fn ancestors(
    tx: &mut Tx<'_>,
    post: &TimelinePost,
    viewer: Viewer,
    limit: usize,
    answered: AnsweredBy<'_>,
) -> Result<Vec<TimelinePost>, StoreError> {
    let mut seen = HashSet::from([post.upstream_id.clone()]);
    let mut near: HashMap<String, TimelinePost> = HashMap::new();
    let mut found = Vec::new();
    let mut next = answered(post);
    while let Some(name) = next.take() {
        if found.len() >= limit || !seen.insert(name.clone()) {
            break;
        }
        if !near.contains_key(&name) {
            let chain = chain(tx, post.instance, &name, limit - found.len())?;
            let sources = LazyReadableSources::new(viewer);
            let seen = shown_to(tx, &chain, &sources, ShownCopy::Itself)?.into_values();
            near = seen.map(|post| (post.upstream_id.clone(), post)).collect();
        }
        let Some(above) = near.remove(&name) else {
            break;
        };
        next = answered(&above);
        found.push(above);
    }
    found.reverse();
    Ok(found)
}

/// The stored posts from one upwards, as far as the store knows to which post each replies.
fn chain(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    upstream_id: &str,
    limit: usize,
) -> Result<Vec<PostKey>, StoreError> {
    let limit = i64::try_from(limit.min(CHUNK)).unwrap_or(i64::MAX);
    let found = tx.query(
        "with recursive above(reply_to_id, post_id, height) as (
             select reply_to_id, post_id, 1 from upstream_post
             where upstream_id = $1 and instance_id = $2
             union all
             select u.reply_to_id, u.post_id, above.height + 1 from above
             join upstream_post u on u.upstream_id = above.reply_to_id and u.instance_id = $2
             where above.height < $3)
         select post_id from above where post_id > 0",
        &[&upstream_id, &sql(instance), &limit],
        |row| {
            let post = from_sql(row.i64("post_id")?)?;
            Ok(PostKey { post, instance })
        },
    )?;
    Ok(found)
}

/// A stored reply.
struct StoredReply {
    upstream_id: String,
    reply_to: String,
    post: LocalId,
}

impl StoredReply {
    fn from_row(row: &Row<'_>) -> Result<StoredReply, DbError> {
        Ok(StoredReply {
            upstream_id: row.text("upstream_id")?,
            reply_to: row.text("reply_to_id")?,
            post: from_sql(row.i64("post_id")?)?,
        })
    }
}

fn descendants(
    tx: &mut Tx<'_>,
    post: &TimelinePost,
    viewer: Viewer,
    (mut descent, most): (Descent, usize),
) -> Result<Vec<TimelinePost>, StoreError> {
    let instance = post.instance;
    let readable = ReadableSources::load(tx, viewer)?;
    let condition = ShownCondition::of(&readable, instance);
    let [id, world, members, own, scopes] = condition.params();
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    // In the order of their depth. Posts that the viewer is not shown are not followed and take no
    // room.
    let stored = tx.query(
        &format!(
            "with recursive below(upstream_id, reply_to_id, post_id) as (
                 select u.upstream_id, u.reply_to_id, u.post_id from upstream_post u
                 where u.reply_to_id = $6 and u.instance_id = $1 and u.post_id > 0 and {first_shown}
                 union
                 select u.upstream_id, u.reply_to_id, u.post_id from below
                 join upstream_post u on u.reply_to_id = below.upstream_id and u.instance_id = $1
                 where u.post_id > 0 and {shown})
             select upstream_id, reply_to_id, post_id from below limit $7",
            first_shown = ShownCondition::of_post("u.post_id"),
            // It names both tables, so that no plan checks it for replies before they are known to
            // be below.
            shown = ShownCondition::of_post("case when below.post_id > 0 then u.post_id end")
        ),
        &[id, world, members, own, scopes, &post.upstream_id, &most],
        StoredReply::from_row,
    )?;
    let mut found: Vec<(String, TimelinePost)> = Vec::new();
    for chunk in stored.chunks(CHUNK) {
        if descent.is_full() {
            break;
        }
        let keys: Vec<PostKey> = chunk
            .iter()
            .map(|reply| PostKey {
                post: reply.post,
                instance,
            })
            .collect();
        let sources = LazyReadableSources::new(viewer);
        let mut seen = shown_to(tx, &keys, &sources, ShownCopy::Itself)?;
        for reply in chunk {
            if let Some(post) = seen.remove(&reply.post)
                && descent.take(&reply.upstream_id, &reply.reply_to)
            {
                found.push((reply.reply_to.clone(), post));
            }
        }
    }
    let replies: Vec<Reply<'_>> = found
        .iter()
        .map(|(reply_to, post)| Reply {
            id: &post.upstream_id,
            reply_to,
            created_at_ms: post.created_at_ms.unwrap_or_default(),
        })
        .collect();
    let order = depth_first(&post.upstream_id, &replies);
    let mut posts: Vec<Option<TimelinePost>> =
        found.into_iter().map(|(_, post)| Some(post)).collect();
    let ordered = order.into_iter().filter_map(|index| posts[index].take());
    Ok(ordered.collect())
}

/// The number of posts that are looked at together.
const CHUNK: usize = 200;
