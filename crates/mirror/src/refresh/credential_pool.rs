//! The credentials that the posts of an instance may be looked up with.

use driftline_core::names::audience::Audience;
use driftline_runtime::{Weight, now_ms, random, show_ms};
use driftline_store::{
    CredentialId, InstanceId, Owner, StoreError, Tx,
    credential::{self, Credential},
    instance::Instance,
    local_ids,
    refresh::LookupAccess,
    source::{self, TokenLocation},
};
use driftline_upstream::look_ups;

use super::{Shared, lookup_client::LookupClient};
use crate::{
    client::Server,
    quotas::{Charge, Permit},
};

/// The credentials of an instance, and what its sources say of its server.
struct Pool {
    all: Vec<Credential>,
    /// The owners of its sources, each with whether tokens read all of them.
    owners: Vec<(Owner, bool)>,
    allow_private: bool,
}

impl Pool {
    async fn load(shared: &Shared, instance: &Instance) -> Result<Self, StoreError> {
        let (id, named) = (instance.id, shared.options.credentials.clone());
        let read = shared.store.read(move |tx| {
            Ok::<_, StoreError>(Self {
                all: credential::of_instance(tx, id)?,
                owners: source::owners(tx, id)?,
                allow_private: source::allows_private(tx, id)?,
            })
        });
        let mut pool = read.await?;
        // The operator names their own; those of accounts serve for what these have alone.
        pool.all.retain(|of| {
            named.is_empty() || of.owner != Owner::Operator || named.contains(&of.name)
        });
        // A credential that the operator names serves for all posts.
        for of in &mut pool.all {
            if named.contains(&of.name) {
                of.audience = Audience::Public;
            }
        }
        Ok(pool)
    }

    /// Its operator's credentials, and the one without a token.
    fn operators(&self) -> impl Iterator<Item = &Credential> {
        let all = self.all.iter();
        all.filter(|credential| credential.owner == Owner::Operator)
    }

    /// Whether posts may be due for which the operator's credentials, or none, serve.
    fn needs_operators(&self) -> bool {
        let of_operator =
            |(owner, has_tokens): &(Owner, bool)| *owner == Owner::Operator || !has_tokens;
        self.owners.is_empty() || self.owners.iter().any(of_operator)
    }

    /// The server as that credential asks it: where only accounts read it, it is asked for them also without a
    /// token.
    fn server<'a>(&self, instance: &'a Instance, credential: &Credential) -> Server<'a> {
        let is_operators = credential.token.is_some()
            || self
                .owners
                .first()
                .is_none_or(|(owner, _)| *owner == Owner::Operator)
            || self.operators().any(|of| of.token.is_some());
        let asker = match (is_operators, self.owners.first()) {
            (false, Some((account, _))) => *account,
            _ => credential.owner,
        };
        Server::of(instance, self.allow_private, asker)
    }
}

/// A credential of the operator's, or the one without a token, that may be used now, with the charge of one
/// request for a batch; otherwise when to look again, Unix ms. `None` where only accounts have credentials, or
/// what only their credentials may look up: [`choose_for`] chooses among these by the post.
pub(super) async fn choose(
    shared: &Shared,
    instance: &Instance,
    has_batch: bool,
) -> Result<Result<Option<(LookupClient, Charge)>, i64>, StoreError> {
    let mut pool = Pool::load(shared, instance).await?;
    if shared.options.credentials.is_empty() && pool.operators().next().is_none() {
        pool.all.push(anonymous(shared, instance.id).await?);
    }
    let mut own: Vec<&Credential> = pool.operators().collect();
    let first = random() as usize % own.len().max(1);
    own.rotate_left(first);
    // Credentials with a token see more and have larger quotas.
    own.sort_by_key(|credential| credential.token.is_none());
    let (_, posts) = look_ups(instance.api, has_batch);
    let mut until_ms = i64::MAX;
    for credential in own {
        if let Some(lookup_client) =
            lookup_client(shared, pool.server(instance, credential), credential)
        {
            match lookup_client.take(posts).await? {
                Permit::Sent(charge) => return Ok(Ok(Some((lookup_client, charge)))),
                Permit::Until(free_ms) => until_ms = until_ms.min(free_ms),
            }
        }
    }
    refuse_if_unusable(shared, instance, &pool);
    let is_accounts = |credential: &Credential| credential.owner != Owner::Operator;
    let has_accounts = pool.all.iter().any(is_accounts);
    let waits = pool.needs_operators() && until_ms < i64::MAX;
    Ok(match has_accounts && !waits {
        true => Ok(None),
        false => Err(until_ms),
    })
}

