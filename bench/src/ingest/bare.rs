//! What the bare drivers share: the least parsing that the rows need.

use std::{
    hash::{DefaultHasher, Hasher},
    time::Instant,
};

use driftline_store::{Store, Target};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Speed, ours};
use crate::{failure::Failure, pages::RawPage};

/// Commits all pages, and how long that took.
pub(super) fn ingest(
    pages: &[RawPage],
    mut commit: impl FnMut(&[Row<'_>], i64) -> Result<(), Failure>,
) -> Result<Speed, Failure> {
    let start = Instant::now();
    for page in pages {
        commit(&rows(page)?, page.at_ms)?;
    }
    Ok(Speed::since(start, pages))
}

/// Makes a store with the source that the posts belong to.
pub(super) fn make_store(target: Target) -> Result<(), Failure> {
    let store = Store::open(target)?;
    ours::add_source(&store)?;
    store.close_blocking();
    Ok(())
}

/// A post's columns.
pub(super) struct Row<'j> {
    pub(super) post: Fields<'j>,
    /// The ID as it sorts.
    pub(super) position: String,
    pub(super) created_at_ms: Option<i64>,
    pub(super) edited_at_ms: Option<i64>,
    pub(super) boost_of: Option<&'j str>,
    pub(super) content_hash: i64,
    /// Replies, boosts, favourites.
    pub(super) counts: [i64; 3],
    pub(super) account: Account<'j>,
    pub(super) raw: &'j str,
}

/// An author's columns.
#[derive(Deserialize)]
pub(super) struct Account<'j> {
    pub(super) id: &'j str,
    pub(super) acct: &'j str,
    pub(super) display_name: &'j str,
    pub(super) url: Option<&'j str>,
}

#[derive(Deserialize)]
pub(super) struct Fields<'j> {
    pub(super) id: &'j str,
    pub(super) uri: Option<&'j str>,
    pub(super) url: Option<&'j str>,
    created_at: Option<&'j str>,
    edited_at: Option<&'j str>,
    pub(super) visibility: &'j str,
    replies_count: i64,
    reblogs_count: i64,
    favourites_count: i64,
    #[serde(borrow)]
    content: &'j RawValue,
    #[serde(borrow)]
    pub(super) account: &'j RawValue,
    reblog: Option<Reblog<'j>>,
}

#[derive(Deserialize)]
struct Reblog<'j> {
    id: &'j str,
}

/// The rows of a page, the oldest first.
fn rows(page: &RawPage) -> Result<Vec<Row<'_>>, Failure> {
    let posts: Vec<&RawValue> = serde_json::from_slice(&page.body)?;
    posts.into_iter().rev().map(row).collect()
}

fn row(post: &RawValue) -> Result<Row<'_>, Failure> {
    let fields: Fields<'_> = serde_json::from_str(post.get())?;
    let unix_ms = |text: Option<&str>| -> Result<Option<i64>, Failure> {
        let time = text.map(str::parse::<Timestamp>).transpose()?;
        Ok(time.map(|time| time.as_millisecond()))
    };
    let mut hasher = DefaultHasher::new();
    hasher.write(fields.content.get().as_bytes());
    let [replies, boosts] = [fields.replies_count, fields.reblogs_count];
    Ok(Row {
        position: format!("{:03}{}", fields.id.len(), fields.id),
        created_at_ms: unix_ms(fields.created_at)?,
        edited_at_ms: unix_ms(fields.edited_at)?,
        boost_of: fields.reblog.as_ref().map(|reblog| reblog.id),
        content_hash: hasher.finish().cast_signed(),
        counts: [replies, boosts, fields.favourites_count],
        account: serde_json::from_str(fields.account.get())?,
        raw: post.get(),
        post: fields,
    })
}

/// A machine's JSON as a source keeps it; a bare loop has no state of its own to write.
pub(super) fn machine_json() -> Result<String, Failure> {
    Ok(serde_json::to_string(
        &driftline_core::timeline::Machine::default(),
    )?)
}

/// After how long new posts are due.
pub(super) const EVERY_MS: i64 = 180_000;
