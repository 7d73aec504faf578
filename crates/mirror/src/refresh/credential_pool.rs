//! The credentials of one worker, with their clients.

use std::collections::HashMap;

use driftline_runtime::{Weight, now_ms, random, show_ms};
use driftline_store::{
    CredentialId, StoreError,
    credential::{self, Credential, Quarantine},
    instance::Instance,
    local_ids,
    source::{self, TokenLocation},
};
use driftline_upstream::{Address, Upstream};

use super::{Shared, lookup_client::LookupClient};
use crate::quotas::{Charge, Permit};

/// The credentials that one worker uses at its upstream, with their clients.
pub(super) struct CredentialPool {
    instance: Instance,
    clients: HashMap<CredentialId, (TokenVersion, Upstream)>,
    /// Credentials whose secret this process does not have, and when it looks again, Unix ms. Another
    /// process may have it, so the store does not record this.
    unusable: HashMap<CredentialId, i64>,
}

/// The state of a credential when its token was read. If the state differs, the token may have been
/// changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TokenVersion {
    token: Option<TokenLocation>,
    quarantine: Option<Quarantine>,
    credential_changes: u64,
}

impl TokenVersion {
    fn of(shared: &Shared, credential: &Credential) -> Self {
        Self {
            token: credential.token.clone(),
            quarantine: credential.quarantine.clone(),
            credential_changes: shared.access.quotas.credential_changes(credential.id),
        }
    }
}

impl CredentialPool {
    pub(super) fn new(instance: &Instance) -> Self {
        Self {
            instance: instance.clone(),
            clients: HashMap::new(),
            unusable: HashMap::new(),
        }
    }

    /// A credential that may be used now, with the charge of one request for a batch; otherwise when to
    /// look again, Unix ms.
    pub(super) async fn choose(
        &mut self,
        shared: &Shared,
        has_batch: bool,
    ) -> Result<Result<(LookupClient, Charge), i64>, StoreError> {
        let instance = self.instance.id;
        let mut all = shared
            .store
            .read(move |tx| credential::of_instance(tx, instance))
            .await?;
        self.sync(shared, &all);
        let named = &shared.options.credentials;
        if !named.is_empty() {
            all.retain(|credential| named.contains(&credential.name));
        } else if all.is_empty() {
            all = vec![self.without_token(shared).await?];
        }
        if all.is_empty() {
            return Ok(Err(i64::MAX));
        }
        let now = now_ms();
        let mut until_ms = i64::MAX;
        let first = (random() % all.len() as u64) as usize;
        all.rotate_left(first);
        // Credentials with a token see more and have larger quotas.
        all.sort_by_key(|credential| credential.token.is_none());
        for credential in all {
            let lookup_client = match self.lookup_client(shared, &credential, now) {
                Ok(lookup_client) => lookup_client,
                Err(look_ms) => {
                    until_ms = until_ms.min(look_ms);
                    continue;
                }
            };
            let posts = lookup_client.client.look_up_limit(has_batch);
            match lookup_client.take(posts).await? {
                Permit::Sent(charge) => return Ok(Ok((lookup_client, charge))),
                Permit::Until(free_ms) => until_ms = until_ms.min(free_ms),
            }
        }
        Ok(Err(until_ms))
    }

    /// The other credentials that may be used now, whatever their quotas. This includes those of
    /// sources even if posts are refreshed with others only, since stored posts were seen with them.
    pub(super) async fn others(
        &mut self,
        shared: &Shared,
        than: CredentialId,
    ) -> Result<Vec<LookupClient>, StoreError> {
        let instance = self.instance.id;
        let (all, tokens) = shared
            .store
            .read(move |tx| {
                let sources = source::list(tx)?.into_iter();
                let tokens: Vec<Option<TokenLocation>> = sources
                    .filter(|source| source.instance.id == instance)
                    .map(|source| source.token)
                    .collect();
                Ok::<_, StoreError>((credential::of_instance(tx, instance)?, tokens))
            })
            .await?;
        self.sync(shared, &all);
        let named = &shared.options.credentials;
        let is_asked = |credential: &Credential| {
            named.is_empty()
                || named.contains(&credential.name)
                || tokens.contains(&credential.token)
        };
        let now = now_ms();
        let others = all
            .into_iter()
            .filter(|credential| credential.id != than && is_asked(credential));
        Ok(others
            .filter_map(|credential| self.lookup_client(shared, &credential, now).ok())
            .collect())
    }

    /// Forgets a token that may have been changed, so that it is read again.
    pub(super) fn forget(&mut self, credential: CredentialId) {
        self.clients.remove(&credential);
    }

    /// Forgets tokens that may have been changed, also of quarantined credentials: another worker or
    /// process may have quarantined or restored them.
    fn sync(&mut self, shared: &Shared, all: &[Credential]) {
        for credential in all {
            let read = self.clients.get(&credential.id);
            if read.is_some_and(|(read, _)| *read != TokenVersion::of(shared, credential)) {
                self.clients.remove(&credential.id);
                self.unusable.remove(&credential.id);
            }
        }
    }

