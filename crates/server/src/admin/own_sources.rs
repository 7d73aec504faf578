//! An account's own sources, as the account sees and changes them over HTTP.

use driftline_api::sources::{NewOwnSource, OwnSource, OwnSourceChange};
use driftline_core::timeline::Settings;
use driftline_runtime::CommandError;
use driftline_store::{
    LocalAccountId, Owner, SourceId, StoreError,
    social::local_account,
    source::{self, Source},
};
use driftline_upstream::Address;
use secrecy::SecretString;

use super::{
    AddSource, Host, PauseSource, RemoveSource, SetSource, SourceRow, pause, source_removal,
    source_settings, sources,
};

/// An account's sources with their states.
pub(crate) async fn list(
    host: &Host,
    account: LocalAccountId,
) -> Result<Vec<OwnSource>, CommandError> {
    let host = acting_as(host, account).await?;
    let (all, readings) = sources::Readings::read(&host).await?;
    let own = all
        .into_iter()
        .filter(|source| source.owner == Owner::Account(account));
    Ok(own.map(|source| shown(readings.row(source))).collect())
}

/// Adds a source for an account.
pub(crate) async fn add(
    host: &Host,
    account: LocalAccountId,
    new: NewOwnSource,
) -> Result<OwnSource, CommandError> {
    let host = acting_as(host, account).await?;
    let token = sealed(&host, new.token.as_ref(), &new.url)?;
    let added = sources::add(
        &host,
        AddSource {
            owner: host.account.clone(),
            name: new.name,
            address: new.url,
            api: new.kind.unwrap_or_default(),
            timeline: new.timeline,
            token,
            settings: Settings::default(),
            allow_private: false,
            audience: new.audience,
            check: true,
        },
    );
    let id = added.await?.id;
    one(&host, account, id)
        .await?
        .ok_or_else(|| StoreError::NoSource.into())
}

/// Changes a source of an account; `None` if it has no such source.
pub(crate) async fn change(
    host: &Host,
    account: LocalAccountId,
    id: SourceId,
    change: OwnSourceChange,
) -> Result<Option<OwnSource>, CommandError> {
    let host = acting_as(host, account).await?;
    let Some(source) = owned(&host, account, id).await? else {
        return Ok(None);
    };
    let token = sealed(&host, change.token.as_ref(), &source.instance.origin)?;
    let set = SetSource {
        name: source.name.clone(),
        rename: change.name,
        settings: source.settings.clone(),
        token,
        allow_private: None,
        audience: change.audience,
        refreshing: None,
        check: true,
    };
    let name = source_settings::set(&host, set).await?.name;
    if let Some(paused) = change.paused {
        pause(&host, PauseSource { name, paused }).await?;
    }
    one(&host, account, id).await
}

/// Removes a source of an account; `false` if it has no such source.
pub(crate) async fn remove(
    host: &Host,
    account: LocalAccountId,
    id: SourceId,
) -> Result<bool, CommandError> {
    let host = acting_as(host, account).await?;
    let Some(source) = owned(&host, account, id).await? else {
        return Ok(false);
    };
    let request = RemoveSource {
        name: source.name,
        keep_posts: false,
    };
    source_removal::remove(&host, request).await?;
    Ok(true)
}

async fn acting_as(host: &Host, account: LocalAccountId) -> Result<Host, CommandError> {
    let find = host.store.read(move |tx| local_account::by_id(tx, account));
    let found = find.await?.ok_or(StoreError::NoAccount)?;
    host.clone().acting_as(Some(&found.name)).await
}

async fn owned(
    host: &Host,
    account: LocalAccountId,
    id: SourceId,
) -> Result<Option<Source>, CommandError> {
    let found = host.store.read(move |tx| source::by_id(tx, id)).await?;
    Ok(found.filter(|source| source.owner == Owner::Account(account)))
}

async fn one(
    host: &Host,
    account: LocalAccountId,
    id: SourceId,
) -> Result<Option<OwnSource>, CommandError> {
    let all = list(host, account).await?;
    Ok(all.into_iter().find(|source| source.id == id.to_string()))
}

/// The token as the store keeps it, for the server at that address alone.
fn sealed(
    host: &Host,
    token: Option<&SecretString>,
    address: &str,
) -> Result<Option<source::TokenLocation>, CommandError> {
    let Some(token) = token else {
        return Ok(None);
    };
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    let origin = Address::parse(address)
        .map_err(CommandError::usage)?
        .to_string();
    let sealed = access.secrets.seal(token, &origin);
    sealed.map(Some).map_err(CommandError::usage)
}

fn shown(row: SourceRow) -> OwnSource {
    OwnSource {
        id: row.id.to_string(),
        name: source::parts_of_name(&row.name).1.to_owned(),
        url: row.upstream,
        kind: row.kind,
        timeline: row.timeline,
        audience: row.audience,
        paused: row.paused,
        state: row.state.name().to_owned(),
        state_text: row.state_text,
    }
}
