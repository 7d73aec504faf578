//! Drawn owners, audiences and credentials: whose tokens travel for which posts.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::Path,
    sync::Arc,
    thread,
    time::Duration,
};

use driftline_core::{
    names::audience::Audience,
    post::{PostHashes, Visibility},
    refresh::LookupOutcome,
};
use driftline_db::testing::Fresh;
use driftline_net::testing::http_client;
use driftline_runtime::now_ms;
use driftline_store::{
    LocalAccountId, Owner, Root, Store, StoreError, credential, find,
    instance::Instance,
    local_ids,
    refresh::refresh_state,
    source::{self, NewSource, TokenLocation},
    testing::{Feed, new_source, open, post},
};
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _, seq::IndexedRandom as _};
use rand_chacha::ChaCha8Rng;
use tokio::sync::watch;

use super::{Turn, Worker};
use crate::{
    refresh::{RefreshOptions, Shared},
    upstream_access::UpstreamAccess,
};

/// A request: its token, and the posts that it asks for.
type Asked = (Option<String>, Vec<u64>);

/// A server that answers look-ups, and notes them.
struct Upstream {
    origin: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Upstream {
    /// It finds these posts, several at once if it is able to.
    fn start(found: BTreeSet<u64>, has_batch: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().and_then(Result::ok).unwrap_or_default();
                let mut token = None;
                for line in lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                {
                    if let Some((name, value)) = line.split_once(": ")
                        && name.eq_ignore_ascii_case("authorization")
                    {
                        token = value.strip_prefix("Bearer ").map(str::to_owned);
                    }
                }
                let path = request.split(' ').nth(1).unwrap_or_default();
                let (path, query) = path.split_once('?').unwrap_or((path, ""));
                let values = query.split('&').filter_map(|pair| pair.split_once('='));
                let of_batch: Vec<u64> = values.filter_map(|(_, id)| id.parse().ok()).collect();
                let single = path.rsplit('/').next().and_then(|id| id.parse().ok());
                let ids: Vec<u64> = single.into_iter().chain(of_batch.iter().copied()).collect();
                noted.lock().push((token, ids.clone()));
                let shown = ids
                    .iter()
                    .filter(|id| found.contains(id))
                    .map(|id| status(*id));
                let shown: Vec<String> = shown.collect();
                let (code, body) = match (single, shown.first()) {
                    (None, _) if has_batch => ("200 OK", format!("[{}]", shown.join(","))),
                    (Some(_), Some(status)) => ("200 OK", status.clone()),
                    _ => (
                        "404 Not Found",
                        r#"{"error":"Record not found"}"#.to_owned(),
                    ),
                };
                let _ = write!(
                    stream,
                    "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        Self { origin, asked }
    }
}

fn status(id: u64) -> String {
    format!(
        r#"{{"id":"{id}","created_at":"2026-01-01T00:00:00.000Z","visibility":"public","content":"text","account":{{"id":"7","acct":"ann"}}}}"#
    )
}

/// A source as it was drawn.
#[derive(Debug)]
struct Drawn {
    owner: Owner,
    audience: Audience,
    token: Option<String>,
    /// Whether its credential is known.
    has_credential: bool,
    posts: BTreeSet<u64>,
}

/// What was drawn, and what is to follow from it, told from what the code under test does.
struct Plan {
    sources: Vec<Drawn>,
    visibilities: BTreeMap<u64, Visibility>,
}

impl Plan {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let owners = [
            Owner::Operator,
            Owner::Account(LocalAccountId::new(1 << 50)),
            Owner::Account(LocalAccountId::new(2 << 50)),
        ];
        let audiences = [Audience::Private, Audience::Members, Audience::Public];
        let all = [
            Visibility::Public,
            Visibility::Public,
            Visibility::Unlisted,
            Visibility::Private,
            Visibility::Direct,
        ];
        let visibilities = (1..=12).map(|id| (id, *all.choose(rng).unwrap()));
        let visibilities: BTreeMap<u64, Visibility> = visibilities.collect();
        let sources = (0..rng.random_range(1..6)).map(|number| {
            let has_token = rng.random_bool(0.7);
            let is_shown = |visibility: Visibility| has_token || visibility.narrowness() < 2;
            let posts = visibilities
                .iter()
                .filter(|(_, visibility)| is_shown(**visibility))
                .map(|(id, _)| *id)
                .filter(|_| rng.random_bool(0.5))
                .collect();
            Drawn {
                owner: *owners.choose(rng).unwrap(),
                audience: *audiences.choose(rng).unwrap(),
                token: has_token.then(|| format!("token{number}")),
                has_credential: rng.random_bool(0.8),
                posts,
            }
        });
        let sources = sources.collect();
        Self {
            sources,
            visibilities,
        }
    }

    fn holders(&self, id: u64) -> impl Iterator<Item = &Drawn> {
        self.sources.iter().filter(move |of| of.posts.contains(&id))
    }

    fn is_open(&self, id: u64) -> bool {
        self.visibilities[&id].narrowness() < 2
    }

    fn is_private(&self, id: u64) -> bool {
        let is_in_public = self.holders(id).any(|of| of.audience == Audience::Public);
        !is_in_public || !self.is_open(id)
    }

    /// The source that is read with a token.
    fn source_of(&self, token: &str) -> &Drawn {
        let mut of_token = self.sources.iter();
        let found = of_token.find(|of| of.token.as_deref() == Some(token));
        found.expect("a known token")
    }

    /// The audience of the post's content: all, if anybody was shown it; else that of the first source.
    fn content_of(&self, id: u64) -> (Audience, Option<Owner>) {
        let is_for_all = |of: &Drawn| of.token.is_none() || of.audience == Audience::Public;
        match self.holders(id).next() {
            _ if self.holders(id).any(is_for_all) => (Audience::Public, None),
            Some(first) if first.audience == Audience::Private => {
                (Audience::Private, Some(first.owner))
            }
            _ => (Audience::Members, None),
        }
    }

    /// Returns true if the post may be asked for so, if only to see whether it exists.
    fn may_be_asked(&self, id: u64, token: Option<&str>) -> bool {
        let owner = token.map(|token| self.source_of(token).owner);
        let is_holders = owner.is_some_and(|owner| self.holders(id).any(|of| of.owner == owner));
        match owner {
            Some(Owner::Operator) => is_holders || !self.is_private(id),
            Some(_) => is_holders,
            None => self.allows(id, None),
        }
    }

    /// Returns true if the post's content may be asked for so.
    fn allows(&self, id: u64, token: Option<&str>) -> bool {
        let is_read_without = self.holders(id).any(|of| of.token.is_none());
        let Some(token) = token else {
            return !self.is_private(id) || self.is_open(id) && is_read_without;
        };
        let (source, (audience, of_owner)) = (self.source_of(token), self.content_of(id));
        // A token that only fewer people's sources have may be shown more.
        if source.audience < audience {
            return false;
        }
        let is_of_content = |of: &Drawn| match audience {
            Audience::Public => true,
            Audience::Members => of.audience == Audience::Members,
            Audience::Private => Some(of.owner) == of_owner && of.audience == Audience::Private,
        };
        let mut holders = self.holders(id).filter(|of| is_of_content(of));
        let is_holders = holders.any(|of| of.owner == source.owner);
        is_holders || source.owner == Owner::Operator && !self.is_private(id)
    }

    /// The credentials there are: their owners, and whether they have a token.
    fn credentials(&self) -> impl Iterator<Item = &Drawn> {
        self.sources.iter().filter(|of| of.has_credential)
    }

    /// Whether nobody who may ask for the post has a credential.
    fn is_without_credential(&self, id: u64) -> bool {
        let mut tokens = self.credentials().map(|of| of.token.as_deref());
        !tokens.any(|token| self.allows(id, token)) && !self.allows(id, None)
    }
}

async fn add_sources(store: &Store, origin: &str, folder: &Path, plan: &Plan) {
    for (number, drawn) in plan.sources.iter().enumerate() {
        let token = drawn.token.as_ref().map(|token| {
            let path = folder.join(token);
            std::fs::write(&path, token).unwrap();
            TokenLocation::File(path.to_str().unwrap().into())
        });
        let name = match drawn.owner {
            Owner::Operator => format!("source{number}"),
            Owner::Account(account) => format!("account{account}/source{number}"),
        };
        let new = NewSource {
            owner: drawn.owner,
            audience: drawn.audience,
            origin: origin.to_owned(),
            upstream: origin.to_owned(),
            token: token.clone(),
            ..new_source(&name)
        };
        let (owner, has_credential) = (drawn.owner, drawn.has_credential);
        let posts = drawn
            .posts
            .iter()
            .rev()
            .map(|id| driftline_core::post::Post {
                visibility: plan.visibilities[id],
                created_at_ms: Some(now_ms() - 4 * HOUR_MS),
                ..post(*id, "text")
            });
        let (posts, store): (Vec<_>, Store) = (posts.collect(), store.clone());
        let added = tokio::task::spawn_blocking(move || {
            let add = store.write_blocking(local_ids::root(), move |tx| {
                let key = source::add(tx, &new, 1)?.unwrap();
                if has_credential {
                    let owned = (owner, token.as_ref());
                    credential::find_or_add(tx, key.instance, owned, &new.name, 1)?;
                }
                Ok::<_, StoreError>(key)
            });
            let mut feed = Feed::of(&store, add.unwrap(), |post| {
                post.hashes = PostHashes::default();
            });
            feed.now_ms = now_ms() - 3 * HOUR_MS;
            feed.poll(posts);
        });
        added.await.unwrap();
    }
}

async fn run(seed: u64, fresh: Fresh) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let plan = Plan::draw(&mut rng);
    let found = plan.visibilities.keys().copied();
    let found = found.filter(|_| rng.random_bool(0.6)).collect();
    let upstream = Upstream::start(found, rng.random_bool(0.5));
    let folder = tempfile::tempdir().unwrap();
    let store = tokio::task::spawn_blocking(move || (open(&fresh), fresh));
    let (store, _fresh) = store.await.unwrap();
    add_sources(&store, &upstream.origin, folder.path(), &plan).await;
    // Half of the worlds are at the second look-up, which deletes.
    if rng.random_bool(0.5) {
        let set = store.write(Root::none(), |tx| {
            Ok::<_, StoreError>(tx.execute("update freshness set missing = true", &[])?)
        });
        set.await.unwrap();
    }
    let access = UpstreamAccess {
        accounts_reach_private: true,
        ..UpstreamAccess::new(&store, http_client())
    };
    let options = RefreshOptions {
        buffer_ttl: Duration::ZERO,
        ..RefreshOptions::new("test")
    };
    let shared = Arc::new(Shared::new(store.clone(), access, options));
    let instances: Vec<Instance> = store.read(source::instances).await.unwrap();
    let mut worker = Worker::new(&shared, &instances[0]);
    let (_stop, mut stopped) = watch::channel(false);
    for _ in 0..40 {
        match worker.turn(&mut stopped).await.unwrap() {
            Turn::Saved => {}
            Turn::Until(_) | Turn::NothingDue(_) => break,
        }
    }
    let asked = std::mem::take(&mut *upstream.asked.lock());
    for (token, ids) in &asked {
        for id in ids {
            let is_allowed = plan.may_be_asked(*id, token.as_deref());
            assert!(
                is_allowed,
                "seed {seed}: post {id} was asked for with {token:?} by {:#?}",
                plan.sources
            );
        }
    }
    let asked: BTreeSet<u64> = asked.into_iter().flat_map(|(_, ids)| ids).collect();
    for id in plan
        .visibilities
        .keys()
        .filter(|id| plan.holders(**id).next().is_some())
    {
        let name = format!("{}/{id}", upstream.origin);
        let state = store.read(move |tx| {
            let post = find::post(tx, &name)?.expect("a stored post");
            refresh_state(tx, post)
        });
        let outcome = state.await.unwrap().and_then(|state| state.outcome);
        let is_without = outcome == Some(LookupOutcome::NoCredential);
        assert_eq!(
            is_without,
            plan.is_without_credential(*id),
            "seed {seed}: post {id}"
        );
        assert!(is_without || asked.contains(id), "seed {seed}: post {id}");
    }
    tokio::task::spawn_blocking(move || store.close_blocking())
        .await
        .unwrap();
}

#[tokio::test]
async fn no_post_is_asked_for_with_a_credential_of_somebody_who_does_not_have_it() {
    for seed in 0..12 {
        run(seed, Fresh::sqlite()).await;
    }
    for seed in 12..16 {
        run(seed, Fresh::postgres()).await;
    }
}

const HOUR_MS: i64 = 3_600_000;
