//! The one request for a timeline that shows whether a source can be read.

use driftline_core::{
    answer::{AnswerHeaders, Failure, FailureKind, Page, PageRequest},
    quota::QuotaPurpose,
};
use driftline_mirror::Server;
use driftline_runtime::CommandError;
use driftline_store::{
    Store, StoreError,
    credential::{self, Credential},
    instance,
    source::NewSource,
};
use driftline_upstream::ClientPurpose;

use super::{Host, counted_request::counted};

/// Requests the timeline once, as a session will, so that errors in the address, the timeline or the
/// token show before the source is stored so. Returns why it was not requested, or not answered, if that
/// is no such error; errors end with `unchecked`, which says what was not done.
pub(super) async fn check(
    host: &Host,
    row: &NewSource,
    unchecked: &str,
) -> Result<Option<String>, CommandError> {
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    let server = Server {
        api: row.api,
        origin: &row.origin,
        allow_private: row.allow_private,
        asker: row.owner,
    };
    let (client, timeline) = access
        .client_of(server, &row.timeline, row.token.as_ref())
        .map_err(|error| CommandError::usage(format!("{error}; {unchecked}")))?;
    let scope = client.scope(ClientPurpose::Page(&timeline));
    let known = credential_of(&host.store, row).await?;
    let quota = known.map(|known| access.quotas.of(&known, scope, QuotaPurpose::Poll));
    let request = PageRequest {
        limit: POSTS,
        ..PageRequest::default()
    };
    let page = client.page(&timeline, &request);
    match counted(quota, u32::from(POSTS), page, used).await? {
        None => Ok(Some("the token's quota is used up for now".to_owned())),
        Some(Ok(_)) => Ok(None),
        // The server knows the timeline and the token.
        Some(Err(failure))
            if matches!(failure.kind, FailureKind::Throttled | FailureKind::Capped) =>
        {
            Ok(Some(failure.message))
        }
        Some(Err(failure)) => Err(CommandError::failed(format!(
            "{}; {unchecked}",
            refusal(host, &row.origin, &failure)
        ))),
    }
}

fn used(page: &Page) -> (u32, &AnswerHeaders) {
    let read = u32::try_from(page.listed.len()).unwrap_or(u32::MAX);
    (read, &page.headers)
}

/// Why a server did not answer. An account is told the same of a name without an address as of one that leads into a
/// private network: the names and addresses there are the operator's to know.
pub(super) fn refusal(host: &Host, origin: &str, failure: &Failure) -> String {
    let is_of_network = matches!(
        failure.kind,
        FailureKind::PrivateAddress | FailureKind::Unreachable
    );
    match host.account.is_some() && is_of_network {
        true => format!("{origin} cannot be reached from here; check the address"),
        false => failure.message.clone(),
    }
}

/// The credential that the source would be read with, if it exists: then the request is counted.
async fn credential_of(store: &Store, row: &NewSource) -> Result<Option<Credential>, StoreError> {
    let (origin, owner, token) = (row.origin.clone(), row.owner, row.token.clone());
    store
        .read(move |tx| {
            let Some(instance) = instance::by_origin(tx, &origin)? else {
                return Ok(None);
            };
            credential::find(tx, instance.id, (owner, token.as_ref()))
        })
        .await
}

/// The page size of the check: the smallest that every API allows.
const POSTS: u16 = 5;
