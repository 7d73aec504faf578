use driftline_core::api::Api;
use driftline_runtime::CommandError;
use driftline_store::{Store, instance};

/// Checks that an instance, if it is known, speaks this API: it speaks only one.
///
/// # Errors
/// [`CommandError`] if it speaks another.
pub async fn same_api(store: &Store, origin: &str, api: Api) -> Result<(), CommandError> {
    let origin_owned = origin.to_owned();
    let known = store
        .read(move |tx| instance::by_origin(tx, &origin_owned))
        .await?;
    match known {
        Some(known) if known.api != api => Err(CommandError::usage(format!(
            "{origin} is known to speak {}; write --kind {}",
            known.api, known.api
        ))),
        _ => Ok(()),
    }
}
