//! How an instance is asked without a token.

use driftline_runtime::now_ms;
use driftline_store::{
    InstanceId, Owner, Store, StoreError, Tx,
    credential::{self, Credential},
    instance::{self, Instance},
    local_ids, source,
};

use crate::{client::Server, refresh::ANONYMOUS};

/// An instance that is asked without a token.
#[derive(Debug, Clone)]
pub(crate) struct AnonymousAccess {
    /// The instance.
    pub(crate) instance: Instance,
    /// Whether the operator lets it be in a private network.
    pub(crate) allow_private: bool,
    /// For whom it is asked: where only accounts' sources are, no further than theirs reach.
    pub(crate) asker: Owner,
}

impl AnonymousAccess {
    /// Reads how the instance of that ID is asked; `None` if there is none.
    pub(crate) fn load(tx: &mut Tx<'_>, id: InstanceId) -> Result<Option<Self>, StoreError> {
        let Some(instance) = instance::by_id(tx, id)? else {
            return Ok(None);
        };
        let owners = source::owners(tx, id)?;
        let is_operators = owners.iter().any(|(owner, _)| *owner == Owner::Operator);
        let first = owners.first().filter(|_| !is_operators);
        Ok(Some(Self {
            instance,
            allow_private: source::allows_private(tx, id)?,
            asker: first.map_or(Owner::Operator, |(owner, _)| *owner),
        }))
    }

    /// Its server.
    pub(crate) fn server(&self) -> Server<'_> {
        Server::of(&self.instance, self.allow_private, self.asker)
    }

    /// The credential without a token, added if there is none, so that requests count.
    ///
    /// # Errors
    /// [`StoreError::NoSource`] if the instance was forgotten meanwhile.
    pub(crate) async fn credential(&self, store: &Store) -> Result<Credential, StoreError> {
        let id = self.instance.id;
        let known = store.read(move |tx| credential::find(tx, id, (Owner::Operator, None)));
        if let Some(known) = known.await? {
            return Ok(known);
        }
        let add = move |tx: &mut Tx<'_>| {
            if instance::by_id(tx, id)?.is_none() {
                return Err(StoreError::NoSource);
            }
            credential::find_or_add(tx, id, (Owner::Operator, None), ANONYMOUS, now_ms())
        };
        store.write(local_ids::root(), add).await
    }
}
