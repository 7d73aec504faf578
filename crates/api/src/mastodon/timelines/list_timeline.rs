//! The timelines of lists of accounts.

use std::collections::HashSet;

use axum::response::Response;
use driftline_core::social::RepliesPolicy;
use driftline_mastodon::{ReplyTo, has_media, reply_to};
use driftline_store::{
    InstanceId, LocalAccountId, LocalId, SourceKey, StoreError, Tx,
    social::{
        list::{self, List},
        list_member, relation,
    },
    timeline::{self, HomeRule, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::unwanted::Unwanted;
use crate::{
    App,
    mastodon::{page::Page, page_query::PageQuery},
    transport::{Address, ApiError},
};

/// `GET /api/v1/timelines/list/{id}` of an account's own list: what its accounts wrote, as far as the list's
/// owner may read it.
pub(crate) async fn page(
    app: &App,
    account: LocalAccountId,
    id: u64,
    address: &Address,
    query: &PageQuery,
) -> Result<Response, ApiError> {
    let (only_media, now_ms) = (query.only_media, app.people.now_ms());
    let read = move |tx: &mut Tx<'_>, range: &Range| {
        stretch(tx, account, LocalId::new(id), range, only_media, now_ms)
    };
    let page = Page::picked(app, query.range, Viewer::Account(account), read).await?;
    Ok(page.answer(address, &format!("/api/v1/timelines/list/{id}"), query))
}

/// `None` if the account has no such list.
pub(crate) fn stretch(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    range: &Range,
    only_media: bool,
    now_ms: i64,
) -> Result<Option<Stretch>, StoreError> {
    let Some(list) = list::by_id(tx, account, id)? else {
        return Ok(None);
    };
    let members = list_member::of(tx, account, id)?;
    let relations = relation::to(tx, account, &members)?;
    let posts_only = relations.iter().filter(|row| !row.show_boosts);
    let boosters = posts_only.map(|row| row.other).collect();
    let viewer = Viewer::Account(account);
    let unwanted = Unwanted::ask(tx, viewer, now_ms)?;
    let readable = ReadableSources::load(tx, viewer)?;
    let unwanted = unwanted.read(tx)?.and_boosts_of(boosters);
    let replies = ShownReplies::load(tx, account, &list, &readable.keys())?;
    let rule = HomeRule {
        sources: Vec::new(),
        authors: members,
    };
    let picks = |post: &TimelinePost| {
        !unwanted.has(post) && (!only_media || has_media(&post.raw)) && replies.has(post)
    };
    timeline::home(tx, range, &readable, &rule, Some(&picks)).map(Some)
}

/// The accounts to whom replies are shown, by their IDs at the instances through which posts were seen.
struct ShownReplies(HashSet<(InstanceId, String)>);

impl ShownReplies {
    fn load(
        tx: &mut Tx<'_>,
        account: LocalAccountId,
        list: &List,
        sources: &[SourceKey],
    ) -> Result<Self, StoreError> {
        let accounts = match list.settings.replies_policy {
            RepliesPolicy::None => Vec::new(),
            RepliesPolicy::List => list_member::of(tx, account, list.id)?,
            RepliesPolicy::Followed => {
                let followed = relation::followed(tx, account)?;
                followed.into_iter().map(|row| row.other).collect()
            }
        };
        let ids = list_member::upstream_ids(tx, &accounts, sources)?;
        Ok(Self(ids.into_iter().collect()))
    }

    /// Whether a post is no reply, or one that is shown.
    fn has(&self, post: &TimelinePost) -> bool {
        match reply_to(&post.raw) {
            None => true,
            Some(ReplyTo::Unknown) => false,
            Some(ReplyTo::Account(id)) => self.0.contains(&(post.instance, id)),
        }
    }
}
