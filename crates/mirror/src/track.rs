//! Tracked posts, which are submitted by their IDs.

use std::collections::HashSet;

use driftline_core::{
    api::Api,
    names::audience::Audience,
    source_kind::SourceKind,
    timeline::Settings,
    tracking::{ForgottenPosts, Track, TrackOutcome, TrackResult, TrackedPosts},
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    InstanceId, Owner, Store, StoreError, Tx, Viewer, known_instances, local_ids, machine,
    source::{self, NameRefused, NewSource, Source},
    tracked::{Forgotten, add_lookups, forget, forgettable, outcomes, tracked_counts},
};
use driftline_upstream::{Address, is_post_id};

use crate::{instance_api::same_api, policies::Policies};

/// Stores the IDs durably for look-ups. A post that is already stored becomes due by the policy. With
/// `allow_private` the source that holds them lets its server be in a private network.
///
/// # Errors
/// [`CommandError`] if the server is unknown or speaks another API; nothing is stored then.
pub async fn track(
    store: &Store,
    policies: &Policies,
    track: Track,
    allow_private: bool,
) -> Result<TrackResult, CommandError> {
    let new = tracked_source(store, &track.instance, track.api, allow_private).await?;
    let source = source_of(store, new).await?;
    let submitted = track.ids.len();
    let order = store
        .read({
            let id = source.instance.id;
            move |tx| order_of(tx, id)
        })
        .await?;
    let (ids, bad) = usable(track.ids, source.instance.api, order);
    let distinct = ids.len();
    let once = track.once;
    let key = source.key();
    let policy = policies.of(source.instance.id);
    let added = store
        .write(source::root(key), move |tx| {
            add_lookups(tx, key, &ids, once, &policy, now_ms())
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
    let origin = known_origin(store, instance).await?.unwrap_or_default();
    let found = store.read(move |tx| {
        let Some(source) = tracked_at(tx, &origin)? else {
            return Ok(None);
        };
        let counts = tracked_counts(tx, source.key())?;
        Ok::<_, StoreError>(Some((source, counts)))
    });
    let Some((source, state)) = found.await? else {
        return Err(none_tracked(instance));
    };
    Ok(TrackedPosts {
        source: source.name,
        waiting: state.waiting,
        missing: state.missing,
        found: state.found,
    })
}

/// What became of posts that were named by their IDs, in their order.
///
/// # Errors
/// [`CommandError`] if no posts of the instance are tracked.
pub async fn track_outcomes(
    store: &Store,
    instance: &str,
    ids: Vec<String>,
) -> Result<Vec<TrackOutcome>, CommandError> {
    let origin = known_origin(store, instance).await?.unwrap_or_default();
    let found = store.read(move |tx| {
        let Some(source) = tracked_at(tx, &origin)? else {
            return Ok(None);
        };
        outcomes(tx, source.key(), &ids).map(Some)
    });
    found.await?.ok_or_else(|| none_tracked(instance))
}

/// Forgets tracked posts of these IDs, or all of the instance: they are neither looked up nor kept
/// fresh any more, unless another source does. With `is_plan` it only counts them.
///
/// # Errors
/// [`CommandError`] if no posts of the instance are tracked.
pub async fn forget_tracked(
    store: &Store,
    instance: &str,
    ids: Option<Vec<String>>,
    is_plan: bool,
) -> Result<ForgottenPosts, CommandError> {
    let origin = known_origin(store, instance).await?.unwrap_or_default();
    let source = store.read(move |tx| tracked_at(tx, &origin)).await?;
    let source = source.ok_or_else(|| none_tracked(instance))?;
    let (key, which) = (source.key(), ids.map_or(Forgotten::All, Forgotten::Ids));
    let counts = match is_plan {
        true => store.read(move |tx| forgettable(tx, key, &which)).await?,
        false => {
            let forget = move |tx: &mut Tx<'_>| forget(tx, key, &which);
            store.write(source::root(key), forget).await?
        }
    };
    Ok(ForgottenPosts {
        source: source.name,
        lookups: counts.lookups,
        posts: counts.posts,
        kept: counts.kept,
        in_work: counts.in_work,
    })
}

fn none_tracked(instance: &str) -> CommandError {
    CommandError::usage(format!(
        "no posts of {instance:?} are tracked; `driftline track` names some"
    ))
}

/// The order of an instance's IDs, where a source of it has shown that.
fn order_of(tx: &mut Tx<'_>, instance: InstanceId) -> Result<Option<IdOrder>, StoreError> {
    // Posts are requested by the operator, for whom private sources of accounts are as if they were not there.
    for source in source::readable(tx, Viewer::Operator)? {
        if source.instance.id == instance
            && let Some(scheme) = machine::load(tx, source.key())?.scheme()
        {
            return Ok(Some(scheme.order));
        }
    }
    Ok(None)
}

/// The valid IDs, without repetitions, and the invalid ones: those that the API cannot have, or that do
/// not fit the order of the instance's IDs.
fn usable(ids: Vec<String>, api: Api, order: Option<IdOrder>) -> (Vec<String>, Vec<String>) {
    let mut seen = HashSet::new();
    let mut bad = Vec::new();
    let mut good = Vec::new();
    for id in ids {
        let id = id.trim();
        let fits = order.is_none_or(|order| order.key(&UpstreamId::from(id)).is_ok());
        if !is_post_id(api, id) || !fits {
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

/// The source of an instance's tracked posts, as it is added if it does not exist.
///
/// # Errors
/// [`CommandError`] if the server is unknown or speaks another API.
pub async fn tracked_source(
    store: &Store,
    instance: &str,
    api: Option<Api>,
    allow_private: bool,
) -> Result<NewSource, CommandError> {
    let origin = match known_origin(store, instance).await? {
        Ok(origin) => origin,
        // A new server needs its full address: a mistyped host would add a server for good.
        Err(unknown) => match (Address::parse(instance), instance.contains("://")) {
            (Ok(address), true) => address.to_string(),
            (Ok(_), false) => return Err(unknown),
            (Err(error), _) => return Err(CommandError::usage(error)),
        },
    };
    if let Some(api) = api {
        same_api(store, &origin, api).await?;
    }
    let address = Address::parse(&origin).map_err(CommandError::usage)?;
    let mut host = address.host().trim_matches(['[', ']']).replace(':', "-");
    if let Some(port) = address.port() {
        host.push_str(&format!("-{port}"));
    }
    host.truncate(50);
    Ok(NewSource {
        name: format!("{host}-tracked"),
        origin,
        api: api.unwrap_or_default(),
        timeline: SourceKind::Tracked.name().to_owned(),
        kind: SourceKind::Tracked,
        upstream: address.to_string(),
        settings: Settings::default(),
        token: None,
        allow_private,
        owner: Owner::Operator,
        audience: Audience::Public,
    })
}

/// The source of an instance's tracked posts, added if it does not exist.
async fn source_of(store: &Store, new: NewSource) -> Result<Source, CommandError> {
    let (name, allow_private) = (new.name.clone(), new.allow_private);
    let found = store.write(local_ids::root(), move |tx| find_or_add(tx, &new));
    let source = match found.await? {
        Some(Ok(source)) => source,
        Some(Err(refused)) => return Err(CommandError::usage(refused)),
        None => {
            return Err(CommandError::usage(format!(
                "too many sources are named {name} and are not for tracked posts of this server; remove one first"
            )));
        }
    };
    if allow_private && !source.allow_private {
        let key = source.key();
        let allow = move |tx: &mut Tx<'_>| source::set_allow_private(tx, key, true);
        store.write(source::root(key), allow).await?;
    }
    Ok(source)
}

/// The source, or a new one under the first free name: others may be an operator's source, or of
/// another server with a long name. `None` if none is free.
fn find_or_add(
    tx: &mut Tx<'_>,
    new: &NewSource,
) -> Result<Option<Result<Source, NameRefused>>, StoreError> {
    if let Some(known) = tracked_at(tx, &new.origin)? {
        return Ok(Some(Ok(known)));
    }
    for number in 1..=MAX_NAMESAKES {
        let mut new = new.clone();
        if number > 1 {
            new.name.push_str(&format!("-{number}"));
        }
        match source::add(tx, &new, now_ms())? {
            Ok(key) => return Ok(source::by_id(tx, key.id)?.map(Ok)),
            Err(NameRefused::Taken) => {}
            Err(refused) => return Ok(Some(Err(refused))),
        }
    }
    Ok(None)
}

fn tracked_at(tx: &mut Tx<'_>, origin: &str) -> Result<Option<Source>, StoreError> {
    let is_it =
        |source: &Source| source.instance.origin == origin && source.kind == SourceKind::Tracked;
    Ok(source::list(tx)?.into_iter().find(is_it))
}

/// The origin of a known instance, by its host or its address; otherwise what to do.
async fn known_origin(
    store: &Store,
    name: &str,
) -> Result<Result<String, CommandError>, StoreError> {
    let name = name.trim_end_matches('/');
    let known = store.read(|tx| known_instances::known_to(tx, Viewer::Operator));
    let instances = known.await?;
    let mut origins = instances.iter().map(|instance| &*instance.origin);
    let is_it = |origin: &&str| {
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        *origin == name || host == name
    };
    if let Some(origin) = origins.clone().find(is_it) {
        return Ok(Ok(origin.to_owned()));
    }
    let shown: Vec<&str> = origins.by_ref().take(MAX_SHOWN).collect();
    let known = match (shown.as_slice(), origins.next()) {
        ([], _) => "none is known yet".to_owned(),
        (_, None) => format!("known are {}", shown.join(", ")),
        (_, Some(_)) => format!("known are {}, …", shown.join(", ")),
    };
    Ok(Err(CommandError::usage(format!(
        "no server {name:?} is known ({known}); name a new one by its full address: https://{name}"
    ))))
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
            let (good, bad) = usable(ids(&submitted), api, None);
            assert_eq!(good, ["17", "9999999999999999999"], "{api}");
            assert_eq!(bad.len(), 6, "{api}: {bad:?}");
        }
        let (good, bad) = usable(ids(&submitted), Api::Mastodon, None);
        assert_eq!(good.len(), 6, "{good:?}");
        assert_eq!(bad, ["+1", ""]);
        let numeric = Some(IdOrder::Numeric);
        let (good, bad) = usable(ids(&submitted), Api::Mastodon, numeric);
        assert!(!good.contains(&"a-b".to_owned()), "{good:?}");
        assert!(bad.contains(&"a-b".to_owned()), "{bad:?}");
    }
}
