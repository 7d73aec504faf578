//! The credential that a source is read with.

use driftline_runtime::now_ms;
use driftline_store::{
    Store, StoreError,
    credential::{self, Credential},
    local_ids,
    source::Source,
};

use crate::refresh::ANONYMOUS;

/// The credential of the source, added if there is none, so that its use of quotas is counted.
pub(crate) async fn credential_of(
    store: &Store,
    source: &Source,
) -> Result<Credential, StoreError> {
    let (instance, location) = (source.instance.id, source.token.clone());
    let known = {
        let location = location.clone();
        store
            .read(move |tx| credential::find(tx, instance, location.as_ref()))
            .await?
    };
    if let Some(known) = known {
        return Ok(known);
    }
    let name = match location {
        Some(_) => source.name.clone(),
        None => ANONYMOUS.to_owned(),
    };
    store
        .write(local_ids::root(), move |tx| {
            credential::find_or_add(tx, instance, location.as_ref(), &name, now_ms())
        })
        .await
}
