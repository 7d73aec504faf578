//! Fetches what the store lacks of threads and their posts' edit histories, posts by their addresses and accounts by
//! their names, for the requests that show them.

mod account_names;
mod addresses;
mod histories;
mod shares;

use std::{collections::HashMap, sync::Arc, time::Duration};

use driftline_core::{
    answer::AnswerHeaders,
    api::Api,
    edit_history::EarlierVersion,
    post::{Author, Post},
    quota::QuotaPurpose,
    thread::{Fetched, connected},
    upstream_id::UpstreamId,
};
use driftline_runtime::{now_ms, steady_ms};
use driftline_store::{
    InstanceId, Owner, SourceId, Store, StoreError, Tx, Viewer,
    credential::Credential,
    instance::{self, Instance},
    local_ids,
    source::{self, Source},
    thread_source::{self, FetchedFor, FetchedPosts},
};
use driftline_upstream::ClientPurpose;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use crate::{
    anonymous_access::AnonymousAccess, client::Server, quotas::Permit,
    source_credential::credential_of, upstream_access::UpstreamAccess,
};

/// The threads, posts and accounts that this process fetches. Clones share them.
#[derive(Clone)]
pub struct Threads {
    shared: Arc<Shared>,
}

/// A thread that is shown to somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownThread {
    /// To whom.
    pub viewer: Viewer,
    /// The instance that its post was seen through.
    pub instance: InstanceId,
    /// The post's ID there.
    pub post: UpstreamId,
    /// How old what is known of it may be, ms.
    pub max_age_ms: i64,
}

/// What is asked of an upstream: once, for all to whom it answers the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ThreadRequest {
    instance: InstanceId,
    wanted: Wanted,
    /// The viewer's own source, with whose token it is asked; `None` without a token.
    source: Option<SourceId>,
    /// The owner of an answer without a token: `None` if a source for the world is there, so that everybody
    /// may know of the server.
    owner: Option<Owner>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wanted {
    /// The thread of the post of that ID.
    Thread(UpstreamId),
    /// The edit history of the post of that ID.
    History(UpstreamId),
    /// The post of an address, by a search.
    Search(String),
    /// The post of an address, by its ID.
    LookUp(String, UpstreamId),
    /// The account of a name with a host, by a search.
    SearchAccount(String),
    /// The account of a name with a host, which is the server's own.
    LookUpAccount(String),
}

/// What an upstream answered.
#[derive(Default)]
struct Answered {
    posts: Vec<Post>,
    account: Option<Author>,
    /// The earlier versions of the one post whose history was requested.
    versions: Vec<EarlierVersion>,
    headers: AnswerHeaders,
}

/// The end of a request.
struct Outcome {
    fetched: Fetched,
    /// Posts of a thread whose edit histories the store may lack: the one that was requested, then edited ones.
    edited: Vec<UpstreamId>,
}

impl From<Fetched> for Outcome {
    fn from(fetched: Fetched) -> Outcome {
        let edited = Vec::new();
        Outcome { fetched, edited }
    }
}

struct Shared {
    store: Store,
    access: UpstreamAccess,
    /// What is being fetched, and what was.
    tried: Mutex<HashMap<ThreadRequest, Tried>>,
    room: Semaphore,
}

/// A request that was begun, and for whom first.
struct Tried {
    client: Owner,
    known: KnownRequest,
}

/// A request that is known.
#[derive(Clone)]
enum KnownRequest {
    Running(watch::Receiver<Option<Fetched>>),
    /// It ended then, and is not to be sent again before the other time: ms by the process's monotonic clock.
    Ended {
        at_ms: i64,
        again_ms: i64,
    },
}

impl KnownRequest {
    /// Whether it stands for a request that may know as little as of that age.
    fn serves(&self, now_ms: i64, max_age_ms: i64) -> bool {
        match self {
            KnownRequest::Running(_) => true,
            KnownRequest::Ended { at_ms, again_ms } => {
                now_ms < *again_ms || now_ms.saturating_sub(*at_ms) < max_age_ms.min(REMEMBERED_MS)
            }
        }
    }
}

