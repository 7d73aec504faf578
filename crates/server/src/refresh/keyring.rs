//! The credentials that one worker asks its upstream with.

use std::collections::HashMap;

use driftline_store::{
    CredentialId, StoreError, clock,
    credential::{self, Credential, Quarantine},
    instance::Instance,
    source::{self, TokenLocation},
};
use driftline_upstream::{Address, ClientPurpose, Upstream};

use super::{Shared, reader::Reader};
use crate::{
    clock::{now_ms, random},
    fault_log::Weight,
    quotas::{Charge, Permit, QuotaPurpose},
    span::show_ms,
};

/// The credentials that one worker asks its upstream with, and their clients.
pub(super) struct Keyring {
    instance: Instance,
    clients: HashMap<CredentialId, (Read, Upstream)>,
    /// Credentials whose secret this process does not have, and until when it does not look again,
    /// Unix ms. Another process may have it, so the store is not told.
    unusable: HashMap<CredentialId, i64>,
}

/// How a credential stood when its token was read where it lies. Once it stands otherwise, the token
/// may be another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Read {
    place: Option<TokenLocation>,
    quarantine: Option<Quarantine>,
    turns: u64,
}

impl Read {
    fn of(shared: &Shared, credential: &Credential) -> Self {
        Self {
            place: credential.place.clone(),
            quarantine: credential.quarantine.clone(),
            turns: shared.access.quotas.turns(credential.id),
        }
    }
}

impl Keyring {
    pub(super) fn new(instance: &Instance) -> Self {
        Self {
            instance: instance.clone(),
            clients: HashMap::new(),
            unusable: HashMap::new(),
        }
    }

    /// A credential that may be used now, with what one request of a batch was charged that is taken
    /// from its quota; else when to look again, Unix ms.
    pub(super) async fn choose(
        &mut self,
        shared: &Shared,
        has_batch: bool,
    ) -> Result<Result<(Reader, Charge), i64>, StoreError> {
        let instance = self.instance.id;
        let mut all = shared
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
        // What has a token sees more and may ask more often.
        all.sort_by_key(|credential| credential.place.is_none());
        for credential in all {
            let reader = match self.reader(shared, credential, now) {
                Ok(reader) => reader,
                Err(look_ms) => {
                    until_ms = until_ms.min(look_ms);
                    continue;
                }
            };
            let scope = reader.client.scope(ClientPurpose::LookUp);
            let posts = reader.client.look_up_limit(has_batch) as u32;
            match shared
                .access
                .quotas
                .take(&reader.credential, scope, QuotaPurpose::Refresh, posts)
                .await?
            {
                Permit::Sent(charge) => return Ok(Ok((reader, charge))),
                Permit::Until(free_ms) => until_ms = until_ms.min(free_ms),
            }
        }
        Ok(Err(until_ms))
    }

    /// The other credentials that may be used now, whatever is left of their quotas. Those that
    /// sources are read with are among them, though posts be refreshed with others only: what is
    /// stored was seen with them.
    pub(super) async fn others(
        &mut self,
        shared: &Shared,
        than: CredentialId,
    ) -> Result<Vec<Reader>, StoreError> {
        let instance = self.instance.id;
        let (all, places) = shared
            .read(move |tx| {
                let sources = source::list(tx)?.into_iter();
                let places: Vec<Option<TokenLocation>> = sources
                    .filter(|source| source.instance.id == instance)
                    .map(|source| source.token)
                    .collect();
                Ok::<_, StoreError>((credential::of_instance(tx, instance)?, places))
            })
            .await?;
        self.sync(shared, &all);
        let named = &shared.options.credentials;
        let is_asked = |credential: &Credential| {
            named.is_empty()
                || named.contains(&credential.name)
                || places.contains(&credential.place)
        };
        let now = now_ms();
        let others = all
            .into_iter()
            .filter(|credential| credential.id != than && is_asked(credential));
        Ok(others
            .filter_map(|credential| self.reader(shared, credential, now).ok())
            .collect())
    }

    /// A token may have been changed where it lies: it is read again.
    pub(super) fn forget(&mut self, credential: CredentialId) {
        self.clients.remove(&credential);
    }

    /// Forgets the tokens that may have been changed, of credentials that rest as well: some other
    /// worker or process may have had them refused, or taken again.
    fn sync(&mut self, shared: &Shared, all: &[Credential]) {
        for credential in all {
            let read = self.clients.get(&credential.id);
            if read.is_some_and(|(read, _)| *read != Read::of(shared, credential)) {
                self.clients.remove(&credential.id);
                self.unusable.remove(&credential.id);
            }
        }
    }

