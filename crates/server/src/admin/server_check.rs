//! The one request for a post that shows whether a server can be reached.

use driftline_core::{answer::FailureKind, quota::QuotaPurpose, upstream_id::UpstreamId};
use driftline_mirror::Server;
use driftline_runtime::CommandError;
use driftline_store::{
    Owner, StoreError, credential, instance,
    source::{self, NewSource},
};
use driftline_upstream::{ClientPurpose, is_post_id};

use super::{Host, counted_request::counted};

/// Requests one of these posts without a token, so that an address that cannot work shows before
/// anything is stored. Asks nothing if the server cannot have any of the IDs, or its quota is used up.
///
/// # Errors
/// [`CommandError`] if no answer of the server came.
pub(super) async fn check(
    host: &Host,
    new: &NewSource,
    ids: &[String],
) -> Result<(), CommandError> {
    use FailureKind::{PrivateAddress, Redirected, TimedOut, Tls, Unreachable};
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    let origin = new.origin.clone();
    let known = host.store.read(move |tx| {
        let Some(instance) = instance::by_origin(tx, &origin)? else {
            return Ok(None);
        };
        let credential = credential::find(tx, instance.id, (Owner::Operator, None))?;
        let allow_private = source::allows_private(tx, instance.id)?;
        Ok::<_, StoreError>(Some((instance.api, allow_private, credential)))
    });
    let (api, allow_private, credential) = known.await?.unwrap_or((new.api, false, None));
    let Some(id) = ids.iter().find(|id| is_post_id(api, id)) else {
        return Ok(());
    };
    let server = Server {
        api,
        origin: &new.origin,
        allow_private: allow_private || new.allow_private,
        asker: Owner::Operator,
    };
    let client = access
        .client(server, None)
        .map_err(|error| CommandError::usage(format!("{error}; {UNCHECKED}")))?;
    let quota = credential.map(|credential| {
        let scope = client.scope(ClientPurpose::LookUp);
        access.quotas.of(&credential, scope, QuotaPurpose::Refresh)
    });
    let id = UpstreamId::from(id.as_str());
    let look_up = client.look_up(&id);
    match counted(quota, 1, look_up, |(_, headers)| (1, headers)).await? {
        Some(Err(failure))
            if matches!(
                failure.kind,
                PrivateAddress | Redirected | TimedOut | Tls | Unreachable
            ) =>
        {
            Err(CommandError::failed(format!(
                "{}; {UNCHECKED}",
                failure.message
            )))
        }
        // Whatever it says of the post, the server is there.
        _ => Ok(()),
    }
}

const UNCHECKED: &str = "no IDs were added; --no-wait adds them without asking the server";
