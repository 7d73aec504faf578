//! Commands about credentials.

use std::collections::HashMap;

use driftline_core::{
    answer::FailureKind,
    api::Api,
    quota::{Grant, QuotaLedger, QuotaPurpose},
};
use driftline_runtime::{CommandError, now_ms, read_clocks};
use driftline_store::{
    Owner, Store, StoreError, Tx, Viewer,
    credential::{self, Credential, NewCredential},
    instance, known_instances, local_ids, quota, server_keys,
    source::{self, NameRefused, TokenLocation},
};
use driftline_upstream::{Address, look_ups};

use super::{
    AddCredential, AddedCredential, CredentialRow, ForgetKey, ForgottenKey, Host, ListCredentials,
    QuotaLimit, RemoveCredential, RemovedCredential, TestCredential, TestedCredential,
};
use driftline_mirror::{
    Server,
    quotas::{Charge, MONTH, capped},
    same_api,
};

/// Adds a credential.
pub(super) async fn add(host: &Host, new: AddCredential) -> Result<AddedCredential, CommandError> {
    let store = &host.store;
    let address = Address::parse(&new.address).map_err(CommandError::usage)?;
    let origin = address.to_string();
    same_api(store, &origin, new.api).await?;
    let token = new.token;
    if let Some(TokenLocation::Sealed(_)) = token {
        check_key(host).await?;
    }
    if token.is_none() && new.api != Api::Mastodon {
        return Err(CommandError::usage(format!(
            "{} needs a token; say where it is with --token-env, --token-file or --stdin",
            new.api
        )));
    }
    let warning = unreadable(host, token.as_ref(), &origin);
    let name = match new.name {
        Some(name) => name,
        None => free_name(store, address.host()).await?,
    };
    let row = NewCredential {
        name: name.clone(),
        origin,
        api: new.api,
        token,
        monthly_posts: new.monthly_posts.map(i64::from),
    };
    let added = store
        .write(local_ids::root(), move |tx| {
            if let Some(known) = same_token(tx, &row)? {
                return Ok(Err(Refused::Known(known)));
            }
            Ok::<_, StoreError>(credential::add(tx, &row, now_ms())?.map_err(Refused::Name))
        })
        .await?;
    match added {
        Ok(key) => Ok(AddedCredential {
            name,
            id: key.id,
            warning,
        }),
        Err(Refused::Known(known)) => Err(CommandError::usage(format!(
            "the credential {known:?} has the same token, or none too, for that server: two would count its limits apart; use that one, or remove it first"
        ))),
        Err(Refused::Name(NameRefused::Taken)) => Err(CommandError::usage(format!(
            "there is a credential named {name:?} already; choose another name with --name"
        ))),
        Err(Refused::Name(NameRefused::Bad)) => Err(CommandError::usage(
            "a credential's name is 1 to 64 letters, digits, `-`, `_` and `.`",
        )),
    }
}

/// Why a credential was not added.
enum Refused {
    /// Its name is taken or invalid.
    Name(NameRefused),
    /// The credential of this name has the same token.
    Known(String),
}

/// The name of the credential of that server with the same token location.
fn same_token(tx: &mut Tx<'_>, new: &NewCredential) -> Result<Option<String>, StoreError> {
    let Some(instance) = instance::by_origin(tx, &new.origin)? else {
        return Ok(None);
    };
    let known = credential::of_instance(tx, instance.id)?;
    let is_same = |known: &Credential| known.owner == Owner::Operator && known.token == new.token;
    let same = known.into_iter().find(is_same);
    // The other error is better for a name that is taken.
    Ok(same.map(|same| same.name).filter(|name| *name != new.name))
}

/// Why this process cannot read a token, if it is one that sends requests to upstreams.
/// Whether what this process seals can be unsealed by the others of the store.
pub(super) async fn check_key(host: &Host) -> Result<(), CommandError> {
    let Some(access) = &host.access else {
        return Ok(());
    };
    let key = access.secrets.sealing_key().map_err(CommandError::failed)?;
    crate::server_keys::check(&host.store, key)
        .await
        .map_err(CommandError::failed)
}

fn unreadable(host: &Host, token: Option<&TokenLocation>, origin: &str) -> Option<String> {
    let access = host.access.as_ref()?;
    let read = access.secret(token, origin);
    read.err().map(|error| error.to_string())
}

/// A viewer's own credentials. Those without a token are the operator's, and are left out where they came with sources
/// that the operator may not read.
pub(super) fn owned(tx: &mut Tx<'_>, viewer: Viewer) -> Result<Vec<Credential>, StoreError> {
    let own = viewer.owner();
    let mut all = credential::list(tx)?;
    all.retain(|of| Some(of.owner) == own);
    if all.iter().all(|of| of.token.is_some()) {
        return Ok(all);
    }
    let known = known_instances::known_to(tx, viewer)?;
    all.retain(|of| of.token.is_some() || known.iter().any(|known| known.id == of.instance));
    Ok(all)
}

