//! Tracked posts, which are submitted by their IDs.

use std::collections::HashSet;

use driftline_core::{
    api::Api,
    timeline::Settings,
    tracking::{Track, TrackResult, TrackedPosts},
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    Store, StoreError, Tx, instance, local_ids,
    source::{self, NameRefused, NewSource, Source},
    tracked::{add_lookups, tracked_counts},
};
use driftline_upstream::{Address, is_post_id};

use crate::{instance_api::same_api, policies::Policies};

/// Stores the IDs durably for look-ups. A post that is already stored becomes due by the policy.
///
/// # Errors
/// [`CommandError`] if the server is unknown or speaks another API; nothing is stored then.
pub async fn track(
    store: &Store,
    policies: &Policies,
    track: Track,
) -> Result<TrackResult, CommandError> {
    let source = source_of(store, &track.instance, track.api).await?;
    let submitted = track.ids.len();
    let (ids, bad) = usable(track.ids, source.instance.api);
    let distinct = ids.len();
    let once = track.once;
    let id = source.id;
    let policy = policies.of(source.instance.id);
    let added = store
        .write(source::root(id), move |tx| {
            add_lookups(tx, id, &ids, once, &policy, now_ms())
        })
        .await?;
    Ok(TrackResult {
        source: source.name,
        named: submitted as u64,
        new: added.new,
        stored: added.stored,
        waiting_or_missing: added.known,
        repeated: (submitted - distinct - bad.len()) as u64,
        bad,
    })
}

/// The tracked posts of an instance, counted by state.
///
/// # Errors
/// [`CommandError`] if none are.
pub async fn tracked_posts(store: &Store, instance: &str) -> Result<TrackedPosts, CommandError> {
    let Some(source) = known_source(store, instance).await? else {
        return Err(CommandError::usage(format!(
            "no posts of {instance:?} are tracked; `driftline track` names some"
        )));
    };
    let id = source.id;
    let state = store.read(move |tx| tracked_counts(tx, id)).await?;
    Ok(TrackedPosts {
        source: source.name,
        waiting: state.waiting,
        missing: state.missing,
        found: state.found,
    })
}

/// The valid IDs, without repetitions, and the invalid ones.
fn usable(ids: Vec<String>, api: Api) -> (Vec<String>, Vec<String>) {
    let mut seen = HashSet::new();
    let mut bad = Vec::new();
    let mut good = Vec::new();
    for id in ids {
        let id = id.trim();
        if !is_post_id(api, id) {
            bad.push(id.chars().take(MAX_QUOTE).collect());
        } else if seen.insert(id.to_owned()) {
            good.push(id.to_owned());
        }
    }
    (good, bad)
}

/// Whether posts of any API can have this ID. Mastodon's IDs include those of the other APIs.
pub fn is_usable(id: &str) -> bool {
    is_post_id(Api::Mastodon, id)
}

/// The source of an instance's tracked posts, added if it does not exist.
async fn source_of(
    store: &Store,
    instance: &str,
    api: Option<Api>,
) -> Result<Source, CommandError> {
    let origin = match known_origin(store, instance).await? {
        Some(origin) => origin,
        None => {
            let address = Address::parse(instance).map_err(CommandError::usage)?;
            // A new server needs its full address: a mistyped host would add a server for good.
            if !instance.contains("://") {
                return Err(unknown_host(store, instance).await?);
            }
            address.to_string()
        }
    };
    if let Some(api) = api {
        same_api(store, &origin, api).await?;
    }
    if let Some(known) = known_source(store, &origin).await? {
        return Ok(known);
    }
    let address = Address::parse(&origin).map_err(CommandError::usage)?;
    let mut host = address.host().trim_matches(['[', ']']).replace(':', "-");
    if let Some(port) = address.port() {
        host.push_str(&format!("-{port}"));
    }
    host.truncate(50);
    for number in 1..=MAX_NAMESAKES {
        let suffix = match number {
            1 => String::new(),
            number => format!("-{number}"),
        };
        let new = NewSource {
            name: format!("{host}-tracked{suffix}"),
            origin: origin.clone(),
            api: api.unwrap_or_default(),
            timeline: source::TRACKED.to_owned(),
            upstream: address.to_string(),
            settings: Settings::default(),
            token: None,
        };
        let added = store
            .write(local_ids::root(), move |tx| {
                // Another process may be adding it at the same time.
                match tracked_at(tx, &new.origin)? {
                    Some(known) => Ok(Ok(known.id)),
                    None => source::add(tx, &new, now_ms()),
                }
            })
            .await?;
        match added {
            Ok(id) => {
                return store
                    .read(move |tx| source::by_id(tx, id))
                    .await?
                    .ok_or_else(|| StoreError::NoSource.into());
            }
            // The name of an operator's source, or of another server with a long name.
            Err(NameRefused::Taken) => {}
            Err(refused @ NameRefused::Bad) => return Err(CommandError::usage(refused)),
        }
    }
    Err(CommandError::usage(format!(
        "too many sources are named {host}-tracked and are not for tracked posts of this server; remove one first"
    )))
}

async fn unknown_host(store: &Store, host: &str) -> Result<CommandError, CommandError> {
    let instances = store.read(source::instances).await?;
    let origins: Vec<&str> = instances
        .iter()
        .map(|instance| &*instance.origin)
        .take(MAX_SHOWN)
        .collect();
    let known = match origins.as_slice() {
        [] => "none is known yet".to_owned(),
        _ if instances.len() > MAX_SHOWN => format!("known are {}, …", origins.join(", ")),
        _ => format!("known are {}", origins.join(", ")),
    };
    Ok(CommandError::usage(format!(
        "no server {host:?} is known ({known}); name a new one by its full address: https://{host}"
    )))
}

async fn known_source(store: &Store, instance: &str) -> Result<Option<Source>, CommandError> {
    let Some(origin) = known_origin(store, instance).await? else {
        return Ok(None);
    };
    Ok(store.read(move |tx| tracked_at(tx, &origin)).await?)
}

fn tracked_at(tx: &mut Tx<'_>, origin: &str) -> Result<Option<Source>, StoreError> {
    let is_it =
        |source: &Source| source.instance.origin == origin && source.timeline == source::TRACKED;
    Ok(source::list(tx)?.into_iter().find(is_it))
}

async fn known_origin(store: &Store, name: &str) -> Result<Option<String>, CommandError> {
    let host_or_origin = name.trim_end_matches('/').to_owned();
    let instances = store.read(source::instances).await?;
    let is_it = |instance: &instance::Instance| {
        let host = instance
            .origin
            .split_once("://")
            .map_or("", |(_, host)| host);
        instance.origin == host_or_origin || host == host_or_origin
    };
    Ok(instances
        .into_iter()
        .find(is_it)
        .map(|instance| instance.origin))
}

/// The most servers that a message names.
const MAX_SHOWN: usize = 10;
const MAX_NAMESAKES: usize = 100;
const MAX_QUOTE: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_ids_are_tracked() {
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let submitted = [
            " 17 ",
            "00017",
            "999999999999999999999999",
            "9999999999999999999",
            "-1",
            "+1",
            "",
            "a-b",
        ];
        for api in [Api::X, Api::Twitter] {
            let (good, bad) = usable(ids(&submitted), api);
            assert_eq!(good, ["17", "9999999999999999999"], "{api}");
            assert_eq!(bad.len(), 6, "{api}: {bad:?}");
        }
        let (good, bad) = usable(ids(&submitted), Api::Mastodon);
        assert_eq!(good.len(), 6, "{good:?}");
        assert_eq!(bad, ["+1", ""]);
    }
}
