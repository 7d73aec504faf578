use std::{sync::Arc, time::Duration};

use axum::http::HeaderMap;
use driftline_core::feed::ChangeKinds;
use driftline_store::{
    LocalAccountId, LocalId, SourceId, Tx,
    social::{
        list,
        notification::{self, NotificationFilter},
    },
    source,
    timeline::{Range, Viewer},
};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{
    channel::{Channel, Timeline},
    message::{Message, messages, one_line},
};
use crate::{
    App,
    auth::{
        RequestContext,
        caller::{Caller, authenticate},
        needs,
    },
    feed::{FeedEvent, FeedReader, Selection, Start},
    mastodon::{notifications::ungrouped as notifications, timelines::lists::is_the_operators},
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
    looks: Interval,
    checks: Interval,
}

/// What a follower waits for.
pub(super) enum Happening {
    /// A change is stored.
    Event(Arc<FeedEvent>),
    /// It is time to look for notifications.
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
        Ok(Self {
            context,
            caller,
            headers,
            reader,
            is_notified,
            channels,
            last_notification,
            looks: every(LOOK),
            checks: every(CHECK),
        })
    }

    /// Waits for the next happening. May be dropped at any time.
    pub(super) async fn wait(&mut self) -> Happening {
        let is_notified = self.is_notified
            && self.context.viewer.account().is_some()
            && self
                .channels
                .iter()
                .any(|channel| channel.has_notifications());
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
            _ = self.looks.tick(), if is_notified => Happening::Look,
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
                let found = notifications::after(&self.context, account, self.last_notification);
                let (payloads, last) = found.await.ok()?;
                self.last_notification = last;
                for payload in payloads {
                    let channels = self.channels.iter();
                    for channel in channels.filter(|channel| channel.has_notifications()) {
                        let message = Message {
                            event: "notification",
                            payload: one_line(&payload),
                            has_media: false,
                        };
                        all.push((*channel, message));
                    }
                }
            }
            Happening::Check => {
                let caller = authenticate(&self.headers, &self.context.app).await.ok()?;
                if caller.viewer() != self.context.viewer {
                    return None;
                }
            }
            Happening::End => return None,
        }
        Some(all)
    }

    /// As [`check`].
    pub(super) async fn check(&self, channel: Channel) -> ApiResult<()> {
        check(&self.context.app, channel, &self.caller).await
    }
}

/// Whether a caller may subscribe to a channel.
///
/// # Errors
/// Why not: without a token it is refused, and another account's list is as if it were not there.
pub(super) async fn check(app: &App, channel: Channel, caller: &Caller) -> ApiResult<()> {
    let viewer = caller.viewer();
    let is_there = match (channel.timeline, viewer) {
        (Timeline::Public | Timeline::Remote | Timeline::Local, _) => true,
        (Timeline::User | Timeline::Notifications, _) if viewer.account().is_some() => true,
        (Timeline::List(id), Viewer::Account(account)) => {
            caller.check::<needs::ReadLists>()?;
            let read = move |tx: &mut Tx<'_>| list::by_id(tx, account, id);
            app.store.read(read).await?.is_some()
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

/// How late a notification may come.
const LOOK: Duration = Duration::from_secs(1);
/// How long a stream may outlive its token.
const CHECK: Duration = Duration::from_secs(5);