/// The credentials with what is left of their quotas.
pub(super) async fn list(
    host: &Host,
    _: ListCredentials,
) -> Result<Vec<CredentialRow>, CommandError> {
    let viewer = host.viewer;
    let (credentials, instances, mut ledgers) = host
        .store
        .read(move |tx| {
            let mut instances = HashMap::new();
            for instance in source::instances(tx)? {
                let has_batch = instance::has_batch_look_up(tx, instance.id)?;
                instances.insert(instance.id, (instance, has_batch.unwrap_or(false)));
            }
            Ok::<_, StoreError>((owned(tx, viewer)?, instances, quota::all(tx)?))
        })
        .await?;
    let now = now_ms();
    for (.., ledger) in &mut ledgers {
        ledger.sync(read_clocks(), None);
    }
    let rows = credentials.iter().map(|credential| {
        let of = instances.get(&credential.instance);
        let own = ledgers.iter().filter(|(id, ..)| *id == credential.id);
        let own: Vec<_> = own.map(|(_, scope, ledger)| (scope, ledger)).collect();
        let rest = credential
            .quarantine
            .as_ref()
            .filter(|rest| rest.lasts(now))
            .map(|rest| (rest.reason.clone(), rest.until_ms));
        let month = own.iter().find(|(scope, _)| *scope == MONTH);
        let batch = of.map_or(1, |(of, has_batch)| look_ups(of.api, *has_batch).1);
        let held_back = credential.monthly_posts.and_then(|cap| {
            let ledger = month.map(|(_, ledger)| (*ledger).clone());
            held_back(capped(ledger.unwrap_or_default(), cap, now), batch, now)
        });
        let token = credential.token.as_ref();
        let unreadable = of.and_then(|(of, _)| unreadable(host, token, &of.origin));
        let (state, why) = match (unreadable, rest, held_back) {
            (Some(reason), ..) => ("unreadable", Some((reason, None))),
            (_, Some((reason, until_ms)), _) => ("resting", Some((reason, Some(until_ms)))),
            (.., Some((reason, until_ms))) => ("held back", Some((reason, Some(until_ms)))),
            _ => ("in use", None),
        };
        let (reason, until_ms) = why.unzip();
        CredentialRow {
            name: credential.name.clone(),
            instance: of.map(|(instance, _)| instance.origin.clone()),
            api: of.map(|(instance, _)| instance.api),
            token: shown(credential),
            monthly_posts: credential.monthly_posts,
            state: state.to_owned(),
            reason,
            until_ms: until_ms.flatten(),
            limits: own
                .iter()
                .flat_map(|(scope, ledger)| limits(scope, ledger, now))
                .collect(),
        }
    });
    Ok(rows.collect())
}

/// The limits of a ledger; a window that is over counts as full.
pub(super) fn limits(
    scope: &str,
    ledger: &QuotaLedger,
    now_ms: i64,
) -> impl Iterator<Item = QuotaLimit> {
    ledger.windows().iter().map(move |window| {
        let over = window.reset_at_ms <= now_ms;
        QuotaLimit {
            scope: scope.to_owned(),
            unit: window.unit,
            limit: window.limit,
            remaining: if over { window.limit } else { window.remaining },
            reset_at_ms: window.reset_at_ms,
            used_by_others: if over { 0 } else { window.others },
        }
    })
}

/// Why a cap on posts delays a look-up of a full batch, and until when, as the ledger would decide.
fn held_back(mut month: QuotaLedger, batch: usize, now_ms: i64) -> Option<(String, i64)> {
    let cap = *month.cap()?;
    let posts = u32::try_from(batch).unwrap_or(u32::MAX);
    // The share for polling concerns requests, which the monthly cap does not limit.
    let Grant::Until(until_ms) = month.take(1, posts, QuotaPurpose::Refresh, 0.0, now_ms) else {
        return None;
    };
    let (limit, read) = (cap.limit, cap.limit.saturating_sub(cap.remaining));
    let reason = format!(
        "{read} posts of its cap of {limit} posts a month are read; the cap is spent evenly, and look-ups are of up to {batch} here"
    );
    Some((reason, until_ms))
}

