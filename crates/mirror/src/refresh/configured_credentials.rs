use driftline_store::{
    InstanceId, StoreError,
    credential::{self, Credential},
};

use super::{Refreshers, Shared};

/// The credentials that `refresh.credentials` names, as they are in the store.
#[derive(Debug, Default)]
pub struct ConfiguredCredentials {
    names: Vec<String>,
    all: Vec<Credential>,
}

impl ConfiguredCredentials {
    pub(super) async fn read(shared: &Shared) -> Result<Self, StoreError> {
        let names = shared.options.credentials.clone();
        if names.is_empty() {
            return Ok(Self::default());
        }
        let all = shared.store.read(credential::list).await?;
        Ok(Self { names, all })
    }

    /// Configured names without a credential.
    pub fn unknown(&self) -> Vec<String> {
        let is_unknown = |name: &&String| self.all.iter().all(|known| known.name != **name);
        self.names.iter().filter(is_unknown).cloned().collect()
    }

    /// Whether none of them belongs to the instance, so that nothing refreshes its posts.
    pub fn leaves_out(&self, instance: InstanceId) -> bool {
        let is_asked =
            |known: &Credential| known.instance == instance && self.names.contains(&known.name);
        !self.names.is_empty() && !self.all.iter().any(is_asked)
    }
}

impl Refreshers {
    /// The credentials that `refresh.credentials` names, as they are in the store.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn configured_credentials(&self) -> Result<ConfiguredCredentials, StoreError> {
        ConfiguredCredentials::read(&self.shared).await
    }
}

/// Configured names without a credential that were warned about.
#[derive(Debug, Default)]
pub(super) struct UnknownNames(Vec<String>);

impl UnknownNames {
    /// Warns about names that have become unknown since the last call.
    pub(super) async fn warn(&mut self, shared: &Shared) -> Result<(), StoreError> {
        for name in self.take(ConfiguredCredentials::read(shared).await?.unknown()) {
            tracing::warn!(
                "unknown credential {name:?} in refresh.credentials: nothing is refreshed with it; `driftline credential list` shows the names, `driftline credential add` adds one"
            );
        }
        Ok(())
    }

    fn take(&mut self, unknown: Vec<String>) -> Vec<String> {
        let before = std::mem::replace(&mut self.0, unknown);
        let is_new = |name: &&String| !before.contains(name);
        self.0.iter().filter(is_new).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{super::testing::World, *};

    #[tokio::test]
    async fn a_name_that_loses_its_credential_is_warned_about_once() {
        let mut world = World::new().await;
        let key = world.credential("one").await;
        let shared = Arc::get_mut(&mut world.shared).unwrap();
        shared.options.credentials = vec!["nope".into(), "one".into()];
        let instance = world.instance().await.id;
        let mut unknown_names = UnknownNames::default();
        let configured = ConfiguredCredentials::read(&world.shared).await.unwrap();
        assert_eq!(configured.unknown(), ["nope"]);
        assert!(!configured.leaves_out(instance));
        assert_eq!(unknown_names.take(configured.unknown()), ["nope"]);
        assert!(unknown_names.take(configured.unknown()).is_empty());
        let store = &world.shared.store;
        let removed = store.write(driftline_store::local_ids::root(), move |tx| {
            credential::remove(tx, key)
        });
        removed.await.unwrap();
        let configured = ConfiguredCredentials::read(&world.shared).await.unwrap();
        assert_eq!(unknown_names.take(configured.unknown()), ["one"]);
        assert!(configured.leaves_out(instance));
        assert_eq!(unknown_names.take(vec![]), [""; 0]);
        assert_eq!(unknown_names.take(configured.unknown()), ["nope", "one"]);
    }
}