    /// A credential's client; otherwise when to look again, Unix ms.
    fn lookup_client(
        &mut self,
        shared: &Shared,
        credential: &Credential,
        now: i64,
    ) -> Result<LookupClient, i64> {
        if let Some(rest) = credential.quarantine.as_ref().filter(|q| q.until_ms > now) {
            return Err(rest.until_ms);
        }
        if let Some(look_ms) = self.unusable.get(&credential.id).filter(|ms| **ms > now) {
            return Err(*look_ms);
        }
        let (quotas, read) = (&shared.access.quotas, TokenVersion::of(shared, credential));
        if let Some((known, client)) = self.clients.get(&credential.id)
            && *known == read
        {
            return Ok(LookupClient::new(quotas, credential, client.clone()));
        }
        match self.client(shared, credential) {
            Ok(client) => {
                if let Some(failed_ms) = shared.unusable.succeeded(&credential.id, now) {
                    tracing::warn!(credential = %credential.name, "this process can use the credential again, after {}", show_ms(failed_ms));
                }
                self.clients.insert(credential.id, (read, client.clone()));
                Ok(LookupClient::new(quotas, credential, client))
            }
            Err(reason) => {
                if shared.unusable.failed(credential.id, Weight::Lasting, now) {
                    tracing::warn!(credential = %credential.name, "this process cannot use the credential: {reason}");
                }
                let until_ms = now.saturating_add(UNREADABLE_REST_MS);
                self.unusable.insert(credential.id, until_ms);
                Err(until_ms)
            }
        }
    }

    fn client(&self, shared: &Shared, credential: &Credential) -> Result<Upstream, String> {
        let address = Address::parse(&self.instance.origin).map_err(|error| error.to_string())?;
        let secret = shared
            .access
            .secret(credential.token.as_ref(), &self.instance.origin)
            .map_err(|error| error.to_string())?;
        let http = shared.access.http.clone();
        Upstream::new(self.instance.api, http, address, secret).map_err(|error| error.to_string())
    }

    async fn without_token(&self, shared: &Shared) -> Result<Credential, StoreError> {
        let instance = self.instance.id;
        shared
            .store
            .write(local_ids::root(), move |tx| {
                credential::find_or_add(tx, instance, None, ANONYMOUS, now_ms())
            })
            .await
    }
}

/// The name of the credential without a token.
pub(crate) const ANONYMOUS: &str = "anonymous";
const UNREADABLE_REST_MS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use driftline_core::{
        answer::{Failure, FailureKind},
        quota::QuotaPurpose,
    };

    use super::{super::testing::World, *};
    use driftline_runtime::testing::Warnings;

    async fn names(
        world: &World,
        credential_pool: &mut CredentialPool,
        than: CredentialId,
    ) -> Vec<String> {
        let others = credential_pool.others(&world.shared, than).await.unwrap();
        others
            .into_iter()
            .map(|of| of.credential().name.clone())
            .collect()
    }

    async fn credential(world: &World, id: CredentialId) -> Credential {
        let found = world
            .shared
            .store
            .read(move |tx| credential::by_id(tx, id))
            .await;
        found.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_token_is_read_again_once_its_credential_was_quarantined_or_restored() {
        let world = World::new().await;
        let (first, second) = (world.credential("one").await, world.credential("two").await);
        let mut credential_pool = CredentialPool::new(&world.instance().await);
        assert_eq!(names(&world, &mut credential_pool, first).await, ["two"]);
        // A known token is not read each time.
        let token = world.token_of("two");
        std::fs::remove_file(&token).unwrap();
        assert_eq!(names(&world, &mut credential_pool, first).await, ["two"]);
        // Another worker quarantines and restores it before this one looks.
        let quotas = &world.shared.access.quotas;
        let refused = Failure::new(FailureKind::Unauthorized, "no");
        let two = credential(&world, second).await;
        let quota = quotas.of(&two, "requests", QuotaPurpose::Refresh);
        quota.failed(Charge::default(), &refused).await.unwrap();
        quotas.restore(&two).await.unwrap();
        assert!(names(&world, &mut credential_pool, first).await.is_empty());
    }

    #[tokio::test]
    async fn an_unreadable_token_is_logged_once() {
        let (warnings, _guard) = Warnings::listen();
        let world = World::new().await;
        let (first, _) = (world.credential("one").await, world.credential("two").await);
        std::fs::remove_file(world.token_of("two")).unwrap();
        for _ in 0..3 {
            let mut credential_pool = CredentialPool::new(&world.instance().await);
            assert!(names(&world, &mut credential_pool, first).await.is_empty());
        }
        assert_eq!(warnings.times("this process cannot use the credential"), 1);
        std::fs::write(world.token_of("two"), "two").unwrap();
        for _ in 0..2 {
            let mut credential_pool = CredentialPool::new(&world.instance().await);
            assert_eq!(names(&world, &mut credential_pool, first).await, ["two"]);
        }
        assert_eq!(
            warnings.times("this process can use the credential again"),
            1
        );
    }

    #[tokio::test]
    async fn a_token_is_read_again_after_another_process_quarantined_it() {
        let world = World::new().await;
        let (first, second) = (world.credential("one").await, world.credential("two").await);
        let mut credential_pool = CredentialPool::new(&world.instance().await);
        assert_eq!(names(&world, &mut credential_pool, first).await, ["two"]);
        std::fs::remove_file(world.token_of("two")).unwrap();
        let quarantine = Quarantine {
            since_ms: 1,
            until_ms: i64::MAX,
            reason: "no".into(),
        };
        let store = &world.shared.store;
        let root = || credential::root(second);
        let rest = store.write(root(), move |tx| {
            credential::quarantine(tx, second, &quarantine)
        });
        rest.await.unwrap();
        assert!(names(&world, &mut credential_pool, first).await.is_empty());
        let restored = store.write(root(), move |tx| credential::restore(tx, second));
        assert!(restored.await.unwrap());
        assert!(names(&world, &mut credential_pool, first).await.is_empty());
    }
}
