//! The sources of accounts' home timelines.

use driftline_core::social::AccountName;
use driftline_runtime::CommandError;
use driftline_store::{
    SourceId, StoreError, Tx, Viewer,
    social::{home_source, local_account},
    source,
    viewer::ReadableSources,
};

use super::{AccountHome, ChangeAccountHome, HomeSource, Host, accounts};

/// Changes which sources an account has in its home timeline, all of it or nothing, and lists them.
pub(super) async fn change(
    host: &Host,
    request: ChangeAccountHome,
) -> Result<AccountHome, CommandError> {
    let ChangeAccountHome { name, add, remove } = request;
    let account = accounts::find(&host.store, &name).await?.id;
    let added = found(host, &name, &add).await?;
    let removed = found(host, &name, &remove).await?;
    if !added.is_empty() || !removed.is_empty() {
        let write = move |tx: &mut Tx<'_>| {
            let known = home_source::all(tx, account)?;
            let is_there = |source: &SourceId| known.contains(source) || added.contains(source);
            if let Some(missing) = removed.iter().position(|source| !is_there(source)) {
                return Ok(Err(missing));
            }
            for source in &added {
                home_source::add(tx, account, *source)?;
            }
            for source in &removed {
                home_source::remove(tx, account, *source)?;
            }
            Ok::<_, StoreError>(Ok(()))
        };
        let root = local_account::root(account);
        let changed = host.store.write(root, write).await?;
        changed.map_err(|missing| {
            CommandError::usage(format!(
                "the home timeline of {name} does not have {:?} as a whole; nothing was changed",
                remove[missing]
            ))
        })?;
    }
    let viewer = host.viewer;
    let read = move |tx: &mut Tx<'_>| {
        let readable = ReadableSources::load(tx, Viewer::Account(account))?;
        let named = source::readable(tx, viewer)?;
        let (mut sources, mut private_sources) = (Vec::new(), 0);
        for id in home_source::all(tx, account)? {
            // One that was removed meanwhile is not there.
            let Some(source) = source::by_id(tx, id)? else {
                continue;
            };
            if named.iter().any(|named| named.id == id) {
                sources.push(HomeSource {
                    name: source.name,
                    is_readable: readable.of(id).is_some(),
                });
            } else {
                private_sources += 1;
            }
        }
        sources.sort_by(|one, other| one.name.cmp(&other.name));
        Ok::<_, StoreError>((sources, private_sources))
    };
    let (sources, private_sources) = host.store.read(read).await?;
    Ok(AccountHome {
        name,
        sources,
        private_sources,
    })
}

/// The sources of these names; of the account's own the short name will do.
async fn found(
    host: &Host,
    account: &AccountName,
    names: &[String],
) -> Result<Vec<SourceId>, CommandError> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let own = source::name_of(account, name);
        let own = host.store.read(move |tx| source::by_name(tx, &own)).await?;
        found.push(match own {
            Some(own) => own.id,
            None => super::readable(host, name).await?.id,
        });
    }
    Ok(found)
}
