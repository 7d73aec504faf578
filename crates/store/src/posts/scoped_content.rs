//! The content of posts that narrower scopes were shown, where it differs from the post's own.
//!
//! A post's own content belongs to the widest scope that was shown the post: the public answers
//! replace it, and narrower ones never do. Different content for a narrower scope is kept here.

use std::collections::{BTreeSet, HashMap};

use driftline_core::names::audience::Audience;
use driftline_db::{Column, DbError, Tx};
use serde_json::Value;

use crate::{
    id_types::SourceKey,
    mirror::machine::{IS_WITH_TOKEN, scope_from_row},
    posts::{content_scope::ContentScope, edited_post, post::PostVersion},
    refresh,
    text::without_nul,
};

/// True if two answers show the same posts inside a post, such as quoted ones. Counts, times and
/// other values that change by themselves do not matter.
pub(crate) fn shows_same_posts(one: &str, other: &str) -> bool {
    one == other || nested_posts(one) == nested_posts(other)
}

/// The ID and the text of each post inside a post.
fn nested_posts(json: &str) -> Vec<(String, String)> {
    fn walk(value: &Value, is_root: bool, found: &mut Vec<(String, String)>) {
        match value {
            Value::Object(members) => {
                // Tweets have a `text`.
                let text = members.get("content").or_else(|| members.get("text"));
                if let (false, Some(id), Some(text)) = (is_root, members.get("id"), text) {
                    found.push((id.to_string(), text.to_string()));
                }
                members.values().for_each(|value| walk(value, false, found));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, false, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(json) {
        walk(&value, true, &mut found);
    }
    found.sort_unstable();
    found
}

/// Keeps the present content of posts for its scope, before public content replaces it. The
/// instance must be held.
pub(crate) fn keep_own(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<(), DbError> {
    tx.execute_many_later(
        "insert into scoped_content (post_id, instance_id, scope, content_hash, edited_at_ms, read_at_ms, visibility, raw)
         select p.id, p.instance_id, p.content_scope, p.content_hash, p.edited_at_ms, p.read_at_ms, p.visibility, p.raw
         from {rows as r(id)} join post p on p.id = r.id
         where p.instance_id = $1 and p.raw is not null and p.content_scope <> 0
         on conflict ({key post_id, scope + instance_id}) do update
         set content_hash = excluded.content_hash, edited_at_ms = excluded.edited_at_ms,
             read_at_ms = excluded.read_at_ms, visibility = excluded.visibility, raw = excluded.raw",
        &[&instance_id],
        &[Column::i64(posts.iter().copied())],
    )
}

/// Stores the content of posts for a narrower scope, and moves the content that it was shown before
/// into their histories. The instance must be held.
pub(crate) fn store(
    tx: &mut Tx<'_>,
    instance_id: i64,
    scope: ContentScope,
    versions: &[PostVersion<'_>],
    now_ms: i64,
) -> Result<(), DbError> {
    let mut versions: Vec<&PostVersion<'_>> = versions.iter().collect();
    versions.sort_unstable_by_key(|version| version.id);
    let raws = versions
        .iter()
        .map(|version| without_nul(&version.post.raw));
    let raws: Vec<_> = raws.collect();
    tx.execute_many_later(
        "insert into post_history (post_id, instance_id, seq, kind, at_ms, edited_at_ms, content_scope, raw)
         select c.post_id, c.instance_id, coalesce((select max(h.seq) from post_history h
             where h.post_id = c.post_id and h.instance_id = $1), 0) + 1, 'edit', $3, c.edited_at_ms, c.scope, c.raw
         from {rows as r(id)} join scoped_content c on c.post_id = r.id
         where c.instance_id = $1 and c.scope = $2",
        &[&instance_id, &scope.sql(), &now_ms],
        &[Column::i64(versions.iter().map(|version| version.id))],
    )?;
    let ended = versions.iter().map(|version| version.id);
    edited_post::add(tx, instance_id, ended, now_ms)?;
    tx.execute_many_later(
        "insert into scoped_content (post_id, instance_id, scope, content_hash, edited_at_ms, read_at_ms, visibility, raw)
         select r.id, $1, $2, r.content_hash, r.edited_at_ms, r.read_at_ms, r.visibility, r.raw
         from {rows as r(id, content_hash, edited_at_ms, read_at_ms, visibility, raw)} where true
         on conflict ({key post_id, scope + instance_id}) do update
         set content_hash = excluded.content_hash, edited_at_ms = excluded.edited_at_ms,
             read_at_ms = excluded.read_at_ms, visibility = excluded.visibility, raw = excluded.raw",
        &[&instance_id, &scope.sql()],
        &[
            Column::i64(versions.iter().map(|version| version.id)),
            Column::i64(versions.iter().map(|version| version.post.hashes.content)),
            Column::i64(versions.iter().map(|version| version.post.edited_at_ms)),
            Column::i64(versions.iter().map(|version| version.read_at_ms)),
            Column::text(versions.iter().map(|version| version.post.visibility.name())),
            Column::text(raws.iter().map(|raw| &**raw)),
        ],
    )
}

/// Moves posts of a source to a wider scope, because its owner has let more people read it: content
/// for the narrower scope is shown to the wider one, unless the post has content for that already.
/// Posts that the source no longer lists, and posts that the owner also reads with another token,
/// wait until the source shows them again. The instance must be held.
pub(crate) fn widen(
    tx: &mut Tx<'_>,
    source: SourceKey,
    posts: &[i64],
    (from, to): (ContentScope, ContentScope),
) -> Result<(), DbError> {
    if from == ContentScope::WORLD {
        return Ok(());
    }
    let instance_id = source.instance_id();
    note(tx, instance_id, posts)?;
    let holders = holders(tx, instance_id, posts)?;
    let own = holders.iter().filter(|of| of.source_id == source.id());
    let own: HashMap<i64, &Holder> = own.map(|of| (of.post_id, of)).collect();
    let is_of_another_token = |id: &i64| {
        let others = holders.iter().filter(|of| of.post_id == *id);
        let mut others = others.filter(|of| of.scope == from);
        others.any(|of| own.get(id).is_none_or(|own| own.token != of.token))
    };
    let posts = posts.iter().copied();
    let posts = posts.filter(|id| own.contains_key(id) && !is_of_another_token(id));
    let posts: Vec<i64> = posts.collect();
    let ids = || Column::i64(posts.iter().copied());
    // The own content of some posts belongs to a third scope, which the wider one may not read.
    let third = tx.query(
        "select p.id from post p
         join scoped_content c on c.post_id = p.id and c.instance_id = p.instance_id and c.scope = $3
         where p.id {in $1} and p.instance_id = $2 and p.content_scope <> 0 and p.raw is not null",
        &[&ids(), &instance_id, &from.sql()],
        |row| row.i64("id"),
    )?;
    tx.execute_later(
        "delete from scoped_content where post_id {in $1} and instance_id = $2 and scope = $3
             and exists (select 1 from post p where p.id = scoped_content.post_id
                 and p.instance_id = scoped_content.instance_id and p.content_scope = $4)",
        &[&ids(), &instance_id, &to.sql(), &from.sql()],
    )?;
    tx.execute_later(
        "update post set content_scope = $3
         where id {in $1} and instance_id = $2 and content_scope = $4",
        &[&ids(), &instance_id, &to.sql(), &from.sql()],
    )?;
    if to == ContentScope::WORLD {
        keep_own(tx, instance_id, &third)?;
        return promote(tx, instance_id, &third, (from, to));
    }
    tx.execute_later(
        "update scoped_content set scope = $3
         where post_id {in $1} and instance_id = $2 and scope = $4
             and not exists (select 1 from scoped_content o where o.post_id = scoped_content.post_id
                 and o.instance_id = scoped_content.instance_id and o.scope = $3)",
        &[&ids(), &instance_id, &to.sql(), &from.sql()],
    )
}

/// Ends the content of a scope for those posts that none of its sources has any more. A source that
/// is being removed does not count. Content for another scope replaces the posts' own. Content for
/// everybody, or for all members, becomes that of the one scope whose sources still have it. The
/// instance must be held.
pub(crate) fn release(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
    (scope, removed): (ContentScope, Option<i64>),
) -> Result<(), DbError> {
    note(tx, instance_id, posts)?;
    // Nobody is shown them any more, so they must not come back.
    tx.execute_later(
        "delete from scoped_content where post_id {in $1} and instance_id = $2
             and exists (select 1 from post p where p.id = scoped_content.post_id
                 and p.instance_id = scoped_content.instance_id and p.content_scope in (0, -1)
                 and coalesce(p.edited_at_ms, 0) > coalesce(scoped_content.edited_at_ms, 0))",
        &[&Column::i64(posts.iter().copied()), &instance_id],
    )?;
    let mut holders = holders(tx, instance_id, posts)?;
    holders.retain(|of| Some(of.source_id) != removed);
    let mut scopes: HashMap<i64, BTreeSet<ContentScope>> = HashMap::new();
    for holder in holders {
        scopes
            .entry(holder.post_id)
            .or_default()
            .insert(holder.scope);
    }
    let is_held = |id: &i64| scopes.get(id).is_some_and(|scopes| scopes.contains(&scope));
    let posts: Vec<i64> = posts.iter().copied().filter(|id| !is_held(id)).collect();
    let ids = || Column::i64(posts.iter().copied());
    if scope != ContentScope::WORLD {
        for sql in [
            "delete from scoped_content where post_id {in $1} and instance_id = $2 and scope = $3",
            "delete from post_history where post_id {in $1} and instance_id = $2 and content_scope = $3",
        ] {
            tx.execute_later(sql, &[&ids(), &instance_id, &scope.sql()])?;
        }
    }
    let scoped = tx.query(
        "select c.post_id, max(c.scope) as scope from scoped_content c
         join post p on p.id = c.post_id and p.instance_id = c.instance_id
         where c.post_id {in $1} and c.instance_id = $2 and p.content_scope = $3 group by c.post_id",
        &[&ids(), &instance_id, &scope.sql()],
        |row| {
            let scope = ContentScope::from_sql(row.i64("scope")?);
            Ok((row.i64("post_id")?, scope))
        },
    )?;
    let scoped: HashMap<i64, ContentScope> = scoped.into_iter().collect();
    for id in posts {
        let only = scopes.get(&id).filter(|scopes| scopes.len() == 1);
        let only = only.and_then(BTreeSet::first).copied();
        match (scoped.get(&id), only) {
            (Some(heir), _) if scope.audience() == Audience::Private => {
                promote(tx, instance_id, &[id], (*heir, *heir))?;
            }
            (Some(heir), Some(only)) if *heir == only => {
                promote(tx, instance_id, &[id], (only, only))?;
            }
            (None, Some(only)) if scope.audience() != Audience::Private => tx.execute_later(
                "update post set content_scope = $3
                 where id = $1 and instance_id = $2 and content_scope = $4",
                &[&id, &instance_id, &only.sql(), &scope.sql()],
            )?,
            _ => {}
        }
    }
    Ok(())
}

/// Has the libraries of all sources notified of those of these posts that a scope was shown otherwise: another content may be
/// shown to some from now on.
pub(crate) fn note(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<(), DbError> {
    let shown_otherwise = tx.query(
        "select distinct post_id from scoped_content where post_id {in $1} and instance_id = $2",
        &[&Column::i64(posts.iter().copied()), &instance_id],
        |row| Ok((row.i64("post_id")?, false)),
    )?;
    // They are due at once.
    refresh::add_to_outbox(tx, instance_id, 0, &shown_otherwise)
}

/// A source that lists a post.
struct Holder {
    post_id: i64,
    source_id: i64,
    scope: ContentScope,
    token: Option<String>,
}

/// The sources that list posts.
fn holders(tx: &mut Tx<'_>, instance_id: i64, posts: &[i64]) -> Result<Vec<Holder>, DbError> {
    let columns = format!(
        "select e.post_id, s.id as source_id, s.token, s.audience, s.owner_id, {IS_WITH_TOKEN}
         from entry e join source s on s.id = e.source_id and s.instance_id = e.instance_id
         where e.instance_id = $2 and not e.gone and"
    );
    let ids = Column::i64(posts.iter().copied());
    tx.query(
        &format!(
            "{columns} e.id {{in $1}} and e.id = e.post_id
             union all {columns} e.post_id {{in $1}} and e.id <> e.post_id"
        ),
        &[&ids, &instance_id],
        |row| {
            Ok(Holder {
                post_id: row.i64("post_id")?,
                source_id: row.i64("source_id")?,
                scope: scope_from_row(row)?,
                token: row.opt_text("token")?,
            })
        },
    )
}

/// Ends the content of a scope for deleted posts: it is moved into their histories, or erased with
/// those of the scope. The instance must be held.
pub(crate) fn end(
    tx: &mut Tx<'_>,
    (instance_id, scope): (i64, ContentScope),
    posts: &[i64],
    keep: bool,
    now_ms: i64,
) -> Result<(), DbError> {
    let ids = || Column::i64(posts.iter().copied());
    if keep {
        keep_ended(tx, instance_id, posts, Some(scope), now_ms)?;
    } else {
        tx.execute_later(
            "delete from post_history where post_id {in $1} and instance_id = $2 and content_scope = $3",
            &[&ids(), &instance_id, &scope.sql()],
        )?;
    }
    tx.execute_later(
        "delete from scoped_content where post_id {in $1} and instance_id = $2 and scope = $3",
        &[&ids(), &instance_id, &scope.sql()],
    )
}

/// Moves the content of all scopes for deleted posts into their histories. The instance must be
/// held.
pub(crate) fn end_all(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
    now_ms: i64,
) -> Result<(), DbError> {
    if posts.is_empty() {
        return Ok(());
    }
    keep_ended(tx, instance_id, posts, None, now_ms)?;
    tx.execute_later(
        "delete from scoped_content where post_id {in $1} and instance_id = $2",
        &[&Column::i64(posts.iter().copied()), &instance_id],
    )
}

fn keep_ended(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
    scope: Option<ContentScope>,
    now_ms: i64,
) -> Result<(), DbError> {
    tx.execute_later(
        "insert into post_history (post_id, instance_id, seq, kind, at_ms, edited_at_ms, content_scope, raw)
         select c.post_id, c.instance_id, coalesce((select max(h.seq) from post_history h
                 where h.post_id = c.post_id and h.instance_id = $2), 0)
             + (select count(*) from scoped_content o where o.post_id = c.post_id
                 and o.instance_id = $2 and o.scope <= c.scope), 'deletion', $3, c.edited_at_ms, c.scope, c.raw
         from scoped_content c
         where c.post_id {in $1} and c.instance_id = $2 and c.scope = coalesce($4, c.scope)",
        &[
            &Column::i64(posts.iter().copied()),
            &instance_id,
            &now_ms,
            &scope.map(ContentScope::sql),
        ],
    )
}

/// Makes the content of posts for a scope their own, for the readers of another scope.
fn promote(
    tx: &mut Tx<'_>,
    instance_id: i64,
    posts: &[i64],
    (from, to): (ContentScope, ContentScope),
) -> Result<(), DbError> {
    tx.execute_many_later(
        "update post set content_scope = $3, content_hash = c.content_hash, edited_at_ms = c.edited_at_ms,
             read_at_ms = c.read_at_ms, raw = c.raw, visibility = c.visibility,
             listed = (post.listed and c.visibility = 'public')
         from {rows as r(id)} join scoped_content c on c.post_id = r.id
         where post.id = r.id and post.instance_id = $1 and c.instance_id = $1 and c.scope = $2",
        &[&instance_id, &from.sql(), &to.sql()],
        &[Column::i64(posts.iter().copied())],
    )?;
    tx.execute_later(
        "delete from scoped_content where post_id {in $1} and instance_id = $2 and scope = $3",
        &[
            &Column::i64(posts.iter().copied()),
            &instance_id,
            &from.sql(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posts_inside_a_post_are_compared_and_nothing_else() {
        let quoting = |text: &str, count: u32| {
            format!(
                r#"{{"id":"1","content":"a","replies_count":{count},
                    "quote":{{"quoted_status":{{"id":"2","content":"{text}"}}}}}}"#
            )
        };
        let plain = r#"{"id":"1","content":"b","account":{"id":"7"}}"#;
        assert!(shows_same_posts(&quoting("x", 1), &quoting("x", 2)));
        assert!(!shows_same_posts(&quoting("x", 1), &quoting("y", 1)));
        assert!(!shows_same_posts(&quoting("x", 1), plain));
        assert!(shows_same_posts(plain, "no JSON"));
    }
}