    /// A credential's client; else when to look again, Unix ms.
    fn reader(&mut self, shared: &Shared, credential: Credential, now: i64) -> Result<Reader, i64> {
        if let Some(rest) = credential.quarantine.as_ref().filter(|q| q.until_ms > now) {
            return Err(rest.until_ms);
        }
        if let Some(look_ms) = self.unusable.get(&credential.id).filter(|ms| **ms > now) {
            return Err(*look_ms);
        }
        let read = Read::of(shared, &credential);
        if let Some((known, client)) = self.clients.get(&credential.id)
            && *known == read
        {
            let client = client.clone();
            return Ok(Reader { credential, client });
        }
        match self.client(shared, &credential) {
            Ok(client) => {
                if let Some(failed_ms) = shared.unusable.succeeded(&credential.id, now) {
                    tracing::warn!(credential = %credential.name, "this process can use it again, after {}", show_ms(failed_ms));
                }
                self.clients.insert(credential.id, (read, client.clone()));
                Ok(Reader { credential, client })
            }
            Err(reason) => {
                if shared.unusable.failed(credential.id, Weight::Lasting, now) {
                    tracing::warn!(credential = %credential.name, "this process cannot use it: {reason}");
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
            .secret(credential.place.as_ref(), &self.instance.origin)
            .map_err(|error| error.to_string())?;
        let http = shared.access.http.clone();
        Upstream::new(self.instance.api, http, address, secret).map_err(|error| error.to_string())
    }

    async fn without_token(&self, shared: &Shared) -> Result<Credential, StoreError> {
        let instance = self.instance.id;
        shared
            .store
            .write(clock::root(), move |tx| {
                credential::of_place(tx, instance, None, ANONYMOUS, now_ms())
            })
            .await
    }
}

/// The name of the credential that is none.
pub(crate) const ANONYMOUS: &str = "anonymous";
const UNREADABLE_REST_MS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use driftline_core::answer::{Failure, FailureKind};

    use super::{super::testing::World, *};
    use crate::warnings::Warnings;

    async fn names(world: &World, keyring: &mut Keyring, than: CredentialId) -> Vec<String> {
        let others = keyring.others(&world.shared, than).await.unwrap();
        others.into_iter().map(|of| of.credential.name).collect()
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
    async fn a_token_is_read_again_once_its_credential_was_refused_or_taken_again() {
        let world = World::new().await;
        let (first, second) = (world.credential("one").await, world.credential("two").await);
        let mut keyring = Keyring::new(&world.instance().await);
        assert_eq!(names(&world, &mut keyring, first).await, ["two"]);
        // A token that is known is not read each time.
        let token = world.token_of("two");
        std::fs::remove_file(&token).unwrap();
        assert_eq!(names(&world, &mut keyring, first).await, ["two"]);
        // Another worker has it refused, and it is taken again before this one looks.
        let quotas = &world.shared.access.quotas;
        let refused = Failure::new(FailureKind::Unauthorized, "no");
        let two = credential(&world, second).await;
        let failed = quotas.failed(&two, "requests", QuotaPurpose::Refresh, &refused);
        failed.await.unwrap();
        quotas.restore(&two).await.unwrap();
        assert!(names(&world, &mut keyring, first).await.is_empty());
    }

    #[tokio::test]
    async fn a_token_that_no_worker_can_read_is_told_of_once() {
        let (told, _listening) = Warnings::listen();
        let world = World::new().await;
        let (first, _) = (world.credential("one").await, world.credential("two").await);
        std::fs::remove_file(world.token_of("two")).unwrap();
        for _ in 0..3 {
            let mut keyring = Keyring::new(&world.instance().await);
            assert!(names(&world, &mut keyring, first).await.is_empty());
        }
        assert_eq!(told.times("this process cannot use it"), 1);
        std::fs::write(world.token_of("two"), "two").unwrap();
        for _ in 0..2 {
            let mut keyring = Keyring::new(&world.instance().await);
            assert_eq!(names(&world, &mut keyring, first).await, ["two"]);
        }
        assert_eq!(told.times("this process can use it again"), 1);
    }

    #[tokio::test]
    async fn a_token_is_read_again_after_another_process_had_it_refused() {
        let world = World::new().await;
        let (first, second) = (world.credential("one").await, world.credential("two").await);
        let mut keyring = Keyring::new(&world.instance().await);
        assert_eq!(names(&world, &mut keyring, first).await, ["two"]);
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
        assert!(names(&world, &mut keyring, first).await.is_empty());
        let restored = store.write(root(), move |tx| credential::restore(tx, second));
        assert!(restored.await.unwrap());
        assert!(names(&world, &mut keyring, first).await.is_empty());
    }
}
