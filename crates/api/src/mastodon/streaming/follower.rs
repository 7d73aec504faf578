use std::{sync::Arc, time::Duration};

use axum::http::HeaderMap;
use driftline_core::feed::ChangeKinds;
use driftline_store::{
    LocalAccountId, LocalId, SourceId, Tx,
    social::{
        list,
        list_entry::{self, ListEntry, ListKey},
        notification::{self, NotificationFilter},
    },
    source,
    timeline::{Range, Viewer},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{
    channel::{Channel, Timeline},
    message::{Message, entered_messages, messages, one_line},
};
use crate::{
    App,
    auth::{
        RequestContext,
        caller::{Caller, TOKEN_CHECK, authenticate, is_still_of},
        needs,
    },
    feed::{FeedEvent, FeedReader, Selection, Start},
    mastodon::{
        notifications::ungrouped as notifications,
        timelines::{list_timeline::check_readable, lists::is_the_operators},
        view::View,
    },
    transport::{ApiError, ApiResult},
};

/// A client of streams: what it subscribes to, and what it was notified of.
pub(super) struct Follower {
    context: RequestContext,
    caller: Caller,
    /// With the token, which may be revoked meanwhile.
    headers: HeaderMap,
    reader: FeedReader,
    pub(super) channels: Vec<Channel>,
    /// Whether the token lets it read notifications.
    is_notified: bool,
    /// The last notification that there was.
    last_notification: LocalId,
    /// The last entry of the account's lists that was read.
    last_entry: LocalId,
    looks: Interval,
    checks: Interval,
}

/// What a follower waits for.
pub(super) enum Happening {
    /// A change is stored.
    Event(Arc<FeedEvent>),
    /// It is time to look for notifications, and for posts that edits have brought into lists.
    Look,
    /// It is time to ask whether the token still holds.
    Check,
    /// There is nothing more.
    End,
}

impl Follower {
    /// Follows from now on.
    pub(super) async fn new(
        context: RequestContext,
        headers: HeaderMap,
        channels: Vec<Channel>,
    ) -> ApiResult<Self> {
        let caller = authenticate(&headers, &context.app).await?;
        // Every change that the viewer may see and that is not history.
        let selection = Selection {
            viewer: context.viewer,
            sources: Vec::new(),
            kinds: ChangeKinds::ALL,
            history: false,
            tombstones: false,
        };
        let reader = context.app.feed.follow(selection, Start::Now).await?;
        let last_notification = match context.viewer.account() {
            Some(account) => last_notification(&context, account).await?,
            None => LocalId::new(0),
        };
        let is_notified = caller.check::<needs::ReadNotifications>().is_ok();
        let mut follower = Self {
            context,
            caller,
            headers,
            reader,
            is_notified,
            channels: Vec::new(),
            last_notification,
            last_entry: LocalId::new(0),
            looks: every(LOOK),
            checks: every(TOKEN_CHECK),
        };
        for channel in channels {
            follower.begin(channel).await?;
            follower.channels.push(channel);
        }
        Ok(follower)
    }

    /// Waits for the next happening. May be dropped at any time.
    pub(super) async fn wait(&mut self) -> Happening {
        let looks = self.context.viewer.account().is_some()
            && self.channels.iter().any(|channel| {
                channel.is_list() || self.is_notified && channel.has_notifications()
            });
        tokio::select! {
            next = self.reader.next() => match next {
                Ok(Some(event)) => Happening::Event(event),
                Ok(None) => Happening::End,
                Err(error) => {
                    if !self.context.app.store_fault.takes(&error) {
                        tracing::warn!(%error, "a stream ends: the store cannot be read");
                    }
                    Happening::End
                }
            },
            _ = self.looks.tick(), if looks => Happening::Look,
            _ = self.checks.tick() => Happening::Check,
        }
    }

    /// The messages of a happening, with their channels; `None` if it ends the stream.
    pub(super) async fn messages(
        &mut self,
        happening: Happening,
    ) -> Option<Vec<(Channel, Message)>> {
        let mut all = Vec::new();
        match happening {
            Happening::Event(event) => {
                for channel in &self.channels {
                    // It is logged; the client comes back.
                    let found = messages(&self.context, *channel, &event).await.ok()?;
                    all.extend(found.into_iter().map(|message| (*channel, message)));
                }
            }
            Happening::Look => {
                let account = self.context.viewer.account()?;
                all.extend(self.notifications(account).await.ok()?);
                all.extend(self.entered(account).await.ok()?);
            }
            Happening::Check => {
                let RequestContext { viewer, app, .. } = &self.context;
                if !is_still_of(*viewer, &self.headers, app).await {
                    return None;
                }
            }
            Happening::End => return None,
        }
        Some(all)
    }

    /// The notifications since the last look.
    async fn notifications(
        &mut self,
        account: LocalAccountId,
    ) -> ApiResult<Vec<(Channel, Message)>> {
        let channels = self.channels.iter().copied();
        let channels: Vec<Channel> = channels
            .filter(|channel| channel.has_notifications())
            .collect();
        if channels.is_empty() || !self.is_notified {
            return Ok(Vec::new());
        }
        let found = notifications::after(&self.context, account, self.last_notification);
        let (payloads, last) = found.await?;
        self.last_notification = last;
        let messages = payloads.iter().flat_map(|payload| {
            let message = Message {
                event: "notification",
                payload: one_line(payload),
                has_media: false,
            };
            channels
                .iter()
                .map(move |channel| (*channel, message.clone()))
        });
        Ok(messages.collect())
    }

    /// The posts that edits have brought into lists since the last look.
    async fn entered(&mut self, account: LocalAccountId) -> ApiResult<Vec<(Channel, Message)>> {
        let channels = self.channels.iter().copied();
        let channels: Vec<Channel> = channels.filter(|channel| channel.is_list()).collect();
        if channels.is_empty() {
            return Ok(Vec::new());
        }
        let (view, now_ms) = (View::new(&self.context), self.context.now_ms());
        let last = self.last_entry;
        let read = move |tx: &mut Tx<'_>| {
            let entries = list_entry::above(tx, account, last, MAX_ENTERED)?;
            let last = entries.last().map_or(last, |(_, newest)| newest.id);
            let mut all = Vec::new();
            for channel in &channels {
                let Timeline::List(list) = channel.timeline else {
                    continue;
                };
                let of_list = entries.iter().filter(|(key, _)| key.list == list);
                let entries: Vec<ListEntry> = of_list.map(|(_, entry)| *entry).collect();
                let key = ListKey { account, list };
                let messages = entered_messages(tx, &view, key, &entries, now_ms)?;
                all.extend(messages.into_iter().map(|message| (*channel, message)));
            }
            Ok((all, last))
        };
        let (messages, last) = self.context.read(read).await?;
        self.last_entry = last;
        Ok(messages)
    }

    /// Subscribes to a channel, if the caller may do so: see [`check`].
    ///
    /// # Errors
    /// Why not.
    pub(super) async fn subscribe(&mut self, channel: Channel) -> ApiResult<()> {
        check(&self.context.app, channel, &self.caller).await?;
        self.begin(channel).await?;
        self.channels.push(channel);
        Ok(())
    }

    /// Remembers which entries the account's lists have when the first list is followed: those are in
    /// the timelines.
    async fn begin(&mut self, channel: Channel) -> ApiResult<()> {
        let is_first = !self.channels.iter().any(|channel| channel.is_list());
        if let Some(account) = self.context.viewer.account()
            && channel.is_list()
            && is_first
        {
            let newest = self.context.read(move |tx| list_entry::newest(tx, account));
            self.last_entry = newest.await?;
        }
        Ok(())
    }
}

