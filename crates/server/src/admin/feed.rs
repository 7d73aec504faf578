//! The feed of changes, page by page.

use std::time::Duration;

use driftline_api::feed::{FeedError, Selection, Start};
use driftline_runtime::{CommandError, now_ms};
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::{FeedLine, FeedPage, Host, ReadFeed, find::prepared};

/// What comes after a position, once there is anything.
pub(super) async fn read(host: &Host, request: ReadFeed) -> Result<FeedPage, CommandError> {
    let start = match &request.after {
        None => Start::Now,
        Some(after) => Start::After(after.parse().map_err(CommandError::usage)?),
    };
    let search = match &request.matching {
        Some(query) => Some(prepared(host, query, None).await?),
        None => None,
    };
    let selection = Selection {
        viewer: host.viewer,
        sources: request.sources,
        kinds: request.events,
        history: request.history,
        tombstones: request.tombstones,
    };
    let followed = host.feed.follow(selection, start.clone()).await;
    let mut reader = followed.map_err(|error| match error {
        FeedError::Store(error) => error.into(),
        FeedError::Full => CommandError::failed(error),
        refused => CommandError::usage(refused),
    })?;
    let (mut events, mut compared) = (Vec::new(), Vec::new());
    if start != Start::Now {
        let wait = Duration::from_millis(request.wait_ms).min(MAX_WAIT);
        let mut next = reader.stored().await?;
        if next.is_none()
            && !wait.is_zero()
            && let Ok(waited) = timeout(wait, reader.next()).await
        {
            next = waited?;
        }
        while let Some(event) = next {
            events.push(FeedLine {
                position: reader.position().to_string(),
                event: event.change.kind,
                source: event.source_name.to_string(),
                is_match: true,
                data: RawValue::from_string(event.json().to_owned())
                    .map_err(CommandError::failed)?,
            });
            compared.push(event);
            // What is there already comes along.
            next = match events.len() < request.limit as usize {
                true => reader.stored().await?,
                false => None,
            };
        }
    }
    if let Some(search) = search {
        let viewer = host.viewer;
        let selects = host
            .store
            .read(move |tx| search.selects(tx, &compared, viewer, now_ms()));
        for (line, is_match) in events.iter_mut().zip(selects.await?) {
            line.is_match = is_match;
        }
    }
    Ok(FeedPage {
        events,
        position: reader.position().to_string(),
    })
}

const MAX_WAIT: Duration = Duration::from_secs(30);