impl Threads {
    /// Fetches with that access into that store.
    pub fn new(store: Store, access: UpstreamAccess) -> Self {
        let shared = Shared {
            store,
            access,
            tried: Mutex::default(),
            room: Semaphore::new(MAX_FETCHES),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Fetches a thread, unless it was fetched a short while ago; waits for it for at most `wait`. A
    /// request like one that is being sent joins it. What has begun goes on to its end, also
    /// if the requester goes away. For strangers nothing is fetched: anybody may be one as often as they like.
    pub async fn fetch(&self, shown: ShownThread, wait: Duration) -> Fetched {
        let Some(client) = shown.viewer.owner() else {
            return Fetched::Nothing;
        };
        let max_age_ms = shown.max_age_ms;
        let request = match self.shared.request(shown).await {
            Ok(Some(request)) => request,
            Ok(None) => return Fetched::Nothing,
            Err(error) => {
                tracing::warn!(%error, "a thread was not fetched: the store failed");
                return Fetched::NotNow;
            }
        };
        self.wait_for(client, request, max_age_ms, wait).await
    }

    async fn wait_for(
        &self,
        client: Owner,
        request: ThreadRequest,
        max_age_ms: i64,
        wait: Duration,
    ) -> Fetched {
        let mut running = match self.join_or_start(client, request, max_age_ms) {
            KnownRequest::Running(running) => running,
            KnownRequest::Ended { .. } => return Fetched::Recent,
        };
        let ended = tokio::time::timeout(wait, running.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(fetched)) => fetched.unwrap_or(Fetched::NotNow),
            // The task was dropped with the runtime.
            Ok(Err(_)) => Fetched::NotNow,
            Err(_) => Fetched::Continues,
        }
    }

    fn join_or_start(
        &self,
        client: Owner,
        request: ThreadRequest,
        max_age_ms: i64,
    ) -> KnownRequest {
        let now = steady_ms();
        let mut tried = self.shared.tried.lock();
        if let Some(found) = tried.get(&request)
            && found.known.serves(now, max_age_ms)
        {
            return found.known.clone();
        }
        if tried.len() >= MAX_TRIED {
            tried.retain(|_, tried| tried.known.serves(now, RECENT_MS));
        }
        if tried.len() >= MAX_TRIED || request.is_crowded_out(client, &tried, now) {
            return KnownRequest::Running(watch::channel(Some(Fetched::NotNow)).1);
        }
        let (ended, running) = watch::channel(None);
        let known = KnownRequest::Running(running.clone());
        tried.insert(request.clone(), Tried { client, known });
        drop(tried);
        let threads = self.clone();
        tokio::spawn(async move {
            let mut end = End {
                shared: Arc::clone(&threads.shared),
                client,
                request: request.clone(),
                fetched: Fetched::NotNow,
            };
            let Outcome { fetched, edited } = threads.shared.run(&request).await;
            end.fetched = fetched;
            drop(end);
            ended.send_replace(Some(fetched));
            // Nobody waits for these: the thread is shown without them.
            threads.fetch_histories(client, &request, edited).await;
        });
        KnownRequest::Running(running)
    }
}

/// Notes how a request ended, also where its task is dropped or panics.
struct End {
    shared: Arc<Shared>,
    client: Owner,
    request: ThreadRequest,
    fetched: Fetched,
}

impl Drop for End {
    fn drop(&mut self) {
        let now = steady_ms();
        let (at_ms, pause_ms) = match self.fetched {
            // Nothing was learnt.
            Fetched::NotNow => (i64::MIN, RETRY_MS),
            _ => (now, RECENT_MS),
        };
        let ended = Tried {
            client: self.client,
            known: KnownRequest::Ended {
                at_ms,
                again_ms: now + pause_ms,
            },
        };
        self.shared.tried.lock().insert(self.request.clone(), ended);
    }
}

impl Shared {
    /// What to ask for a viewer; nothing of an API without threads.
    async fn request(&self, shown: ShownThread) -> Result<Option<ThreadRequest>, StoreError> {
        let (viewer, id) = (shown.viewer, shown.instance);
        let found = self.store.read(move |tx| {
            let known = instance::by_id(tx, id)?;
            let public = source::readable(tx, Viewer::Anonymous)?;
            // An account's published source counts for the posts of its own server alone.
            let is_public = public
                .iter()
                .any(|source| source.instance.id == id && source.owner == Owner::Operator);
            Ok::<_, StoreError>((known, own_source(tx, viewer, id)?, is_public))
        });
        let (instance, own, is_public) = found.await?;
        let has_threads = instance.is_some_and(|instance| instance.api == Api::Mastodon);
        Ok(has_threads.then(|| ThreadRequest {
            instance: id,
            wanted: Wanted::Thread(shown.post),
            owner: viewer.owner().filter(|_| !is_public && own.is_none()),
            source: own.map(|source| source.id),
        }))
    }

