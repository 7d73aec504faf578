//! Commands about credentials.

use driftline_core::{
    answer::FailureKind,
    api::Api,
    quota::{Grant, QuotaLedger, Unit, Use},
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    Store, StoreError, Tx, clock,
    credential::{self, Credential, NewCredential},
    instance, quota,
    source::{self, NameRefused, TokenLocation},
};
use driftline_upstream::{Address, Upstream, look_ups};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Host;
use driftline_mirror::{
    quotas::{MONTH, QuotaPurpose, capped},
    same_api,
};

/// A credential to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddCredential {
    /// Its name; made from the address if not given.
    pub name: Option<String>,
    /// The server's address as the operator typed it.
    pub address: String,
    /// The API that it speaks.
    pub api: Api,
    /// The location of its token.
    pub token: Token,
    /// The most posts that it may read in a calendar month.
    pub monthly_posts: Option<u32>,
}

/// The location of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Token {
    /// In an environment variable.
    Environment(String),
    /// In a file.
    File(String),
    /// Sealed, in the store.
    Sealed(String),
    /// No token: only public posts are requested.
    None,
}

impl Token {
    fn place(self) -> Option<TokenLocation> {
        match self {
            Self::Environment(name) => Some(TokenLocation::Environment(name)),
            Self::File(path) => Some(TokenLocation::File(path)),
            Self::Sealed(sealed) => Some(TokenLocation::Sealed(sealed)),
            Self::None => None,
        }
    }
}

