//! Stored posts as timelines read them.

use std::collections::HashMap;

use driftline_core::{names::object_uri::UriKey, post::Visibility};
use driftline_db::{Column, DbError, Row, Tx};
use serde::Deserialize;

use super::timeline_post::TimelinePost;
use crate::{
    id_types::{from_sql, sql},
    posts::content_scope::{ContentScope, ReadableScopes},
    viewer::Viewer,
};

/// A post, which may be deleted.
pub(super) struct StoredPost {
    pub(super) post: TimelinePost,
    /// The time at which its deletion was noticed, in Unix ms. Its content is gone then.
    pub(super) deleted_at_ms: Option<i64>,
    /// True if the world's public timeline lists it.
    pub(super) listed: bool,
    /// True if a source that everybody may read has it.
    pub(super) in_public: bool,
    /// True if its server only claims to know it.
    pub(super) claimed: bool,
    /// True if its ID in the public timeline belongs to a post of history.
    pub(super) from_history: bool,
    pub(super) returns: i64,
    /// The hash of the content that is shown, without counts.
    pub(super) content_hash: i64,
    /// A source that has it: the one that had it first, unless that was removed.
    pub(super) first_source_id: i64,
}

impl StoredPost {
    /// The ID by which the store knows it.
    pub(super) fn id(&self) -> i64 {
        sql(self.post.post_id)
    }

    /// True if it is not deleted.
    pub(super) fn is_alive(&self) -> bool {
        self.deleted_at_ms.is_none()
    }

    /// True if the world's public timeline lists it, or may have listed it until it was deleted.
    pub(super) fn has_public_place(&self) -> bool {
        let is_public = self.in_public && self.post.visibility == Visibility::Public;
        self.listed || !self.is_alive() && is_public
    }

    /// The key by which its name is looked up.
    pub(super) fn uri_key(&self) -> Option<UriKey> {
        UriKey::new(self.post.uri.as_deref()?)
    }
}

/// Posts, including deleted ones, by the IDs by which the store knows them. If their instances are
/// known, `instance_ids` has them, so that a distributed database asks no other nodes. The content
/// is that which the viewer's scopes were shown; posts of which these were shown nothing are left
/// out.
pub(super) fn by_ids(
    tx: &mut Tx<'_>,
    ids: &[i64],
    instance_ids: Option<&[i64]>,
    viewer: Viewer,
) -> Result<HashMap<i64, StoredPost>, DbError> {
    let readable = ReadableScopes::of(viewer);
    let ids = Column::i64(ids.iter().copied());
    let (own, members) = (readable.own(), ContentScope::MEMBERS.sql());
    let own = own.map_or(ContentScope::WORLD.sql(), ContentScope::sql);
    let scoped = |scope: &str, alias: &str| {
        format!(
            "left join scoped_content {alias} on {alias}.post_id = p.id
                 and {alias}.instance_id = p.instance_id and {alias}.scope = {scope}"
        )
    };
    let mut sql = format!(
        "select {COLUMNS} from post p {} {} where p.id {{in $1}}",
        scoped("$2", "c"),
        scoped("$3", "m")
    );
    let row = |row: &Row<'_>| from_row(row, readable);
    let found = match instance_ids {
        Some(instance_ids) => {
            sql.push_str(" and p.instance_id {in $4}");
            let instance_ids = Column::i64(instance_ids.iter().copied());
            tx.query(&sql, &[&ids, &own, &members, &instance_ids], row)?
        }
        None => tx.query(&sql, &[&ids, &own, &members], row)?,
    };
    Ok(found.into_iter().flatten().collect())
}

/// The columns of `post p` that [`from_row`] reads.
const COLUMNS: &str = "p.id, p.instance_id, p.upstream_id, p.uri, p.url, p.created_at_ms,
    p.edited_at_ms, p.deleted_at_ms, p.visibility, p.boost_of_upstream_id, p.listed, p.in_public, p.claimed, p.from_history,
    p.raw, p.first_source_id, p.content_scope, p.content_hash, c.raw as own_raw, c.edited_at_ms as own_edited_at_ms,
    c.content_hash as own_hash, m.raw as members_raw, m.edited_at_ms as members_edited_at_ms,
    m.content_hash as members_hash,
    coalesce(p.public_id, p.id) as listed_id, p.returns,
    (select a.acct_id from account a
     where a.id = p.account_id and a.instance_id = p.instance_id) as author_id";