/// What looks up a post.
pub(super) enum Chosen {
    /// This credential, with the charge of a request.
    Client(Box<LookupClient>, Charge),
    /// None before that time, Unix ms.
    Until(i64),
    /// Nobody who may ask for the post has one.
    NoCredential,
}

/// A credential that may be used now for posts with that access: never an account's for what the world may
/// see.
pub(super) async fn choose_for(
    shared: &Shared,
    instance: &Instance,
    access: &LookupAccess,
    posts: usize,
) -> Result<Chosen, StoreError> {
    let mut pool = Pool::load(shared, instance).await?;
    let has_none = pool
        .operators()
        .all(|credential| credential.token.is_some());
    if has_none && access.admits(Owner::Operator, false) && shared.options.credentials.is_empty() {
        pool.all.push(anonymous(shared, instance.id).await?);
    }
    let admitted = |credential: &&Credential| {
        let is_spared = access.is_shared() && credential.owner != Owner::Operator;
        !is_spared && access.admits_credential(credential)
    };
    let mut admitted: Vec<&Credential> = pool.all.iter().filter(admitted).collect();
    if admitted.is_empty() {
        return Ok(Chosen::NoCredential);
    }
    // The operator's first: an account's quota is its own.
    admitted.sort_by_key(|of| (of.owner != Owner::Operator, of.token.is_none()));
    let mut until_ms = i64::MAX;
    for credential in admitted {
        if let Some(lookup_client) =
            lookup_client(shared, pool.server(instance, credential), credential)
        {
            match lookup_client.take(posts).await? {
                Permit::Sent(charge) => {
                    return Ok(Chosen::Client(Box::new(lookup_client), charge));
                }
                Permit::Until(free_ms) => until_ms = until_ms.min(free_ms),
            }
        }
    }
    // One that this process cannot read, or that rests, may serve again.
    Ok(Chosen::Until(until_ms.min(now_ms() + UNUSABLE_MS)))
}

async fn anonymous(shared: &Shared, id: InstanceId) -> Result<Credential, StoreError> {
    let add = move |tx: &mut Tx<'_>| {
        credential::find_or_add(tx, id, (Owner::Operator, None), ANONYMOUS, now_ms())
    };
    shared.store.write(local_ids::root(), add).await
}

/// Leaves the instance to other processes while this one can read none of its tokens, or has none of
/// those that it is to use.
fn refuse_if_unusable(shared: &Shared, instance: &Instance, pool: &Pool) {
    let Some(sharing) = &shared.options.sharing else {
        return;
    };
    let is_usable = |credential: &Credential| {
        let server = pool.server(instance, credential);
        let client = shared.access.client(server, credential.token.as_ref());
        client.is_ok()
    };
    // Where none is named, the one without a token comes with the first request.
    let is_first = pool.all.is_empty() && shared.options.credentials.is_empty();
    let refuses = !is_first && !pool.all.iter().any(is_usable);
    sharing.refuse_instance(instance.id, refuses);
}

/// Finds out whether a token of an instance that this process left to others can be read again.
pub(super) async fn retry_refused(shared: &Shared, instance: &Instance) -> Result<(), StoreError> {
    let sharing = shared.options.sharing.as_ref();
    if !sharing.is_some_and(|sharing| sharing.refuses_instance(instance.id)) {
        return Ok(());
    }
    let pool = Pool::load(shared, instance).await?;
    refuse_if_unusable(shared, instance, &pool);
    Ok(())
}