pub(super) async fn add(host: &Host, new: AddCredential) -> Result<Value, CommandError> {
    let store = &host.store;
    let address = Address::parse(&new.address).map_err(CommandError::usage)?;
    let origin = address.to_string();
    same_api(store, &origin, new.api).await?;
    let place = new.token.place();
    if place.is_none() && new.api != Api::Mastodon {
        return Err(CommandError::usage(format!(
            "{} needs a token; say where it is with --token-env, --token-file or --stdin",
            new.api
        )));
    }
    let warning = unreadable(host, place.as_ref(), &origin);
    let name = match new.name {
        Some(name) => name,
        None => free_name(store, address.host()).await?,
    };
    let row = NewCredential {
        name: name.clone(),
        origin,
        api: new.api,
        place,
        monthly_posts: new.monthly_posts.map(i64::from),
    };
    let added = store
        .write(clock::root(), move |tx| {
            if let Some(known) = same_place(tx, &row)? {
                return Ok(Err(Refused::Known(known)));
            }
            Ok::<_, StoreError>(credential::add(tx, &row, now_ms())?.map_err(Refused::Name))
        })
        .await?;
    match added {
        Ok(id) => Ok(json!({ "name": name, "id": id.to_string(), "warning": warning })),
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
fn same_place(tx: &mut Tx<'_>, new: &NewCredential) -> Result<Option<String>, StoreError> {
    let Some(instance) = instance::by_origin(tx, &new.origin)? else {
        return Ok(None);
    };
    let known = credential::of_instance(tx, instance.id)?;
    let same = known.into_iter().find(|known| known.place == new.place);
    // The other error is better for a name that is taken.
    Ok(same.map(|same| same.name).filter(|name| *name != new.name))
}

/// Why this process cannot read a token, if it is one that sends requests to upstreams.
fn unreadable(host: &Host, place: Option<&TokenLocation>, origin: &str) -> Option<String> {
    let access = host.access.as_ref()?;
    let read = access.secret(place, origin);
    read.err().map(|error| error.to_string())
}

pub(super) async fn list(host: &Host) -> Result<Value, CommandError> {
    let (credentials, instances, ledgers) = host
        .store
        .read(|tx| {
            let mut instances = Vec::new();
            for instance in source::instances(tx)? {
                let has_batch = instance::has_batch_look_up(tx, instance.id)?;
                instances.push((instance, has_batch.unwrap_or(false)));
            }
            Ok::<_, StoreError>((credential::list(tx)?, instances, quota::all(tx)?))
        })
        .await?;
    let now = now_ms();
    let rows: Vec<Value> = credentials
        .iter()
        .map(|credential| {
            let id = credential.instance;
            let of = instances.iter().find(|(instance, _)| instance.id == id);
            let batch = of.map_or(1, |(of, has_batch)| look_ups(of.api, *has_batch).1);
            let limits: Vec<Value> = ledgers
                .iter()
                .filter(|(id, ..)| *id == credential.id)
                .flat_map(|(_, scope, ledger)| {
                    ledger.windows().iter().map(move |window| {
                        let over = window.reset_at_ms <= now;
                        json!({
                            "scope": scope,
                            "unit": match window.unit {
                                Unit::Requests => "requests",
                                Unit::Posts => "posts",
                            },
                            "limit": window.limit,
                            "remaining": if over { window.limit } else { window.remaining },
                            "reset_at_ms": window.reset_at_ms,
                            "used_by_others": if over { 0 } else { window.others },
                        })
                    })
                })
                .collect();
            let rest = credential
                .quarantine
                .as_ref()
                .filter(|rest| rest.until_ms > now)
                .map(|rest| (rest.reason.clone(), rest.until_ms));
            let month = ledgers
                .iter()
                .find(|(id, scope, _)| *id == credential.id && scope == MONTH);
            let held_back = credential.monthly_posts.and_then(|cap| {
                let ledger = month.map(|(.., ledger)| ledger.clone());
                held_back(capped(ledger.unwrap_or_default(), cap, now), batch, now)
            });
            let place = credential.place.as_ref();
            let unreadable = of.and_then(|(of, _)| unreadable(host, place, &of.origin));
            let state = match (&unreadable, &rest, &held_back) {
                (Some(_), ..) => "unreadable",
                (_, Some(_), _) => "resting",
                (_, _, Some(_)) => "held back",
                _ => "in use",
            };
            let why = match unreadable {
                Some(reason) => Some((reason, None)),
                None => rest
                    .or(held_back)
                    .map(|(reason, until_ms)| (reason, Some(until_ms))),
            };
            json!({
                "name": credential.name,
                "instance": of.map(|(instance, _)| &instance.origin),
                "api": of.map(|(instance, _)| instance.api.name()),
                "token": shown(credential),
                "monthly_posts": credential.monthly_posts,
                "state": state,
                "reason": why.as_ref().map(|(reason, _)| reason),
                "until_ms": why.as_ref().and_then(|(_, until_ms)| *until_ms),
                "limits": limits,
            })
        })
        .collect();
    Ok(Value::Array(rows))
}

/// Why a cap on posts delays a look-up of a full batch, and until when, as the ledger would decide.
fn held_back(mut month: QuotaLedger, batch: usize, now_ms: i64) -> Option<(String, i64)> {
    let cap = *month.cap()?;
    let posts = u32::try_from(batch).unwrap_or(u32::MAX);
    // The share for polling concerns requests, which the monthly cap does not limit.
    let refresh = Use::Refresh {
        left_to_polling: 0.0,
    };
    let Grant::Until(until_ms) = month.take(1, posts, refresh, now_ms) else {
        return None;
    };
    let (limit, read) = (cap.limit, cap.limit.saturating_sub(cap.remaining));
    let reason = format!(
        "{read} posts of its cap of {limit} posts a month are read; the cap is spent evenly, and look-ups are of up to {batch} here"
    );
    Some((reason, until_ms))
}

pub(super) async fn test(host: &Host, name: &str) -> Result<Value, CommandError> {
    let Some(access) = &host.access else {
        return Err(CommandError::usage(
            "this process asks no upstreams; test the credential with `driftline credential test`",
        ));
    };
    let credential = find(&host.store, name).await?;
    let id = credential.instance;
    let instances = host.store.read(source::instances).await?;
    let Some(instance) = instances.into_iter().find(|instance| instance.id == id) else {
        return Err(CommandError::usage(
            "the credential's server is not known any more",
        ));
    };
    let address = Address::parse(&instance.origin).map_err(CommandError::usage)?;
    let secret = access
        .secret(credential.place.as_ref(), &instance.origin)
        .map_err(CommandError::usage)?;
    let client = Upstream::new(instance.api, access.http.clone(), address, secret)
        .map_err(CommandError::usage)?;
    match client.verify().await {
        Ok(who) => {
            access.quotas.restore(&credential).await?;
            Ok(json!({ "name": name, "good": true, "who": who }))
        }
        Err(failure) => {
            if failure.kind == FailureKind::Unauthorized {
                let scope = client.scope(driftline_upstream::ClientPurpose::LookUp);
                let quotas = &access.quotas;
                quotas
                    .failed(&credential, scope, QuotaPurpose::Refresh, &failure)
                    .await?;
            }
            Ok(json!({
                "name": name,
                "good": false,
                "kind": failure.kind.name(),
                "reason": failure.message,
            }))
        }
    }
}

pub(super) async fn remove(store: &Store, name: &str) -> Result<Value, CommandError> {
    let credential = find(store, name).await?;
    let id = credential.id;
    // In the same transaction: a source that is added meanwhile finds the credential gone.
    let used = store
        .write(clock::root(), move |tx| {
            let mut sources = source::list(tx)?.into_iter();
            let user = sources.find(|source| {
                source.instance.id == credential.instance
                    && source.token == credential.place
                    && source.timeline != source::TRACKED
            });
            if user.is_none() {
                credential::remove(tx, id)?;
            }
            Ok::<_, StoreError>(user.map(|source| source.name))
        })
        .await?;
    match used {
        None => Ok(json!({ "name": name })),
        Some(source) => Err(CommandError::usage(format!(
            "the source {source:?} is read with the same token, so what is known of its limits is kept; remove the source first, or give it another token; `refresh.credentials` says which credentials posts are refreshed with"
        ))),
    }
}

async fn find(store: &Store, name: &str) -> Result<Credential, CommandError> {
    let name_owned = name.to_owned();
    store
        .read(move |tx| credential::by_name(tx, &name_owned))
        .await?
        .ok_or_else(|| {
            CommandError::usage(format!(
                "there is no credential named {name:?}; `driftline credential list` shows the names"
            ))
        })
}

async fn free_name(store: &Store, host: &str) -> Result<String, CommandError> {
    let mut base: String = host
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '.' {
                c
            } else {
                '-'
            }
        })
        .collect();
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
    match &credential.place {
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
        month.also_read(read);
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
