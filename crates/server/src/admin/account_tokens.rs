//! Commands on what is logged in to an account.

use driftline_runtime::{CommandError, now_ms};
use driftline_store::social::{
    access_token::ListedToken,
    local_account,
    log_ins::{self, LogIns},
    token_family::TokenFamily,
    web_session::WebSession,
};

use super::{
    AccountTokenRow, Host, ListAccountTokens, RevokeAccountToken, RevokedToken, TokenKind,
    accounts::find,
};

/// What is logged in to an account.
pub(super) async fn list(
    host: &Host,
    request: ListAccountTokens,
) -> Result<Vec<AccountTokenRow>, CommandError> {
    let account = find(&host.store, &request.name).await?.id;
    let log_ins = host
        .store
        .read(move |tx| log_ins::list(tx, account, now_ms()));
    let LogIns {
        tokens,
        families,
        sessions,
    } = log_ins.await?;
    let tokens = tokens.into_iter().map(of_app);
    let families = families.into_iter().map(of_device);
    let sessions = sessions.into_iter().map(of_browser);
    Ok(tokens.chain(families).chain(sessions).collect())
}

/// Ends one of them.
pub(super) async fn revoke(
    host: &Host,
    request: RevokeAccountToken,
) -> Result<RevokedToken, CommandError> {
    let RevokeAccountToken { name, id } = request;
    let account = find(&host.store, &name).await?.id;
    let end = host.store.write(local_account::root(account), move |tx| {
        log_ins::end(tx, account, id)
    });
    let is_revoked = end.await?;
    host.callers.forget(account);
    match is_revoked {
        true => Ok(RevokedToken { name, id }),
        false => Err(CommandError::usage(format!(
            "nothing with the ID {id} is logged in to {name}; `driftline account tokens {name}` shows the IDs"
        ))),
    }
}

fn of_app(listed: ListedToken) -> AccountTokenRow {
    AccountTokenRow {
        kind: TokenKind::App,
        id: listed.token.id.to_string(),
        name: listed.app_name,
        scopes: Some(listed.token.scopes),
        created_at_ms: listed.token.created_at_ms,
        used_at_ms: Some(listed.token.used_at_ms),
        ends_at_ms: None,
    }
}

fn of_device(family: TokenFamily) -> AccountTokenRow {
    AccountTokenRow {
        kind: TokenKind::Device,
        id: family.id.to_string(),
        name: family.device,
        scopes: None,
        created_at_ms: family.created_at_ms,
        used_at_ms: Some(family.rotated_at_ms),
        ends_at_ms: Some(family.ends_at_ms),
    }
}

fn of_browser(session: WebSession) -> AccountTokenRow {
    AccountTokenRow {
        kind: TokenKind::Browser,
        id: session.id.to_string(),
        name: session.browser,
        scopes: None,
        created_at_ms: session.created_at_ms,
        used_at_ms: None,
        ends_at_ms: Some(session.ends_at_ms),
    }
}
