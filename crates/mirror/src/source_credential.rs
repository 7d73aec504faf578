//! The credential that a source is read with.

use driftline_runtime::now_ms;
use driftline_store::{
    Store, StoreError, Tx,
    credential::{self, Credential},
    local_ids,
    source::{self, Source},
};

use crate::refresh::ANONYMOUS;

/// The credential of the source, added if there is none, so that its use of quotas is counted.
///
/// # Errors
/// [`StoreError::NoSource`] if the source was removed meanwhile: nothing of a token stays behind then.
pub(crate) async fn credential_of(
    store: &Store,
    source: &Source,
) -> Result<Credential, StoreError> {
    let (instance, owner, location) = (source.instance.id, source.owner, source.token.clone());
    let known = {
        let location = location.clone();
        let find =
            move |tx: &mut Tx<'_>| credential::find(tx, instance, (owner, location.as_ref()));
        store.read(find).await?
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let name = match location {
        Some(_) => source.name.clone(),
        None => ANONYMOUS.to_owned(),
    };
    let id = source.id;
    store
        .write(local_ids::root(), move |tx| {
            let is_there = source::key(tx, id)?.is_some();
            if !is_there {
                return Err(StoreError::NoSource);
            }
            let owned = (owner, location.as_ref());
            credential::find_or_add(tx, instance, owned, &name, now_ms())
        })
        .await
}