/// The other credentials that may be used now, whatever their quotas. This includes those of
/// sources even if posts are refreshed with others only, since stored posts were seen with them. Each may be used
/// for those posts alone that it may ask for.
pub(super) async fn others(
    shared: &Shared,
    instance: &Instance,
    than: CredentialId,
) -> Result<Vec<LookupClient>, StoreError> {
    let id = instance.id;
    let read = shared.store.read(move |tx| {
        let pool = Pool {
            all: credential::of_instance(tx, id)?,
            owners: source::owners(tx, id)?,
            allow_private: source::allows_private(tx, id)?,
        };
        Ok::<_, StoreError>((pool, source::list(tx)?))
    });
    let (pool, mut sources) = read.await?;
    sources.retain(|source| source.instance.id == id);
    let tokens: Vec<Option<TokenLocation>> = sources.into_iter().map(|of| of.token).collect();
    let named = &shared.options.credentials;
    let is_asked = |credential: &&Credential| {
        let is_named = named.is_empty() || named.contains(&credential.name);
        credential.id != than && (is_named || tokens.contains(&credential.token))
    };
    let others = pool.all.iter().filter(is_asked);
    let clients = others.filter_map(|credential| {
        lookup_client(shared, pool.server(instance, credential), credential)
    });
    Ok(clients.collect())
}

/// A credential's client; `None` while it is quarantined or this process cannot read its token.
/// Another process may be able to, so the store does not record that. The token is read each time,
/// since it may have been changed.
fn lookup_client(
    shared: &Shared,
    server: Server<'_>,
    credential: &Credential,
) -> Option<LookupClient> {
    let now = now_ms();
    if credential
        .quarantine
        .as_ref()
        .is_some_and(|rest| rest.lasts(now))
    {
        return None;
    }
    let (access, token) = (&shared.access, credential.token.as_ref());
    match access.client(server, token) {
        Ok(client) => {
            if let Some(failed_ms) = shared.unusable.succeeded(&credential.id, now) {
                tracing::warn!(credential = %credential.name, "this process can use the credential again, after {}", show_ms(failed_ms));
            }
            Some(LookupClient::new(&access.quotas, credential, client))
        }
        Err(reason) => {
            if shared.unusable.failed(credential.id, Weight::Lasting, now) {
                tracing::warn!(credential = %credential.name, "this process cannot use the credential: {reason}");
            }
            None
        }
    }
}

/// The name of the credential without a token.
pub(crate) const ANONYMOUS: &str = "anonymous";
/// How soon a credential that this process cannot use is tried again, ms.
const UNUSABLE_MS: i64 = 60_000;

#[cfg(test)]
mod tests {
    use driftline_core::{
        answer::{Failure, FailureKind},
        quota::QuotaPurpose,
    };
    use driftline_runtime::testing::Warnings;
    use driftline_store::{
        CredentialKey, credential::NewCredential, source::NewSource, testing::new_source,
    };

    use super::{super::testing::World, *};

    async fn names(world: &World, than: CredentialKey) -> Vec<String> {
        let instance = world.instance().await;
        let others = others(&world.shared, &instance, than.id).await.unwrap();
        others
            .iter()
            .map(|of| of.credential().name.clone())
            .collect()
    }

    #[tokio::test]
    async fn a_quarantined_credential_is_not_used() {
        let world = World::new().await;
        let (first, second) = (world.credential("one").await, world.credential("two").await);
        assert_eq!(names(&world, first).await, ["two"]);
        let store = &world.shared.store;
        let two = store.read(move |tx| credential::by_key(tx, second)).await;
        let two = two.unwrap().unwrap();
        let quotas = &world.shared.access.quotas;
        let refused = Failure::new(FailureKind::Unauthorized, "no");
        let quota = quotas.of(&two, "requests", QuotaPurpose::Refresh);
        quota.failed(Charge::default(), &refused).await.unwrap();
        assert!(names(&world, first).await.is_empty());
        quotas.restore(&two).await.unwrap();
        assert_eq!(names(&world, first).await, ["two"]);
    }

