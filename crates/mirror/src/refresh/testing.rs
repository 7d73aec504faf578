//! A store with an instance, credentials and due posts, without an upstream.

use std::{path::PathBuf, sync::Arc, time::Duration};

use driftline_core::{api::Api, refresh::BatchRule, tracking::Track};
use driftline_net::{Http, Options};
use driftline_runtime::now_ms;
use driftline_store::{
    CredentialKey, Store, Target,
    credential::{self, NewCredential},
    instance::Instance,
    local_ids,
    refresh::{Claim, ClaimRequest, Claimed, Shards},
    source::{self, TokenLocation},
};

use super::{RefreshOptions, Shared};
use crate::{sharing::Sharing, upstream_access::UpstreamAccess};

/// The state that workers share, on a store of its own.
pub(crate) struct World {
    pub(crate) shared: Arc<Shared>,
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driftline.db");
        Self::made(Target::Sqlite { path }, folder, &[]).await
    }

    /// Of a process that is to refresh with these credentials alone.
    pub(super) async fn naming(credentials: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("driftline.db");
        Self::made(Target::Sqlite { path }, folder, credentials).await
    }

    pub(super) async fn on(target: Target) -> Self {
        Self::made(target, tempfile::tempdir().unwrap(), &[]).await
    }

    async fn made(target: Target, folder: tempfile::TempDir, credentials: &[&str]) -> Self {
        let open = move || Store::open(target).unwrap();
        let store = tokio::task::spawn_blocking(open).await.unwrap();
        let http = Http::new(Options::default()).unwrap();
        let access = UpstreamAccess::new(&store, http);
        let options = RefreshOptions {
            buffer_ttl: Duration::ZERO,
            sharing: Some(Sharing::new("test".into(), None)),
            credentials: credentials.iter().map(|name| (*name).to_owned()).collect(),
            ..RefreshOptions::new("test")
        };
        let shared = Arc::new(Shared::new(store, access, options));
        Self { shared, folder }
    }

    /// Adds a credential with its token in a file.
    pub(super) async fn credential(&self, name: &str) -> CredentialKey {
        self.capped_credential(name, None).await
    }

    /// The same, with a cap on the posts that it reads in a month.
    pub(crate) async fn capped_credential(
        &self,
        name: &str,
        monthly_posts: Option<i64>,
    ) -> CredentialKey {
        let new = NewCredential {
            monthly_posts,
            ..self.new_credential(name)
        };
        self.add_credential(new).await
    }

    /// A credential of the server with its token in a file.
    pub(super) fn new_credential(&self, name: &str) -> NewCredential {
        let path = self.token_of(name);
        std::fs::write(&path, name).unwrap();
        NewCredential {
            name: name.into(),
            origin: "https://x.test".into(),
            api: Api::X,
            token: Some(TokenLocation::File(path.to_str().unwrap().into())),
            monthly_posts: None,
        }
    }

    /// Adds a credential.
    pub(super) async fn add_credential(&self, new: NewCredential) -> CredentialKey {
        let added = self
            .shared
            .store
            .write(local_ids::root(), move |tx| credential::add(tx, &new, 0));
        added.await.unwrap().unwrap()
    }

    /// The file with a credential's token.
    pub(super) fn token_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) async fn instance(&self) -> Instance {
        let all = self.shared.store.read(source::instances).await.unwrap();
        all[0].clone()
    }

    /// Tracks posts, which are then due.
    pub(super) async fn name_posts(&self, ids: &[&str]) {
        let track = Track {
            instance: "https://x.test".into(),
            api: Some(Api::X),
            ids: ids.iter().map(|id| (*id).to_owned()).collect(),
            once: true,
        };
        let policies = &self.shared.access.policies;
        crate::track(&self.shared.store, policies, track, false)
            .await
            .unwrap();
    }

    /// Claims the due posts.
    pub(super) async fn claim(&self) -> Claim {
        let instance = self.instance().await.id;
        let ask = ClaimRequest {
            instance,
            batch_rule: BatchRule::new(100, 0),
            shard: 0,
            shards: Shards::ALL,
            holder: "test".into(),
            lease_ms: 30_000,
            now_ms: now_ms(),
            policy: self.shared.access.policies.of(instance),
        };
        match self
            .shared
            .access
            .claims
            .claim(&self.shared.store, ask)
            .await
        {
            Ok(Claimed::Batch(claim)) => claim,
            other => panic!("{other:?}"),
        }
    }
}
