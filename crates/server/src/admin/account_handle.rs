//! Account timelines that are given by the account's name.

use driftline_core::api::Api;
use driftline_mirror::Server;
use driftline_runtime::CommandError;
use driftline_store::Owner;
use driftline_upstream::{AccountHandle, Address};

use super::{AddSource, Host, sources::default_name, timeline_check::refusal};

/// The request with the account's ID in place of its name, which the server is asked for; the name
/// stays in the source's own, if that is not given. Other requests stay as they are.
///
/// # Errors
/// [`CommandError`] if the server knows no such account, or cannot be asked.
pub async fn with_account_id(
    host: &Host,
    mut new: AddSource,
    asker: Owner,
) -> Result<AddSource, CommandError> {
    let Some(handle) = AccountHandle::of_timeline(&new.timeline) else {
        return Ok(new);
    };
    let handle = handle.map_err(CommandError::usage)?;
    if new.api != Api::Mastodon {
        return Err(CommandError::usage(format!(
            "the account {handle} cannot be looked up where servers speak {}; write account:ID with its number",
            new.api
        )));
    }
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    let address = Address::parse(&new.address).map_err(CommandError::usage)?;
    let server = Server {
        api: new.api,
        origin: &address.to_string(),
        allow_private: new.allow_private,
        asker,
    };
    let client = access
        .client(server, new.token.as_ref())
        .map_err(|error| CommandError::usage(format!("{error}; {NOT_LOOKED_UP}")))?;
    let found = client.account_id(&handle).await;
    let found = found.map_err(|failure| {
        let why = refusal(host, &address.to_string(), &failure);
        CommandError::failed(format!("{why}; {NOT_LOOKED_UP}"))
    })?;
    let id = found.ok_or_else(|| {
        CommandError::usage(format!(
            "{address} knows no account {handle}; check the spelling, or write account:ID, if the server looks no names up"
        ))
    })?;
    let named = format!("account:{handle}");
    new.name = new.name.or_else(|| Some(default_name(&address, &named)));
    new.timeline = format!("account:{id}");
    Ok(new)
}

const NOT_LOOKED_UP: &str = "the account was not looked up, and the source was not added; account:ID with the account's ID needs no look-up";
