//! An account's own sources, as the account sees and changes them over HTTP.

use driftline_api::sources::{NewOwnSource, OwnSource, OwnSourceChange, OwnSourceId};
use driftline_core::timeline::Settings;
use driftline_runtime::CommandError;
use driftline_store::{
    LocalAccountId, Owner, StoreError,
    social::{account_source, local_account},
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
    let all = all(&host, account).await?.into_iter();
    Ok(all.map(|(source, row)| shown(&source, row)).collect())
}

/// An account's sources with their rows.
async fn all(
    host: &Host,
    account: LocalAccountId,
) -> Result<Vec<(Source, SourceRow)>, CommandError> {
    let (all, readings) = sources::Readings::read(host).await?;
    let own = all
        .into_iter()
        .filter(|source| source.owner == Owner::Account(account));
    Ok(own
        .map(|source| (source.clone(), readings.row(source)))
        .collect())
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
    let all = all(&host, account).await?;
    let found = all.into_iter().find(|(source, _)| source.id == id);
    let (source, row) = found.ok_or(StoreError::NoSource)?;
    Ok(shown(&source, row))
}

/// Changes a source of an account; `None` if it has no such source.
pub(crate) async fn change(
    host: &Host,
    account: LocalAccountId,
    id: OwnSourceId,
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
    let all = all(&host, account).await?.into_iter();
    let mut changed = all.filter(|(known, _)| known.id == source.id);
    Ok(changed.next().map(|(source, row)| shown(&source, row)))
}

/// Removes a source of an account; `false` if it has no such source.
pub(crate) async fn remove(
    host: &Host,
    account: LocalAccountId,
    id: OwnSourceId,
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
    id: OwnSourceId,
) -> Result<Option<Source>, CommandError> {
    let own = host.store.read(move |tx| account_source::list(tx, account));
    let own = own.await?;
    Ok(own.into_iter().find(|source| id_of(source) == id))
}

/// The ID by which an account finds its source: the time when it was added, which no other of its sources has. The ID of
/// the source would tell how many all others have added.
fn id_of(source: &Source) -> OwnSourceId {
    OwnSourceId(source.created_at_ms.unsigned_abs())
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

fn shown(source: &Source, row: SourceRow) -> OwnSource {
    OwnSource {
        id: id_of(source).0.to_string(),
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
