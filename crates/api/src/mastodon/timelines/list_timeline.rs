//! The timelines of lists.

use std::collections::HashSet;

use driftline_core::{
    predicate::{Attachment, Condition, Connective, Predicate, Term, Tree},
    social::RepliesPolicy,
};
use driftline_mastodon::{ReplyTo, has_media, reply_to};
use driftline_store::{
    InstanceId, LocalAccountId, LocalId, SourceId, SourceKey, StoreError, Tx,
    social::{
        list::{self, List},
        list_entry::ListKey,
        list_member, relation,
    },
    source,
    timeline::{self, HomeRule, Range, Stretch, TimelinePost, Viewer},
    viewer::ReadableSources,
};

use super::lists::is_the_operators;
use crate::{
    auth::{OperatorOrAccount, RequestContext, needs},
    description::ids::ListId,
    find::{SavedTimeline, SearchError},
    mastodon::{
        entities::Status,
        page::Page,
        page_query::{MediaParams, PageParams, PageQuery},
        view::View,
    },
    transport::{Address, ApiError, ApiResult, PathId, Problem},
};

/// The posts of a list: of its accounts, those that its predicate selects, or those of a source.
#[utoipa::path(
    get, path = "/api/v1/timelines/list/{id}", tag = "timelines", params(("id" = ListId, Path), PageParams, MediaParams),
    security(("operator" = []), ("account" = ["read:lists"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages"))), (status = 400, body = Problem), (status = 404, body = Problem), (status = 422, body = Problem, description = "The predicate of the list cannot be read")),
)]
pub(crate) async fn list(
    reader: OperatorOrAccount<needs::ReadLists>,
    PathId(id): PathId,
    query: PageQuery,
) -> ApiResult {
    let (range, only_media, view) = (query.range, query.only_media, View::new(&reader));
    // Sources are the operator's lists, and an account has its own.
    let page = if let Some(account) = reader.viewer.account() {
        let list = reader.read(move |tx| list::by_id(tx, account, LocalId::new(id)));
        let list = list.await?.ok_or(ApiError::NotFound)?;
        check_readable(&list)?;
        if let Some(predicate) = list.settings.predicate {
            let key = ListKey {
                account,
                list: LocalId::new(id),
            };
            let page = saved(&reader, key, predicate, range, only_media).await?;
            return Ok(page.answer(&query));
        }
        let read = move |tx: &mut Tx<'_>, range: &Range| {
            stretch(tx, account, LocalId::new(id), range, only_media, &view)
        };
        Page::picked(&reader, range, read).await?
    } else if only_media {
        let read = move |tx: &mut Tx<'_>, range: &Range| {
            let Some(key) = readable_source(tx, id)? else {
                return Ok(None);
            };
            let picks = |post: &TimelinePost| has_media(&post.raw);
            timeline::source_picked(tx, key, range, Viewer::Operator, &picks).map(Some)
        };
        Page::picked(&reader, range, read).await?
    } else {
        let page = reader.read(move |tx| {
            let Some(source) = readable_source(tx, id)? else {
                return Ok(None);
            };
            let posts = timeline::source(tx, source, &range, Viewer::Operator)?;
            Page::write(tx, &posts, &view).map(Some)
        });
        page.await?.ok_or(ApiError::NotFound)?
    };
    Ok(page.answer(&query))
}

/// Checks that the predicate of a list can be read. Otherwise the list has no posts.
///
/// # Errors
/// [`ApiError::Unprocessable`] with the reason if it cannot be read.
pub(crate) fn check_readable(list: &List) -> ApiResult<()> {
    match &list.unreadable {
        Some(reason) => Err(ApiError::Unprocessable(format!(
            "the predicate of this list cannot be read: {reason}"
        ))),
        None => Ok(()),
    }
}

/// The posts that a list's predicate selects.
async fn saved(
    reader: &RequestContext,
    list: ListKey,
    predicate: Predicate,
    range: Range,
    only_media: bool,
) -> ApiResult<Page> {
    let timeline = saved_timeline(list, predicate, only_media, &reader.address);
    let search = timeline.map_err(ApiError::invalid)?.into_search();
    let posts = search.posts(reader, range).await?;
    Page::of_posts(reader, posts).await
}

fn saved_timeline(
    list: ListKey,
    predicate: Predicate,
    only_media: bool,
    address: &Address,
) -> Result<SavedTimeline, SearchError> {
    if !only_media {
        return SavedTimeline::new(list, predicate, address);
    }
    let media = Tree::atom(Term::Condition(Condition::Has(Attachment::Media)));
    let tree = Connective::And.join(media, predicate.tree().clone());
    SavedTimeline::new(list, Predicate::new(tree, predicate.folding())?, address)
}

fn readable_source(tx: &mut Tx<'_>, id: u64) -> Result<Option<SourceKey>, StoreError> {
    let source = source::by_id(tx, SourceId::new(id))?.filter(is_the_operators);
    Ok(source.map(|source| source.key()))
}

/// A part of an account's list of accounts: what these wrote, as far as the list's owner may read it.
/// `None` if the account has no such list.
pub(crate) fn stretch(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    id: LocalId,
    range: &Range,
    only_media: bool,
    view: &View,
) -> Result<Option<Stretch>, StoreError> {
    let Some(list) = list::by_id(tx, account, id)? else {
        return Ok(None);
    };
    let members = list_member::of(tx, account, id)?;
    let relations = relation::to(tx, account, &members)?;
    let posts_only = relations.iter().filter(|row| !row.show_boosts);
    let boosters = posts_only.map(|row| row.other).collect();
    let hidden = view.hidden(tx)?;
    let readable = ReadableSources::load(tx, view.viewer)?;
    let hidden = hidden.read(tx)?.and_boosts_of(boosters);
    let hidden = hidden.and_without_media(only_media);
    let replies = ShownReplies::load(tx, account, &list, &readable.keys())?;
    let rule = HomeRule {
        sources: Vec::new(),
        authors: members,
    };
    let picks = |post: &TimelinePost| !hidden.has(post) && replies.has(post);
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
