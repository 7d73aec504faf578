//! Stored posts as timelines read them.

use std::collections::HashMap;

use driftline_core::{
    names::{
        audience::{Audience, Reader},
        object_uri::UriKey,
    },
    post::Visibility,
};
use driftline_db::{Column, DbError, Row, Tx};

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

/// The people for whom content is read.
#[derive(Clone, Copy)]
pub(super) enum ContentReader {
    /// A viewer, with all that was shown to its scopes.
    Viewer(Viewer),
    /// The readers of a source, with what the source was shown.
    Source(ContentScope),
}

impl From<Viewer> for ContentReader {
    fn from(viewer: Viewer) -> ContentReader {
        ContentReader::Viewer(viewer)
    }
}

impl ContentReader {
    fn scopes(self) -> ReadableScopes {
        match self {
            ContentReader::Viewer(viewer) => ReadableScopes::of(viewer),
            ContentReader::Source(scope) => ReadableScopes::of_scope(scope),
        }
    }
}

/// Posts, including deleted ones, by the IDs by which the store knows them. If their instances are
/// known, `instance_ids` has them, so that a distributed database asks no other nodes. The content
/// is that which the reader's scopes were shown; posts of which these were shown nothing are left
/// out.
pub(super) fn by_ids(
    tx: &mut Tx<'_>,
    ids: &[i64],
    instance_ids: Option<&[i64]>,
    reader: impl Into<ContentReader>,
) -> Result<HashMap<i64, StoredPost>, DbError> {
    let reader = reader.into();
    let ids = Column::i64(ids.iter().copied());
    let own = reader.scopes().own().unwrap_or(ContentScope::WORLD);
    let members = match reader {
        ContentReader::Viewer(_) => ContentScope::MEMBERS,
        ContentReader::Source(_) => own,
    };
    let (own, members) = (own.sql(), members.sql());
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
    let row = |row: &Row<'_>| from_row(row, reader);
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
    c.content_hash as own_hash, c.visibility as own_visibility, m.visibility as members_visibility, m.raw as members_raw, m.edited_at_ms as members_edited_at_ms,
    m.content_hash as members_hash,
    coalesce(p.public_id, p.id) as listed_id, p.returns,
    (select a.acct_id from account a
     where a.id = p.account_id and a.instance_id = p.instance_id) as author_id";

fn from_row(row: &Row<'_>, reader: ContentReader) -> Result<Option<(i64, StoredPost)>, DbError> {
    let id = row.i64("id")?;
    let deleted_at_ms = row.opt_i64("deleted_at_ms")?;
    let of_post = visibility(row, "visibility")?;
    let Some(content) = content(row, of_post, reader.scopes())? else {
        return Ok(None);
    };
    let scope = ContentScope::from_sql(row.i64("content_scope")?);
    let is_narrowed = content.visibility.narrowness() > of_post.narrowness();
    let visibility = match reader {
        // Nobody is shown a post elsewhere that one of their answers has narrowed.
        ContentReader::Viewer(_) if !is_narrowed && reader.scopes().has(scope) => of_post,
        _ => content.visibility,
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
        visibility,
        boost_of: row.opt_text("boost_of_upstream_id")?,
        raw: content.raw,
        copies: Vec::new(),
    };
    let found = StoredPost {
        post,
        deleted_at_ms,
        listed: row.bool("listed")? && visibility == Visibility::Public,
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
    visibility: Visibility,
    raw: String,
}

fn visibility(row: &Row<'_>, column: &str) -> Result<Visibility, DbError> {
    Ok(Visibility::named_or_narrowest(row.str(column)?))
}

/// The content that a reader is shown. It is the reader's own, unless everybody was shown a newer
/// edit; a deleted post has none. `None` if nothing was shown to the reader's scopes.
fn content(
    row: &Row<'_>,
    of_post: Visibility,
    readable: ReadableScopes,
) -> Result<Option<Content>, DbError> {
    let edited_at_ms = row.opt_i64("edited_at_ms")?;
    let hash = row.i64("content_hash")?;
    let Some(raw) = row.opt_text("raw")? else {
        return Ok(Some(Content {
            edited_at_ms,
            hash,
            visibility: of_post,
            raw: String::new(),
        }));
    };
    let scope = ContentScope::from_sql(row.i64("content_scope")?);
    let mut shown = Vec::new();
    if readable.own().is_some() {
        if let Some(own) = row.opt_text("own_raw")? {
            shown.push(Content {
                edited_at_ms: row.opt_i64("own_edited_at_ms")?,
                hash: row.opt_i64("own_hash")?.unwrap_or_default(),
                visibility: visibility(row, "own_visibility")?,
                raw: own,
            });
        } else if let Some(members) = row.opt_text("members_raw")?
            && readable.own() != Some(scope)
        {
            let visibility = visibility(row, "members_visibility")?;
            // The rest concerns the owner of a source alone, whose timeline shows it.
            if Audience::Members
                .shows(Reader::Member)
                .is_some_and(|shows| visibility.narrowness() <= shows.narrowness())
            {
                shown.push(Content {
                    edited_at_ms: row.opt_i64("members_edited_at_ms")?,
                    hash: row.opt_i64("members_hash")?.unwrap_or_default(),
                    visibility,
                    raw: members,
                });
            }
        }
    }
    if readable.has(scope) {
        shown.push(Content {
            edited_at_ms,
            hash,
            visibility: of_post,
            raw,
        });
    }
    // The first of those with the latest edit.
    let last_ms = shown.iter().map(|content| content.edited_at_ms).max();
    let mut shown = shown.into_iter();
    Ok(shown.find(|content| Some(content.edited_at_ms) == last_ms))
}