    async fn run(&self, request: &ThreadRequest) -> Outcome {
        // Waiting requests are bounded by the shares of upstreams.
        let Ok(_room) = self.room.acquire().await else {
            return Fetched::NotNow.into();
        };
        if self.access.store_fault.lasts().await || self.access.store_disk.low().is_some() {
            return Fetched::NotNow.into();
        }
        match self.fetch(request).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::warn!(%error, "a thread was not fetched: the store failed");
                Fetched::NotNow.into()
            }
        }
    }

    async fn fetch(&self, request: &ThreadRequest) -> Result<Outcome, StoreError> {
        let Some(asker) = self.asker(request).await? else {
            return Ok(Fetched::Nothing.into());
        };
        let instance = &asker.anonymous.instance;
        let server = match &asker.own {
            Some(own) => Server::of(instance, own.allow_private, own.owner),
            None => asker.anonymous.server(),
        };
        let token = asker.own.as_ref().and_then(|own| own.token.as_ref());
        let client = match self.access.client(server, token) {
            Ok(client) => client,
            Err(error) => {
                tracing::debug!(%error, "a thread was not fetched: its server has no client");
                return Ok(Fetched::NotNow.into());
            }
        };
        let credential = self.credential(&asker).await?;
        let scope = client.scope(ClientPurpose::LookUp);
        let quota = self
            .access
            .quotas
            .of(&credential, scope, QuotaPurpose::Refresh);
        let Permit::Sent(charge) = quota.take(1).await? else {
            return Ok(Fetched::NotNow.into());
        };
        let asked_at_ms = now_ms();
        match request.wanted.ask(&client, &instance.origin).await {
            Ok(Some(answered)) => {
                quota.answered(charge, 1, &answered.headers).await?;
                if let Wanted::History(post) = &request.wanted {
                    let readers = histories::readers(asker.own.as_ref(), request.owner);
                    let of = (instance.id, post.clone());
                    let new = self.keep_history(of, answered.versions, readers).await?;
                    return Ok(Fetched::Stored(new).into());
                }
                let owner = asker.own.as_ref().map(|own| own.owner);
                let whose = match owner.or(request.owner) {
                    Some(owner) => FetchedFor::Owner(owner),
                    None => FetchedFor::World,
                };
                let edited = request.wanted.may_be_edited(&answered.posts);
                let instance = asker.anonymous.instance;
                let new = self.keep(instance, whose, answered, asked_at_ms).await?;
                let fetched = Fetched::Stored(new);
                Ok(Outcome { fetched, edited })
            }
            Ok(None) => {
                quota.settle(charge, 0).await?;
                Ok(Fetched::Nothing.into())
            }
            Err(failure) => {
                tracing::debug!(kind = %failure.kind, "a thread, a history, a post or an account was not fetched");
                quota.failed(charge, &failure).await?;
                Ok(Fetched::NotNow.into())
            }
        }
    }

    /// Who asks; `None` if what would be asked with is gone.
    async fn asker(&self, request: &ThreadRequest) -> Result<Option<Asker>, StoreError> {
        let (id, source) = (request.instance, request.source);
        self.store
            .read(move |tx| {
                let Some(anonymous) = AnonymousAccess::load(tx, id)? else {
                    return Ok(None);
                };
                let own = match source {
                    None => None,
                    Some(source) => {
                        match source::by_id(tx, source)?.filter(|own| serves(own, id)) {
                            Some(own) => Some(own),
                            None => return Ok(None),
                        }
                    }
                };
                Ok(Some(Asker { anonymous, own }))
            })
            .await
    }

    async fn credential(&self, asker: &Asker) -> Result<Credential, StoreError> {
        match &asker.own {
            Some(own) => credential_of(&self.store, own).await,
            None => asker.anonymous.credential(&self.store).await,
        }
    }

    /// Stores an answer for those alone, posts in transactions of a page's size.
    async fn keep(
        &self,
        instance: Instance,
        whose: FetchedFor,
        Answered { posts, account, .. }: Answered,
        asked_at_ms: i64,
    ) -> Result<usize, StoreError> {
        if posts.is_empty() && account.is_none() {
            return Ok(0);
        }
        let find =
            move |tx: &mut Tx<'_>| thread_source::find_or_add(tx, &instance, whose, now_ms());
        let key = self.store.write(local_ids::root(), find).await?;
        let mut stored = 0;
        for posts in posts.chunks(CHUNK) {
            let posts: Arc<[Post]> = posts.into();
            let store = move |tx: &mut Tx<'_>| {
                let fetched = FetchedPosts {
                    whose,
                    posts: &posts,
                    asked_at_ms,
                };
                thread_source::store(tx, key, &fetched, now_ms())
            };
            stored += self.store.write(source::root(key), store).await?;
        }
        if let Some(account) = account {
            let store =
                move |tx: &mut Tx<'_>| thread_source::store_account(tx, key, &account, now_ms());
            stored += u64::from(self.store.write(source::root(key), store).await?);
        }
        Ok(usize::try_from(stored).unwrap_or(usize::MAX))
    }
}

/// What a request is sent with.
struct Asker {
    /// Without a token, where no own source is.
    anonymous: AnonymousAccess,
    own: Option<Source>,
}

/// The source of a viewer's own with whose token an instance is asked.
fn own_source(
    tx: &mut Tx<'_>,
    viewer: Viewer,
    instance: InstanceId,
) -> Result<Option<Source>, StoreError> {
    let Some(owner) = viewer.owner() else {
        return Ok(None);
    };
    let mut own = source::owned(tx, owner)?.into_iter();
    Ok(own.find(|source| serves(source, instance)))
}

fn serves(source: &Source, instance: InstanceId) -> bool {
    source.instance.id == instance && source.token.is_some() && !source.suspended
}

/// Requests to upstreams at a time.
const MAX_FETCHES: usize = 2 * shares::MAX_OF_UPSTREAM;
/// Requests that are remembered, and that wait.
const MAX_TRIED: usize = 1_000;
/// Before which a thread is not fetched again.
const RECENT_MS: i64 = 60_000;
/// Before which one that could not be fetched is not tried again.
const RETRY_MS: i64 = 15_000;
/// As long as a fetch may stand for others.
const REMEMBERED_MS: i64 = 3_600_000;
/// How many posts are stored at once.
const CHUNK: usize = 80;