/// Asks a credential's upstream for the account.
pub(super) async fn test(
    host: &Host,
    request: TestCredential,
) -> Result<TestedCredential, CommandError> {
    let TestCredential { name } = request;
    let Some(access) = &host.access else {
        return Err(CommandError::usage(
            "this process asks no upstreams; test the credential with `driftline credential test`",
        ));
    };
    let credential = own(host, &name).await?;
    let id = credential.instance;
    let instances = host.store.read(source::instances).await?;
    let Some(instance) = instances.into_iter().find(|instance| instance.id == id) else {
        return Err(CommandError::usage(
            "the credential's server is not known any more",
        ));
    };
    let allows = host.store.read(move |tx| source::allows_private(tx, id));
    let server = Server::of(&instance, allows.await?, credential.owner);
    let client = access
        .client(server, credential.token.as_ref())
        .map_err(CommandError::usage)?;
    match client.verify().await {
        Ok(who) => {
            access.quotas.restore(&credential).await?;
            Ok(TestedCredential {
                name,
                good: true,
                who: Some(who),
                ..TestedCredential::default()
            })
        }
        Err(failure) => {
            if failure.kind == FailureKind::Unauthorized {
                let scope = client.scope(driftline_upstream::ClientPurpose::LookUp);
                let quota = access.quotas.of(&credential, scope, QuotaPurpose::Refresh);
                quota.failed(Charge::default(), &failure).await?;
            }
            Ok(TestedCredential {
                name,
                kind: Some(failure.kind),
                reason: Some(failure.message),
                ..TestedCredential::default()
            })
        }
    }
}

/// Forgets which key stored tokens are sealed with: the next process that starts says which one it is.
pub(super) async fn forget_key(host: &Host, _: ForgetKey) -> Result<ForgottenKey, CommandError> {
    let was_known = host
        .store
        .write(local_ids::root(), server_keys::forget)
        .await?;
    Ok(ForgottenKey { was_known })
}

/// Removes a credential that no source is read with.
pub(super) async fn remove(
    host: &Host,
    request: RemoveCredential,
) -> Result<RemovedCredential, CommandError> {
    let RemoveCredential { name } = request;
    let credential = own(host, &name).await?;
    let key = credential.key();
    // In the same transaction: a source that is added meanwhile finds the credential gone.
    let used = host
        .store
        .write(local_ids::root(), move |tx| {
            let mut sources = source::list(tx)?.into_iter();
            let user = sources.find(|source| {
                source.instance.id == credential.instance
                    && source.token == credential.token
                    && source.kind.is_polled()
            });
            if user.is_none() {
                credential::remove(tx, key)?;
            }
            Ok::<_, StoreError>(user.map(|source| source.name))
        })
        .await?;
    match used {
        None => Ok(RemovedCredential { name }),
        Some(source) => Err(CommandError::usage(format!(
            "the source {source:?} is read with the same token, so what is known of its limits is kept; remove the source first, or give it another token; `refresh.credentials` says which credentials posts are refreshed with"
        ))),
    }
}

/// The viewer's credential of that name.
async fn own(host: &Host, name: &str) -> Result<Credential, CommandError> {
    let (viewer, of) = (host.viewer, name.to_owned());
    let found = host.store.read(move |tx| {
        let mut all = owned(tx, viewer)?.into_iter();
        Ok::<_, StoreError>(all.find(|credential| credential.name == of))
    });
    found.await?.ok_or_else(|| {
        CommandError::usage(format!(
            "there is no credential named {name:?}; `driftline credential list` shows the names"
        ))
    })
}

async fn free_name(store: &Store, host: &str) -> Result<String, CommandError> {
    let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let mut base = host.replace(is_other, "-");
    base.truncate(60);
    let taken = store.read(credential::list).await?;
    let is_free = |name: &str| taken.iter().all(|credential| credential.name != name);
    let numbered = (2..1000).map(|number| format!("{base}-{number}"));
    std::iter::once(base.clone())
        .chain(numbered)
        .find(|name| is_free(name))
        .ok_or_else(|| CommandError::usage("name the credential with --name"))
}

fn shown(credential: &Credential) -> String {
    match &credential.token {
        None => "none".to_owned(),
        Some(TokenLocation::Environment(name)) => format!("environment variable {name}"),
        Some(TokenLocation::File(path)) => format!("file {path}"),
        Some(TokenLocation::Sealed(_)) => "sealed in the store".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MONTH_MS: i64 = 30 * 24 * 3_600_000;

    fn month(limit: u32, read: u32) -> QuotaLedger {
        let mut month = QuotaLedger::default();
        month.set_cap(limit, MONTH_MS, MONTH_MS);
        month.settle(0, read);
        month
    }

    #[test]
    fn a_cap_holds_back_what_the_ledger_does_not_grant_and_until_it_does() {
        let half = MONTH_MS / 2;
        // Half a month allows 1,530 of 3,000: a look-up of 20 goes, one of 100 has to wait.
        let month_of = |read| month(3_000, read);
        assert_eq!(held_back(month_of(1_500), 20, half), None);
        let (reason, until_ms) = held_back(month_of(1_500), 100, half).expect("held back");
        assert!(
            reason.contains("1500 posts of its cap of 3000 posts"),
            "{reason}"
        );
        assert_eq!(held_back(month_of(1_500), 100, until_ms), None);
        assert!(held_back(month_of(1_500), 100, until_ms - 1_200_000).is_some());
        // What is allowed from the beginning is no reason to wait.
        assert_eq!(held_back(month(10_000, 0), 100, 0), None);
        assert_eq!(held_back(QuotaLedger::default(), 100, half), None);
    }
}
