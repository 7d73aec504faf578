//! What the bare drivers share: the least parsing that the rows need.

use std::{
    hash::{DefaultHasher, Hasher},
    time::Instant,
};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Speed, new_posts};
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
    Ok(Speed::since(start, new_posts(pages)))
}

/// A post's columns.
pub(super) struct Row<'j> {
    pub(super) upstream_id: &'j str,
    /// The ID as it sorts.
    pub(super) position: String,
    pub(super) uri: Option<&'j str>,
    pub(super) url: Option<&'j str>,
    pub(super) created_at_ms: Option<i64>,
    pub(super) edited_at_ms: Option<i64>,
    pub(super) visibility: &'j str,
    pub(super) boost_of: Option<&'j str>,
    pub(super) content_hash: i64,
    pub(super) replies: i64,
    pub(super) boosts: i64,
    pub(super) favourites: i64,
    pub(super) account: Account<'j>,
    pub(super) account_raw: &'j str,
    pub(super) raw: &'j str,
}

impl Row<'_> {
    /// What growth is measured by.
    pub(super) fn total(&self) -> i64 {
        self.replies + self.boosts + self.favourites
    }
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
struct Fields<'j> {
    id: &'j str,
    uri: Option<&'j str>,
    url: Option<&'j str>,
    created_at: Option<&'j str>,
    edited_at: Option<&'j str>,
    visibility: &'j str,
    replies_count: i64,
    reblogs_count: i64,
    favourites_count: i64,
    #[serde(borrow)]
    content: &'j RawValue,
    #[serde(borrow)]
    account: &'j RawValue,
    reblog: Option<Reblog<'j>>,
}

#[derive(Deserialize)]
struct Reblog<'j> {
    id: &'j str,
}

/// The rows of a page, the oldest first.
pub(super) fn rows(page: &RawPage) -> Result<Vec<Row<'_>>, Failure> {
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
    Ok(Row {
        upstream_id: fields.id,
        position: format!("{:03}{}", fields.id.len(), fields.id),
        uri: fields.uri,
        url: fields.url,
        created_at_ms: unix_ms(fields.created_at)?,
        edited_at_ms: unix_ms(fields.edited_at)?,
        visibility: fields.visibility,
        boost_of: fields.reblog.map(|reblog| reblog.id),
        content_hash: hasher.finish().cast_signed(),
        replies: fields.replies_count,
        boosts: fields.reblogs_count,
        favourites: fields.favourites_count,
        account: serde_json::from_str(fields.account.get())?,
        account_raw: fields.account.get(),
        raw: post.get(),
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
