//! Posts that are fetched by their addresses.

use driftline_core::{
    answer::{Failure, FailureKind, LookUp},
    names::audience::Audience,
};
use driftline_store::Owner;
use driftline_upstream::{Address, Upstream};
use tokio::time::Instant;

use super::{
    Answered, Api, Duration, Fetched, RECENT_MS, Source, StoreError, ThreadRequest, Threads,
    Viewer, Wanted, connected, serves, source,
};

impl Threads {
    /// Fetches the post of an address for a viewer, unless that was tried a short while ago; waits for it for at most
    /// `wait`. A source of the viewer's own is asked first, with its token, then the server of the address, if a
    /// source that is for the world is there. Nothing is asked for whoever has no account.
    pub async fn fetch_post_at(&self, viewer: Viewer, address: &str, wait: Duration) -> Fetched {
        match self.requests_of(viewer, address).await {
            Ok(requests) => self.wait_for_first(viewer, requests, wait).await,
            Err(error) => {
                tracing::warn!(%error, "a post was not fetched: the store failed");
                Fetched::NotNow
            }
        }
    }

    /// Sends requests in their order until one finds something; waits for all of them for at most `wait`.
    pub(super) async fn wait_for_first(
        &self,
        viewer: Viewer,
        requests: Vec<ThreadRequest>,
        wait: Duration,
    ) -> Fetched {
        let Some(client) = viewer.owner() else {
            return Fetched::Nothing;
        };
        let end = Instant::now() + wait;
        let mut fetched = Fetched::Nothing;
        for request in requests {
            let left = end.saturating_duration_since(Instant::now());
            fetched = self.wait_for(client, request, RECENT_MS, left).await;
            if matches!(fetched, Fetched::Stored(1..) | Fetched::Continues) {
                break;
            }
        }
        fetched
    }

    /// Whom to ask for an address, by what the viewer sees alone.
    async fn requests_of(
        &self,
        viewer: Viewer,
        address: &str,
    ) -> Result<Vec<ThreadRequest>, StoreError> {
        let (Some(owner), Some((server, id))) = (viewer.owner(), Address::of_post(address)) else {
            return Ok(Vec::new());
        };
        if address.len() > MAX_ADDRESS {
            return Ok(Vec::new());
        }
        let server = server.to_string();
        let address = || address.to_owned();
        let searched = Wanted::Search(address());
        let looked_up = id.map(|id| Wanted::LookUp(address(), id));
        let is_there = |source: &Source| source.instance.origin == server;
        self.requests(viewer, owner, is_there, (searched, looked_up))
            .await
    }

    /// What to send for a viewer: the search with the token of an own source, best one that is where it is looked
    /// for, then the look-up there without one, if a source for the world is there.
    pub(super) async fn requests(
        &self,
        viewer: Viewer,
        owner: Owner,
        is_there: impl Fn(&Source) -> bool,
        (searched, looked_up): (Wanted, Option<Wanted>),
    ) -> Result<Vec<ThreadRequest>, StoreError> {
        let store = &self.shared.store;
        let mut sources = store.read(move |tx| source::readable(tx, viewer)).await?;
        sources.retain(|source| source.instance.api == Api::Mastodon);
        let own = sources
            .iter()
            .filter(|source| source.owner == owner && serves(source, source.instance.id));
        let own = own.min_by_key(|source| !is_there(source));
        let searched = own.map(|source| ThreadRequest {
            instance: source.instance.id,
            wanted: searched,
            source: Some(source.id),
            owner: None,
        });
        let mut public = sources.iter().filter(|source| {
            let is_operators = source.owner == Owner::Operator;
            is_operators && source.audience == Audience::Public && is_there(source)
        });
        let looked_up = public
            .next()
            .zip(looked_up)
            .map(|(source, wanted)| ThreadRequest {
                instance: source.instance.id,
                wanted,
                source: None,
                owner: None,
            });
        Ok(searched.into_iter().chain(looked_up).collect())
    }
}

impl Wanted {
    /// Asks the server of that origin for it: what is to be stored; `None` if the upstream has no answer.
    pub(super) async fn ask(
        &self,
        client: &Upstream,
        origin: &str,
    ) -> Result<Option<Answered>, Failure> {
        let (address, found) = match self {
            Wanted::Thread(post) => {
                let thread = client.thread(post).await?;
                return Ok(thread.map(|thread| Answered {
                    posts: connected(post, thread.ancestors, thread.descendants),
                    headers: thread.headers,
                    ..Answered::default()
                }));
            }
            Wanted::History(post) => {
                let (versions, headers) = client.history(post).await.map_err(of_one_address)?;
                return Ok(Some(Answered {
                    versions,
                    headers,
                    ..Answered::default()
                }));
            }
            Wanted::SearchAccount(name) | Wanted::LookUpAccount(name) => {
                let found = self.ask_for_account(client, name, origin).await;
                return found.map(Some).map_err(of_one_address);
            }
            Wanted::Search(address) => (address, client.search(address).await),
            Wanted::LookUp(address, id) => {
                let found = client.look_up(id).await;
                let posts = found.map(|(found, headers)| match found {
                    LookUp::Found(post) => (vec![*post], headers),
                    LookUp::Gone | LookUp::Hidden => (Vec::new(), headers),
                });
                (address, posts)
            }
        };
        let (mut posts, headers) = found.map_err(of_one_address)?;
        posts.retain(|post| [&post.uri, &post.url].contains(&&Some(address.clone())));
        posts.truncate(1);
        Ok(Some(Answered {
            posts,
            headers,
            ..Answered::default()
        }))
    }
}

/// A refusal of one post or address, which anybody may ask for, proves nothing about the credential elsewhere.
fn of_one_address(failure: Failure) -> Failure {
    match failure.kind {
        FailureKind::Unauthorized => Failure {
            kind: FailureKind::Forbidden,
            ..failure
        },
        _ => failure,
    }
}

/// No post has a longer one.
const MAX_ADDRESS: usize = 2_000;
