//! A store and a server on this machine that looks up the posts it is told to.

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    sync::Arc,
    thread,
};

use driftline_core::{
    answer::Failure,
    api::Api,
    post::{Post, PostHashes},
    quota::QuotaPurpose,
    upstream_id::UpstreamId,
};
use driftline_net::testing::http_client;
use driftline_runtime::now_ms;
use driftline_store::{
    GoneProof, SourceKey, Store, Target,
    credential::{self, Credential},
    local_ids,
    source::{self, NewSource, TokenLocation},
    testing::{Feed, new_source},
};
use driftline_upstream::ClientPurpose;
use parking_lot::Mutex;

use super::AbsenceProver;
use crate::{client::Server, upstream_access::UpstreamAccess};

/// What the server finds, and what it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Posts {
    pub(crate) found: BTreeSet<u64>,
    pub(crate) fails: bool,
    pub(crate) asked: Vec<u64>,
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) access: UpstreamAccess,
    pub(crate) posts: Arc<Mutex<Posts>>,
    pub(crate) source: SourceKey,
    pub(crate) credential: Credential,
    pub(crate) origin: String,
    _folder: tempfile::TempDir,
}

/// A post of that author; `boosts` is the post that it boosts.
pub(crate) fn post(id: u64, author: u64, boosts: Option<u64>) -> Post {
    let mut post = driftline_store::testing::post(id, "text");
    post.created_at_ms = Some(now_ms() - 10_000);
    post.author.id = author.to_string().as_str().into();
    post.boost_of = boosts.map(|id| Box::new(driftline_store::testing::post(id, "text")));
    post
}

impl World {
    /// With a source that lists these posts, the newest first, read with a token or without.
    pub(crate) async fn new(posts: Vec<Post>, has_token: bool) -> Self {
        let found = Arc::new(Mutex::new(Posts::default()));
        let origin = serve(&found);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driftline.db");
        let token = folder.path().join("token");
        std::fs::write(&token, "token").unwrap();
        let token = has_token.then(|| TokenLocation::File(token.to_str().unwrap().into()));
        let new = NewSource {
            origin: origin.clone(),
            upstream: origin.clone(),
            token: token.clone(),
            ..new_source("home")
        };
        let made = tokio::task::spawn_blocking(move || {
            let store = Store::open(Target::Sqlite { path }).unwrap();
            let (source, credential) = store
                .write_blocking(local_ids::root(), move |tx| {
                    let source = source::add(tx, &new, 1)?.unwrap();
                    let (instance, token) = (source.instance, token.as_ref());
                    let credential = credential::find_or_add(
                        tx,
                        instance,
                        (driftline_store::Owner::Operator, token),
                        "mine",
                        1,
                    )?;
                    Ok::<_, driftline_store::StoreError>((source, credential))
                })
                .unwrap();
            let mut feed = Feed::of(&store, source, |post| post.hashes = PostHashes::default());
            feed.now_ms = now_ms();
            feed.poll(posts);
            (store, source, credential)
        });
        let (store, source, credential) = made.await.unwrap();
        Self {
            access: UpstreamAccess::new(&store, http_client()),
            store,
            posts: found,
            source,
            credential,
            origin,
            _folder: folder,
        }
    }

    /// Another source lists these posts, read with another token, which is returned.
    pub(crate) async fn also_listed(&self, posts: Vec<Post>) -> Option<TokenLocation> {
        let token = Some(TokenLocation::Environment("ANOTHER".into()));
        let new = NewSource {
            origin: self.origin.clone(),
            upstream: self.origin.clone(),
            token: token.clone(),
            ..new_source("another")
        };
        let store = self.store.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let source = store
                .write_blocking(local_ids::root(), move |tx| source::add(tx, &new, 1))
                .unwrap();
            let mut feed = Feed::of(&store, source.unwrap(), |post| {
                post.hashes = PostHashes::default();
            });
            feed.now_ms = now_ms();
            feed.poll(posts);
        });
        listed.await.unwrap();
        token
    }

    /// The server finds these posts alone.
    pub(crate) fn finds(&self, ids: impl IntoIterator<Item = u64>) {
        self.posts.lock().found = ids.into_iter().collect();
    }

    /// What the server was asked for since this was called last.
    pub(crate) fn asked(&self) -> Vec<u64> {
        std::mem::take(&mut self.posts.lock().asked)
    }

    /// The server that is asked.
    pub(crate) fn server(&self) -> Server<'_> {
        Server {
            api: Api::Mastodon,
            origin: &self.origin,
            asker: driftline_store::Owner::Operator,
            allow_private: false,
        }
    }

    /// What it proves that the server does not find a post.
    pub(crate) async fn proof(&self, id: u64) -> Result<GoneProof, Failure> {
        let token = self.credential.token.as_ref();
        let client = self.access.client(self.server(), token);
        let client = client.unwrap();
        let scope = client.scope(ClientPurpose::LookUp);
        let quotas = &self.access.quotas;
        let quota = quotas.of(&self.credential, scope, QuotaPurpose::Poll);
        let proof = AbsenceProver {
            store: &self.store,
            client: &client,
            quota: &quota,
            abilities: &self.access.look_up_abilities,
            source: self.source,
        };
        let id = UpstreamId::new(id.to_string());
        proof.of(&id).await.unwrap()
    }
}

/// Answers look-ups of single posts until the test ends; returns the server's origin.
fn serve(posts: &Arc<Mutex<Posts>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let posts = Arc::clone(posts);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().and_then(Result::ok).unwrap_or_default();
            let _ = lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
            let path = request.split(' ').nth(1).unwrap_or_default();
            let id = path.rsplit('/').next().and_then(|id| id.parse().ok());
            let (status, body) = answer(&mut posts.lock(), id);
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    origin
}

fn answer(posts: &mut Posts, id: Option<u64>) -> (&'static str, String) {
    let nothing = r#"{"error":"Record not found"}"#.to_owned();
    let Some(id) = id else {
        return ("404 Not Found", nothing);
    };
    posts.asked.push(id);
    if posts.fails {
        return ("500 Internal Server Error", nothing);
    }
    if !posts.found.contains(&id) {
        return ("404 Not Found", nothing);
    }
    let body = format!(
        r#"{{"id":"{id}","created_at":"2026-01-01T00:00:00.000Z","visibility":"public","content":"text","account":{{"id":"7","acct":"ann"}}}}"#
    );
    ("200 OK", body)
}
