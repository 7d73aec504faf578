//! Commands that forget instances.

use driftline_runtime::CommandError;
use driftline_store::{
    Instance, Store, StoreError, Tx, Viewer, credential, instance,
    instance_removal::{self, Part, Step},
    local_ids,
    source::{self, LastPosts, Source},
    thread_source,
};
use driftline_upstream::Address;

use super::{
    ForgetInstance, ForgottenInstance, Host, PlanForgetting, credentials::owned, source_removal,
    space::give_back_after_removal,
};

/// What goes with an instance if it is forgotten now.
pub(super) async fn plan(
    host: &Host,
    request: PlanForgetting,
) -> Result<ForgottenInstance, CommandError> {
    let known = find(&host.store, &request.address).await?;
    contents(&host.store, &known).await
}

/// Forgets an instance, in many short transactions: what is cut short goes on when it is asked for again.
pub(super) async fn forget(
    host: &Host,
    request: ForgetInstance,
) -> Result<ForgottenInstance, CommandError> {
    let store = &host.store;
    let known = find(store, &request.address).await?;
    let forgotten = contents(store, &known).await?;
    let id = known.id;
    // Those that are private to accounts, too.
    for source in store.read(source::list).await? {
        if source.instance.id == id {
            source_removal::remove_source(host, &source, LastPosts::Remove).await?;
        }
    }
    let hidden = store.read(move |tx| thread_source::of_instance(tx, id));
    for key in hidden.await? {
        let remove = move |tx: &mut Tx<'_>| source::remove(tx, key, LastPosts::Remove);
        store.write(source::root(key), remove).await?;
    }
    let remove_credentials = store.write(local_ids::root(), move |tx| {
        for credential in credential::of_instance(tx, id)? {
            credential::remove(tx, credential.key())?;
        }
        Ok::<_, StoreError>(())
    });
    remove_credentials.await?;
    for part in [Part::Posts, Part::Accounts] {
        let mut after = String::new();
        loop {
            let from = after.clone();
            let step = store.write(instance::root(id), move |tx| {
                instance_removal::remove_next(tx, id, part, &from)
            });
            match step.await? {
                Some(Step { after: next, .. }) => after = next,
                None => break,
            }
        }
    }
    let remove = store.write(local_ids::root(), move |tx| {
        instance_removal::remove(tx, id)
    });
    if !remove.await? {
        return Err(CommandError::failed(format!(
            "a source or a credential of {} was added meanwhile; what was stored before is removed: to forget that, too, run the command again",
            known.origin
        )));
    }
    give_back_after_removal(host).await;
    Ok(forgotten)
}

async fn contents(store: &Store, known: &Instance) -> Result<ForgottenInstance, CommandError> {
    let id = known.id;
    let ((sources, all), (credentials, private_credentials), stored) = store
        .read(move |tx| {
            let all_credentials = credential::of_instance(tx, id)?.len();
            let mut credentials = owned(tx, Viewer::Operator)?;
            credentials.retain(|credential| credential.instance == id);
            let private = all_credentials.saturating_sub(credentials.len()) as u64;
            let stored = instance_removal::contents(tx, id)?;
            let readable = source::readable(tx, Viewer::Operator)?;
            let sources = (readable, source::list(tx)?);
            Ok::<_, StoreError>((sources, (credentials, private), stored))
        })
        .await?;
    let of_instance = |source: &Source| source.instance.id == id;
    let all = all.into_iter().filter(of_instance).count();
    let sources = sources.into_iter().filter(of_instance);
    let sources: Vec<String> = sources.map(|source| source.name).collect();
    let credentials = credentials.into_iter();
    Ok(ForgottenInstance {
        address: known.origin.clone(),
        private_sources: all.saturating_sub(sources.len()) as u64,
        sources,
        credentials: credentials.map(|credential| credential.name).collect(),
        private_credentials,
        posts: stored.posts,
        accounts: stored.accounts,
    })
}

async fn find(store: &Store, address: &str) -> Result<Instance, CommandError> {
    let address = Address::parse(address).map_err(CommandError::usage)?;
    let origin = address.to_string();
    let found = store.read(move |tx| instance::by_origin(tx, &origin));
    found.await?.ok_or_else(|| {
        CommandError::usage(format!(
            "{address} is not known; `driftline instance list` shows the servers that are"
        ))
    })
}
