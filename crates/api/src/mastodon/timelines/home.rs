//! Home timelines.

use std::collections::HashSet;

use driftline_store::{
    AccountId, LocalAccountId, StoreError, Tx,
    social::{home_source, list_member, relation},
    timeline::{self, HomeRule, Range, Stretch},
    viewer::ReadableSources,
};

use crate::{
    auth::{LoggedIn, needs},
    mastodon::{
        entities::Status,
        page::Page,
        page_query::{MediaParams, PageParams, PageQuery},
        view::View,
    },
    transport::ApiResult,
};

/// What those write whom the account follows, and what the sources show that it chose.
#[utoipa::path(
    get, path = "/api/v1/timelines/home", tag = "timelines", params(PageParams, MediaParams),
    security(("account" = ["read:statuses"])),
    responses((status = 200, body = [Status], headers(("Link" = Option<String>, description = "The neighbouring pages")))),
)]
pub(crate) async fn home(caller: LoggedIn<needs::ReadStatuses>, query: PageQuery) -> ApiResult {
    let (account, view) = (caller.account.id, View::new(&caller));
    let only_media = query.only_media;
    let read = move |tx: &mut Tx<'_>, range: &Range| {
        stretch(tx, account, range, only_media, &view).map(Some)
    };
    let page = Page::picked(&caller, query.range, read).await?;
    Ok(page.answer(&query))
}

/// A part of an account's home timeline, without what it does not want to see.
pub(crate) fn stretch(
    tx: &mut Tx<'_>,
    account: LocalAccountId,
    range: &Range,
    only_media: bool,
    view: &View,
) -> Result<Stretch, StoreError> {
    let followed = relation::followed_later(tx, account)?;
    let hidden = view.hidden(tx)?;
    let exclusive = list_member::exclusive_later(tx, account)?;
    let sources = home_source::all_later(tx, account)?;
    let readable = ReadableSources::load(tx, view.viewer)?;
    let followed = tx.rows(followed)?;
    let posts_only = followed.iter().filter(|row| !row.show_boosts);
    let boosters = posts_only.map(|row| row.other).collect();
    let hidden = hidden.read(tx)?.and_boosts_of(boosters);
    let hidden = hidden.and_without_media(only_media);
    let exclusive: HashSet<AccountId> = tx.rows(exclusive)?.into_iter().collect();
    let rule = HomeRule {
        sources: tx.rows(sources)?,
        authors: followed
            .iter()
            .map(|row| row.other)
            .filter(|author| !exclusive.contains(author))
            .collect(),
    };
    timeline::home(tx, range, &readable, &rule, hidden.picks())
}