    #[tokio::test]
    async fn a_token_is_read_each_time_and_an_unreadable_one_is_logged_once() {
        let (warnings, _guard) = Warnings::listen();
        let world = World::new().await;
        let (first, _) = (world.credential("one").await, world.credential("two").await);
        assert_eq!(names(&world, first).await, ["two"]);
        std::fs::remove_file(world.token_of("two")).unwrap();
        for _ in 0..3 {
            assert!(names(&world, first).await.is_empty());
        }
        assert_eq!(warnings.times("this process cannot use the credential"), 1);
        std::fs::write(world.token_of("two"), "two").unwrap();
        for _ in 0..2 {
            assert_eq!(names(&world, first).await, ["two"]);
        }
        assert_eq!(
            warnings.times("this process can use the credential again"),
            1
        );
    }

    #[tokio::test]
    async fn a_source_allows_the_private_server_that_its_instance_is() {
        let world = World::new().await;
        let store = &world.shared.store;
        let origin = "http://10.0.0.7";
        let mut keys = Vec::new();
        for name in ["one", "two"] {
            let new = NewCredential {
                origin: origin.into(),
                ..world.new_credential(name)
            };
            keys.push(world.add_credential(new).await);
        }
        // A token over plain http is not sent to a server that nobody trusts.
        assert!(names(&world, keys[0]).await.is_empty());
        let new = NewSource {
            origin: origin.into(),
            allow_private: true,
            owner: driftline_store::Owner::Operator,
            audience: driftline_core::names::audience::Audience::Public,
            ..new_source("theirs")
        };
        let added = store.write(local_ids::root(), move |tx| source::add(tx, &new, 1));
        let source = added.await.unwrap().unwrap();
        assert_eq!(names(&world, keys[0]).await, ["two"]);
        let instance = world.instance().await;
        assert!(
            choose(&world.shared, &instance, true)
                .await
                .unwrap()
                .is_ok()
        );
        let set = store.write(source::root(source), move |tx| {
            source::set_allow_private(tx, source, false)
        });
        set.await.unwrap();
        assert!(names(&world, keys[0]).await.is_empty());
        assert!(
            choose(&world.shared, &instance, true)
                .await
                .unwrap()
                .is_err()
        );
    }

    #[tokio::test]
    async fn an_instance_is_left_to_others_while_no_token_can_be_read() {
        let world = World::new().await;
        world.credential("one").await;
        world.credential("two").await;
        let (shared, instance) = (&world.shared, world.instance().await);
        let sharing = shared.options.sharing.as_ref().unwrap();
        std::fs::remove_file(world.token_of("one")).unwrap();
        let chosen = choose(shared, &instance, true).await.unwrap();
        assert!(chosen.is_ok() && !sharing.refuses_instance(instance.id));
        std::fs::remove_file(world.token_of("two")).unwrap();
        let chosen = choose(shared, &instance, true).await.unwrap();
        assert!(chosen.is_err() && sharing.refuses_instance(instance.id));
        retry_refused(shared, &instance).await.unwrap();
        assert!(sharing.refuses_instance(instance.id));
        std::fs::write(world.token_of("two"), "two").unwrap();
        retry_refused(shared, &instance).await.unwrap();
        assert!(!sharing.refuses_instance(instance.id));
    }

    #[tokio::test]
    async fn an_instance_is_left_to_others_by_a_process_that_names_no_credential_of_it() {
        let world = World::naming(&["another"]).await;
        world.credential("one").await;
        let (shared, instance) = (&world.shared, world.instance().await);
        let sharing = shared.options.sharing.as_ref().unwrap();
        let chosen = choose(shared, &instance, true).await.unwrap();
        assert!(chosen.is_err() && sharing.refuses_instance(instance.id));
        world.credential("another").await;
        retry_refused(shared, &instance).await.unwrap();
        assert!(!sharing.refuses_instance(instance.id));
    }
}
