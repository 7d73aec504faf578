use std::{sync::Arc, time::Duration};

use axum::http::HeaderMap;
use driftline_store::{
    LocalAccountId, LocalId, SourceId, StoreError, Tx,
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
    sse::everything,
};
use crate::{
    App,
    auth::{
        caller::{Caller, authenticate},
        needs,
    },
    feed::{FeedEvent, FeedReader, Start},
    mastodon::{notifications::ungrouped as notifications, timelines::lists::is_the_operators},
    transport::{Address, ApiError},
};

/// A client of streams: what it subscribes to, and what it was told.
pub(super) struct Follower {
    app: Arc<App>,
    caller: Caller,
    viewer: Viewer,
    /// With the token, which may be revoked meanwhile.
    headers: HeaderMap,
    address: Address,
    reader: FeedReader,
    pub(super) channels: Vec<Channel>,
    /// Whether the token lets it read notifications.
    is_notified: bool,
    /// The last notification that there was.
    notified: LocalId,
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
        app: Arc<App>,
        viewer: Viewer,
        headers: HeaderMap,
        address: Address,
        channels: Vec<Channel>,
    ) -> Result<Self, ApiError> {
        let caller = authenticate(&headers, &app).await?;
        let reader = app.feed.follow(everything(viewer), Start::Now).await?;
        let notified = match viewer {
            Viewer::Account(account) => last_notification(&app, account).await?,
            Viewer::Anonymous | Viewer::Operator => LocalId::new(0),
        };
        let is_notified = caller.check::<needs::ReadNotifications>().is_ok();
        Ok(Self {
            app,
            caller,
            viewer,
            headers,
            address,
            reader,
            is_notified,
            channels,
            notified,
            looks: every(LOOK),
            checks: every(CHECK),
        })
    }

    /// Waits for the next happening. May be dropped at any time.
    pub(super) async fn wait(&mut self) -> Happening {
        let is_notified = self.is_notified
            && self.viewer.account().is_some()
            && self.channels.iter().any(|of| of.tells_notifications());
        tokio::select! {
            next = self.reader.next() => match next {
                Ok(Some(event)) => Happening::Event(event),
                Ok(None) => Happening::End,
                Err(error) => {
                    if !self.app.store_fault.takes(&error) {
                        tracing::warn!(%error, "a stream ends: the store cannot be read");
                    }
                    Happening::End
                }
            },
            _ = self.looks.tick(), if is_notified => Happening::Look,
            _ = self.checks.tick() => Happening::Check,
        }
    }

    /// What a happening tells, with the channel in which; `None` if it ends the stream.
    pub(super) async fn tell(&mut self, happening: Happening) -> Option<Vec<(Channel, Message)>> {
        let mut told = Vec::new();
        match happening {
            Happening::Event(event) => {
                for channel in &self.channels {
                    let messages = messages(&self.app, self.viewer, *channel, &event).await;
                    // It is logged; the client comes back.
                    told.extend(
                        messages
                            .ok()?
                            .into_iter()
                            .map(|message| (*channel, message)),
                    );
                }
            }
            Happening::Look => {
                let account = self.viewer.account()?;
                let found = notifications::after(&self.app, account, self.notified, &self.address);
                let (payloads, last) = found.await.ok()?;
                self.notified = last;
                for payload in payloads {
                    for channel in self.channels.iter().filter(|of| of.tells_notifications()) {
                        let message = Message {
                            event: "notification",
                            payload: one_line(&payload),
                            has_media: false,
                        };
                        told.push((*channel, message));
                    }
                }
            }
            Happening::Check => {
                let caller = authenticate(&self.headers, &self.app).await.ok()?;
                if caller.viewer() != self.viewer {
                    return None;
                }
            }
            Happening::End => return None,
        }
        Some(told)
    }

    /// As [`check`].
    pub(super) async fn check(&self, channel: Channel) -> Result<(), ApiError> {
        check(&self.app, channel, &self.caller).await
    }
}

/// Whether a caller may subscribe to a channel.
///
/// # Errors
/// Why not: without a token it is refused, and another account's list is as if it were not there.
pub(super) async fn check(app: &App, channel: Channel, caller: &Caller) -> Result<(), ApiError> {
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

async fn last_notification(app: &App, account: LocalAccountId) -> Result<LocalId, StoreError> {
    let read = move |tx: &mut Tx<'_>| {
        let range = Range {
            limit: 1,
            ..Range::default()
        };
        notification::page(tx, account, &NotificationFilter::default(), &range)
    };
    let found = app.store.read(read).await?;
    Ok(found.first().map_or(LocalId::new(0), |last| last.id))
}

fn every(period: Duration) -> Interval {
    let mut interval = interval_at(Instant::now() + period, period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

/// How late a notification may be told.
const LOOK: Duration = Duration::from_secs(1);
/// How long a stream may outlive its token.
const CHECK: Duration = Duration::from_secs(5);
