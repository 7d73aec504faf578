//! Commands that show and change what a source's operator decided.

use driftline_core::{names::audience::Audience, timeline::Settings};
use driftline_runtime::CommandError;
use driftline_store::{
    Owner, StoreError, Tx, credential, local_ids,
    social::account_source::{self, SourceRefused},
    source::{self, NameRefused, NewSource},
};

use super::{
    ChangedSource, Host, SetSource, ShowSettings, changeable, source_fit::check_stream,
    sources::sealed, timeline_check::check,
};

/// What the source's operator decided.
pub(super) async fn show(host: &Host, request: ShowSettings) -> Result<Settings, CommandError> {
    Ok(changeable(host, &request.name).await?.settings)
}

/// Changes a source's settings. The session that reads it, in whatever process, ends when its request is
/// answered, and another one goes on.
pub(super) async fn set(host: &Host, request: SetSource) -> Result<ChangedSource, CommandError> {
    let source = changeable(host, &request.name).await?;
    let account = match source.owner {
        Owner::Operator => None,
        Owner::Account(account) => Some(account),
    };
    if account.is_some() && request.allow_private == Some(true) {
        return Err(CommandError::usage(SourceRefused::PrivateNetwork));
    }
    let is_tracked = !source.kind.is_polled();
    if is_tracked && (request.token.is_some() || request.settings != source.settings) {
        return Err(CommandError::usage(format!(
            "{} holds posts that were named one by one and is not polled: only --rename, --refresh, --audience and --allow-private can be set; `driftline credential add` adds a token to look posts up with",
            source.name
        )));
    }
    if request.settings.stream != source.settings.stream
        && let Ok(timeline) = source.timeline.parse()
    {
        check_stream(source.instance.api, &timeline, &request.settings)?;
    }
    let (mut warning, mut new_token) = (None, request.token.clone());
    if request.token.is_some() {
        let row = NewSource {
            name: source.name.clone(),
            origin: source.instance.origin.clone(),
            api: source.instance.api,
            timeline: source.timeline.clone(),
            kind: source.kind,
            upstream: source.upstream.clone(),
            settings: request.settings.clone(),
            token: request.token.clone(),
            allow_private: request.allow_private.unwrap_or(source.allow_private),
            owner: source.owner,
            audience: source.audience,
        };
        if request.check {
            warning = check(host, &row, UNCHECKED).await?;
        }
        if account.is_some() {
            new_token = sealed(host, &row).await?;
        }
    }
    let token = new_token.filter(|token| source.token.as_ref() != Some(token));
    let settings = Some(request.settings).filter(|settings| *settings != source.settings);
    let allow_private = request
        .allow_private
        .filter(|allow| *allow != source.allow_private);
    let audience = request
        .audience
        .filter(|audience| *audience != source.audience);
    let refreshing = request.refreshing.filter(|on| *on != source.refreshing);
    // Of an account's source only its own part of the name changes.
    let rename = request
        .rename
        .map(|name| match source::parts_of_name(&source.name) {
            (Some(account), _) => format!("{account}/{name}"),
            (None, _) => name,
        });
    let rename = rename.filter(|name| *name != source.name);
    let replaces_token = token.is_some();
    let name = rename.clone().unwrap_or_else(|| source.name.clone());
    let has_token = token.is_some() || source.token.is_some();
    let shows_the_world = has_token && audience.unwrap_or(source.audience) == Audience::Public;
    let changed = token.is_some()
        || settings.is_some()
        || allow_private.is_some()
        || audience.is_some()
        || refreshing.is_some()
        || rename.is_some();
    if changed {
        let (key, owner) = (source.key(), source.owner);
        let access = host.access.as_ref();
        let policies = access.map(|access| access.policies.clone());
        let policy = policies.unwrap_or_default().of(key.instance);
        let write = host.store.write(source::root(key), move |tx| {
            // What is refused leaves everything as it is.
            if let Some(audience) = audience
                && !account_source::may_have(tx, owner, audience)?
            {
                return Ok(Err(SourceRefused::MayNotPublish));
            }
            if let Some(name) = &rename
                && let Err(refused) = source::rename(tx, key, name)?
            {
                return Ok(Err(SourceRefused::Name(refused)));
            }
            if let Some(settings) = &settings {
                source::set_settings(tx, key, settings)?;
            }
            if let Some(allow) = allow_private {
                source::set_allow_private(tx, key, allow)?;
            }
            if let Some(token) = &token {
                source::set_token(tx, key, Some(token))?;
            }
            if let Some(audience) = audience {
                source::set_audience(tx, key, audience)?;
            }
            if let Some(refreshing) = refreshing {
                source::set_refreshing(tx, key, refreshing, &policy)?;
            }
            Ok::<_, StoreError>(Ok(()))
        });
        match write.await? {
            Ok(()) => {}
            Err(SourceRefused::Name(NameRefused::Taken)) => {
                return Err(CommandError::usage(format!(
                    "there is a source named {name:?} already; nothing was changed"
                )));
            }
            Err(refused) => return Err(CommandError::usage(refused)),
        }
    }
    if let Some(account) = account.filter(|_| replaces_token) {
        let instance = source.instance.id;
        let unused = move |tx: &mut Tx<'_>| credential::remove_unused(tx, instance, account);
        host.store.write(local_ids::root(), unused).await?;
    }
    Ok(ChangedSource {
        name,
        changed,
        warning,
        shows_the_world,
    })
}

const UNCHECKED: &str = "nothing was changed; --no-check keeps the token without asking the server";