/// Whether a caller may subscribe to a channel.
///
/// # Errors
/// Why not: without a token it is refused, and another account's list is as if it were not there. A list whose
/// predicate cannot be read is refused with the reason.
pub(super) async fn check(app: &App, channel: Channel, caller: &Caller) -> ApiResult<()> {
    let viewer = caller.viewer();
    let is_there = match (channel.timeline, viewer) {
        (Timeline::Public | Timeline::Remote | Timeline::Local, _) => true,
        (Timeline::User | Timeline::Notifications, _) if viewer.account().is_some() => true,
        (Timeline::List(id), Viewer::Account(account)) => {
            caller.check::<needs::ReadLists>()?;
            let read = move |tx: &mut Tx<'_>| list::by_id(tx, account, id);
            let list = app.store.read(read).await?;
            list.as_ref().map(check_readable).transpose()?;
            list.is_some()
        }
        (Timeline::List(id), Viewer::Operator) => {
            let read = move |tx: &mut Tx<'_>| source::by_id(tx, SourceId::new(id.raw()));
            let found = app.store.read(read).await?;
            found.is_some_and(|source| is_the_operators(&source))
        }
        _ => return Err(ApiError::Unauthorized { presented: false }),
    };
    is_there.then_some(()).ok_or(ApiError::NotFound)
}

async fn last_notification(
    context: &RequestContext,
    account: LocalAccountId,
) -> ApiResult<LocalId> {
    let found = context.read(move |tx| {
        let range = Range {
            limit: 1,
            ..Range::default()
        };
        notification::page(tx, account, &NotificationFilter::default(), &range)
    });
    Ok(found.await?.first().map_or(LocalId::new(0), |last| last.id))
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// The number of entries of lists that one look reads.
const MAX_ENTERED: u16 = 40;
/// How late a notification may come.
const LOOK: Duration = Duration::from_secs(1);
