//! Clients as people write them.

use std::collections::BTreeSet;

use driftline_core::{api::Api, upstream_id::UpstreamId};
use driftline_net::testing::http_client;
use driftline_runtime::now_ms;
use driftline_sim::baseline::Poller;
use driftline_store::export;
use driftline_upstream::{Address, Credential, Timeline, Upstream};

use crate::running::Driftline;

pub(crate) struct Client {
    api: Upstream,
    timeline: Timeline,
}

impl Client {
    pub(crate) fn new(url: &str, timeline: Timeline, token: &str) -> Self {
        let address = Address::parse(url).unwrap();
        let token = match timeline {
            // A server refuses a token that is not its own, for what it shows to anyone, too.
            Timeline::Public => Credential::None,
            _ => Credential::Bearer(token.to_owned().into()),
        };
        Self {
            api: Upstream::new(Api::Mastodon, http_client(), address, token).unwrap(),
            timeline,
        }
    }

    pub(crate) async fn poll(&self, poller: &mut Poller) {
        let mut request = Some(poller.begin(now_ms()));
        while let Some(page) = request {
            match self.api.page(&self.timeline, &page).await {
                Ok(page) => {
                    let ids: Vec<UpstreamId> =
                        page.listed.into_iter().map(|item| item.position).collect();
                    request = poller.take(&ids);
                }
                Err(failure) => {
                    poller.fail();
                    panic!("{failure}");
                }
            }
        }
    }
}

/// The names across servers of all posts that a Driftline mirrors.
pub(crate) async fn uris(driftline: &Driftline) -> BTreeSet<String> {
    let source = driftline.source().await.key();
    let rows = driftline
        .store()
        .read(move |tx| export::rows(tx, source, 0, 100_000))
        .await
        .unwrap();
    rows.into_iter().map(|row| row.post.uri.unwrap()).collect()
}
