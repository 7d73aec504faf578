//! The copies of posts that devices have with bookmarks.
//!
//! A device gets the post as the account may see it at that moment. The store keeps no second copy, only the
//! version that the account was shown when the bookmark last took a USN (`marked_post.shown`). Once the account is
//! shown another version, or none, [`renew`] gives the bookmark the next USN. No commit of a page does that, because
//! it locks one source. A job compares bookmarks afterwards, at any time and as often as it likes.

use std::collections::{HashMap, HashSet};

use driftline_core::names::object_uri::UriKey;
use driftline_db::{Column, DbError, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{LocalAccountId, LocalId, from_sql, sql},
    library::object::AccountLibrary,
    posts::{
        instance, object_uri,
        timeline::{self, PostKey},
    },
    viewer::Viewer,
};

/// A bookmark of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BookmarkKey {
    /// The account.
    pub account: LocalAccountId,
    /// The bookmark's own ID.
    pub id: LocalId,
}

/// A bookmark whose post its account is shown in another version than at the bookmark's last USN, or not any more, or again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutdatedBookmark {
    /// The bookmark's own ID.
    pub id: LocalId,
    /// The version at its last USN.
    stored: Option<String>,
    /// The version that the account is shown.
    shown: Option<String>,
}

/// All accounts' bookmarks of these posts, and of their copies at other instances, by their accounts and IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn of_posts(tx: &mut Tx<'_>, posts: &[PostKey]) -> Result<Vec<BookmarkKey>, StoreError> {
    if posts.is_empty() {
        return Ok(Vec::new());
    }
    let copies = copies(tx, posts)?.into_iter();
    let ids = copies.chain(posts.iter().map(|post| sql(post.post)));
    let ids: HashSet<i64> = ids.collect();
    Ok(tx.query(
        "select account_id, id from marked_post where post_id {in $1} and mark = 'bookmark'
         order by account_id, id",
        &[&Column::i64(ids)],
        key,
    )?)
}

/// The next bookmarks of all accounts, by their accounts and IDs.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn page(
    tx: &mut Tx<'_>,
    above: Option<BookmarkKey>,
    limit: u32,
) -> Result<Vec<BookmarkKey>, StoreError> {
    let account = above.map_or(i64::MIN, |above| sql(above.account));
    let id = above.map_or(i64::MIN, |above| sql(above.id));
    // With `mark = 'bookmark'`, SQLite would sort the rest of an account's bookmarks for each page. No mark is below.
    Ok(tx.query(
        "select account_id, id from marked_post
         where (account_id, mark, id) > ($1, 'bookmark', $2) and mark <= 'bookmark'
         order by account_id, mark, id limit $3",
        &[&account, &id, &limit],
        key,
    )?)
}

/// The bookmarks of an account that [`renew`] has to change. Reads the account's sources once.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn outdated(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    ids: &[LocalId],
) -> Result<Vec<OutdatedBookmark>, StoreError> {
    let marks = tx.query(
        "select id, post_id, instance_id, shown from marked_post
         where account_id = $1 and mark = 'bookmark' and id {in $2} order by id",
        &[&sql(account), &Column::i64(ids.iter().map(|id| sql(*id)))],
        |row| {
            let post = PostKey {
                post: from_sql(row.i64("post_id")?)?,
                instance: from_sql(row.i64("instance_id")?)?,
            };
            Ok((from_sql(row.i64("id")?)?, post, row.opt_text("shown")?))
        },
    )?;
    let posts: Vec<PostKey> = marks.iter().map(|(_, post, _)| *post).collect();
    let versions = timeline::shown_versions(tx, &posts, Viewer::Account(account))?;
    let outdated = marks.into_iter().filter_map(|(id, post, stored)| {
        let shown = versions.get(&post.post).cloned();
        (shown != stored).then_some(OutdatedBookmark { id, stored, shown })
    });
    Ok(outdated.collect())
}

/// Gives the next USNs to those of an account's outdated bookmarks that nothing has renewed since they were read. Returns their
/// number. Must be written below the account's root. It reads no sources, so that other writes do not wait for that.
///
/// # Errors
/// [`StoreError::NoAccount`] if the account does not exist (any more); [`StoreError::Db`] if the database fails.
pub fn renew(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    outdated: &[OutdatedBookmark],
) -> Result<usize, StoreError> {
    let ids = Column::i64(outdated.iter().map(|bookmark| sql(bookmark.id)));
    let stored = tx.query(
        "select id, shown from marked_post
         where account_id = $1 and mark = 'bookmark' and id {in $2}",
        &[&sql(account), &ids],
        |row| Ok((row.i64("id")?, row.opt_text("shown")?)),
    )?;
    let stored: HashMap<i64, Option<String>> = stored.into_iter().collect();
    let changed: Vec<&OutdatedBookmark> = outdated
        .iter()
        .filter(|bookmark| stored.get(&sql(bookmark.id)) == Some(&bookmark.stored))
        .collect();
    if changed.is_empty() {
        return Ok(0);
    }
    let ids: Vec<i64> = changed.iter().map(|bookmark| sql(bookmark.id)).collect();
    AccountLibrary::load(tx, account)?.change_all(tx, &ids)?;
    tx.execute_many_later(
        "update marked_post set shown = r.shown from {rows as r(id, shown)}
         where account_id = $1 and mark = 'bookmark' and marked_post.id = r.id",
        &[&sql(account)],
        &[
            Column::i64(ids),
            Column::text(changed.iter().map(|bookmark| bookmark.shown.as_deref())),
        ],
    )?;
    Ok(changed.len())
}

/// The posts of all instances with the names of these posts.
fn copies(tx: &mut Tx<'_>, posts: &[PostKey]) -> Result<Vec<i64>, StoreError> {
    let all: Vec<i64> = instance::all(tx)?.iter().map(|of| sql(of.id)).collect();
    if all.len() < 2 {
        return Ok(Vec::new());
    }
    let instances: HashSet<i64> = posts.iter().map(|post| sql(post.instance)).collect();
    let uris = tx.query(
        "select uri from post where id {in $1} and instance_id {in $2} and uri is not null",
        &[
            &Column::i64(posts.iter().map(|post| sql(post.post))),
            &Column::i64(instances),
        ],
        |row| row.text("uri"),
    )?;
    let mut names: Vec<UriKey> = uris.iter().filter_map(|uri| UriKey::new(uri)).collect();
    names.sort_unstable();
    names.dedup();
    let named = object_uri::posts_named_later(tx, &names, &all)?;
    let named = tx.rows(named)?.into_iter();
    Ok(named.map(|(_, named)| named.post_id).collect())
}

fn key(row: &Row<'_>) -> Result<BookmarkKey, DbError> {
    Ok(BookmarkKey {
        account: from_sql(row.i64("account_id")?)?,
        id: from_sql(row.i64("id")?)?,
    })
}
