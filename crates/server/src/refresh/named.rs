use driftline_store::{
    InstanceId, StoreError,
    credential::{self, Credential},
};

use super::{Refreshers, Shared};

/// The credentials that posts are to be refreshed with, by the configuration, as they stand.
#[derive(Debug, Default)]
pub(crate) struct Named {
    names: Vec<String>,
    all: Vec<Credential>,
}

impl Named {
    pub(super) async fn read(shared: &Shared) -> Result<Self, StoreError> {
        let names = shared.options.credentials.clone();
        if names.is_empty() {
            return Ok(Self::default());
        }
        let all = shared.read(credential::list).await?;
        Ok(Self { names, all })
    }

    /// The names that no credential has.
    pub(crate) fn unknown(&self) -> Vec<String> {
        let is_unknown = |name: &&String| self.all.iter().all(|known| known.name != **name);
        self.names.iter().filter(is_unknown).cloned().collect()
    }

    /// Whether none of them is an instance's, so that nothing refreshes its posts.
    pub(crate) fn leaves_out(&self, instance: InstanceId) -> bool {
        let is_asked =
            |known: &Credential| known.instance == instance && self.names.contains(&known.name);
        !self.names.is_empty() && !self.all.iter().any(is_asked)
    }
}

impl Refreshers {
    /// The credentials that the configuration names, as they stand.
    pub(crate) async fn named(&self) -> Result<Named, StoreError> {
        Named::read(&self.shared).await
    }
}

/// The names that were found unknown and warned of.
#[derive(Debug, Default)]
pub(super) struct Warned(Vec<String>);

impl Warned {
    /// Warns of names that have become unknown since the last time, or were from the beginning.
    pub(super) async fn look(&mut self, shared: &Shared) -> Result<(), StoreError> {
        for name in self.take(Named::read(shared).await?.unknown()) {
            tracing::warn!(
                "refresh.credentials names {name:?}, and there is no such credential: nothing is refreshed with it; `driftline credential list` shows the names, `driftline credential add` adds one"
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
    async fn names_without_a_credential_are_warned_of_once_each_time_they_lose_it() {
        let mut world = World::new().await;
        let id = world.credential("one").await;
        let shared = Arc::get_mut(&mut world.shared).unwrap();
        shared.options.credentials = vec!["nope".into(), "one".into()];
        let instance = world.instance().await.id;
        let mut warned = Warned::default();
        let named = Named::read(&world.shared).await.unwrap();
        assert_eq!(named.unknown(), ["nope"]);
        assert!(!named.leaves_out(instance));
        assert_eq!(warned.take(named.unknown()), ["nope"]);
        assert!(warned.take(named.unknown()).is_empty());
        let store = &world.shared.store;
        let removed = store.write(driftline_store::clock::root(), move |tx| {
            credential::remove(tx, id)
        });
        removed.await.unwrap();
        let named = Named::read(&world.shared).await.unwrap();
        assert_eq!(warned.take(named.unknown()), ["one"]);
        assert!(named.leaves_out(instance));
        assert_eq!(warned.take(vec![]), [""; 0]);
        assert_eq!(warned.take(named.unknown()), ["nope", "one"]);
    }
}