fn from_row(row: &Row<'_>, readable: ReadableScopes) -> Result<Option<(i64, StoredPost)>, DbError> {
    let id = row.i64("id")?;
    let deleted_at_ms = row.opt_i64("deleted_at_ms")?;
    let Some(content) = content(row, readable)? else {
        return Ok(None);
    };
    let post = TimelinePost {
        id: from_sql(id)?,
        post_id: from_sql(id)?,
        public_id: from_sql(row.i64("listed_id")?)?,
        instance: from_sql(row.i64("instance_id")?)?,
        upstream_id: row.text("upstream_id")?,
        uri: row.opt_text("uri")?,
        url: row.opt_text("url")?,
        account: row.opt_i64("author_id")?.map(from_sql).transpose()?,
        created_at_ms: row.opt_i64("created_at_ms")?,
        edited_at_ms: content.edited_at_ms,
        visibility: content.visibility(Visibility::named_or_narrowest(row.str("visibility")?)),
        boost_of: row.opt_text("boost_of_upstream_id")?,
        raw: content.raw,
        copies: Vec::new(),
    };
    let found = StoredPost {
        post,
        deleted_at_ms,
        listed: row.bool("listed")?,
        in_public: row.bool("in_public")?,
        claimed: row.bool("claimed")?,
        from_history: row.bool("from_history")?,
        returns: row.i64("returns")?,
        content_hash: content.hash,
        first_source_id: row.i64("first_source_id")?,
    };
    Ok(Some((id, found)))
}

/// The content of a post, as one scope was shown it.
struct Content {
    edited_at_ms: Option<i64>,
    hash: i64,
    raw: String,
    /// True if only a narrower scope was shown it.
    is_scoped: bool,
}

impl Content {
    /// The visibility that goes with it. A narrower scope may be shown a narrower one before everybody is: its library has had
    /// the USN of that, and gets no other one when everybody is shown it.
    fn visibility(&self, of_post: Visibility) -> Visibility {
        if !self.is_scoped {
            return of_post;
        }
        let status = serde_json::from_str::<Status>(&self.raw).ok();
        let named = status.and_then(|status| status.visibility?.parse().ok());
        let both = [Some(of_post), named].into_iter().flatten();
        both.max_by_key(|of| of.narrowness()).unwrap_or(of_post)
    }
}

/// The part of a status that says who may see it.
#[derive(Deserialize)]
struct Status {
    visibility: Option<String>,
}

/// The content that a viewer is shown. It is the viewer's own, unless everybody was shown a newer
/// edit; a deleted post has none. `None` if nothing was shown to the viewer's scopes.
fn content(row: &Row<'_>, readable: ReadableScopes) -> Result<Option<Content>, DbError> {
    let edited_at_ms = row.opt_i64("edited_at_ms")?;
    let hash = row.i64("content_hash")?;
    let Some(raw) = row.opt_text("raw")? else {
        return Ok(Some(Content {
            edited_at_ms,
            hash,
            raw: String::new(),
            is_scoped: false,
        }));
    };
    let scope = ContentScope::from_sql(row.i64("content_scope")?);
    let mut shown = Vec::new();
    if readable.own().is_some() {
        if let Some(own) = row.opt_text("own_raw")? {
            shown.push(Content {
                edited_at_ms: row.opt_i64("own_edited_at_ms")?,
                hash: row.opt_i64("own_hash")?.unwrap_or_default(),
                raw: own,
                is_scoped: true,
            });
        } else if let Some(members) = row.opt_text("members_raw")?
            && readable.own() != Some(scope)
        {
            shown.push(Content {
                edited_at_ms: row.opt_i64("members_edited_at_ms")?,
                hash: row.opt_i64("members_hash")?.unwrap_or_default(),
                raw: members,
                is_scoped: true,
            });
        }
    }
    if readable.has(scope) {
        shown.push(Content {
            edited_at_ms,
            hash,
            raw,
            is_scoped: false,
        });
    }
    // The first of those with the latest edit.
    let last_ms = shown.iter().map(|content| content.edited_at_ms).max();
    let mut shown = shown.into_iter();
    Ok(shown.find(|content| Some(content.edited_at_ms) == last_ms))
}
