//! Commands about instances.

use std::collections::HashMap;

use driftline_core::{names::host::HostKey, post::PostKind, timeline::Machine};
use driftline_runtime::CommandError;
use driftline_store::{
    InstanceId, SourceId, StoreError, Tx, Viewer, author_hosts, credential,
    instance_info::{self, StoredInstanceInfo},
    known_instances, look_up_ability, machine,
    source::{self, Source},
};
use driftline_upstream::Address;

use super::{
    CredentialLookUps, Host, KnownInstance, KnownInstanceInfo, ListInstances, LookUpsSeen,
    ShowInstance, ShownInstance, TimelineAbilities, credentials::owned,
};

/// The instances that the store knows.
pub(super) async fn list(
    host: &Host,
    _: ListInstances,
) -> Result<Vec<KnownInstance>, CommandError> {
    let viewer = host.viewer;
    let (instances, posts, sources, credentials, mut said) = host
        .store
        .read(move |tx| {
            let (sources, credentials) = (source::readable(tx, viewer)?, owned(tx, viewer)?);
            let (posts, said) = (
                known_instances::post_counts(tx, viewer)?,
                instance_info::all(tx)?,
            );
            let instances = known_instances::known_to(tx, viewer)?;
            Ok::<_, StoreError>((instances, posts, sources, credentials, said))
        })
        .await?;
    let rows = instances.into_iter().map(|instance| {
        let sources = sources.iter().filter(|it| it.instance.id == instance.id);
        let credentials = credentials.iter().filter(|it| it.instance == instance.id);
        KnownInstance {
            id: id_of(&instance.origin),
            address: instance.origin,
            api: instance.api,
            posts: posts.get(&instance.id).copied().unwrap_or(0),
            sources: sources.map(|source| source.name.clone()).collect(),
            credentials: credentials.map(|it| it.name.clone()).collect(),
            info: said.remove(&instance.id).map(known_info),
        }
    });
    Ok(rows.collect())
}

/// The ID of the instance at an origin, in decimal digits.
fn id_of(origin: &str) -> String {
    HostKey::new(origin).map_or_else(String::new, |host| host.instance_id().to_string())
}

fn known_info(said: StoredInstanceInfo) -> KnownInstanceInfo {
    KnownInstanceInfo {
        said: said.info,
        fetched_at_ms: said.fetched_at_ms,
    }
}

/// An author's host that no source reads which the viewer may read.
async fn show_author_host(host: &Host, address: &Address) -> Result<ShownInstance, CommandError> {
    let viewer = host.viewer;
    let known = host
        .store
        .read(move |tx| author_hosts::known_to(tx, viewer))
        .await?;
    let name = match address.port() {
        Some(port) => format!("{}:{port}", address.host()),
        None => address.host().to_owned(),
    };
    if !known.contains(&name) {
        return Err(CommandError::usage(format!(
            "no source reads {address}; `driftline source list` shows the servers that are read"
        )));
    }
    Ok(ShownInstance {
        id: id_of(&address.to_string()),
        address: address.to_string(),
        info: None,
        is_read: false,
        timelines: Vec::new(),
        look_ups: Vec::new(),
    })
}

/// What an instance says of itself, and what it honours of the requests for its timelines.
pub(super) async fn show(
    host: &Host,
    request: ShowInstance,
) -> Result<ShownInstance, CommandError> {
    let parsed = Address::parse(&request.address).map_err(CommandError::usage)?;
    let address = parsed.to_string();
    let (origin, viewer) = (address.clone(), host.viewer);
    let sources = host
        .store
        .read(move |tx| {
            let sources = source::readable(tx, viewer)?.into_iter();
            let sources = sources.filter(|source| source.instance.origin == origin);
            let with_machine = |source: Source| Ok((machine::load(tx, source.key())?, source));
            sources
                .map(with_machine)
                .collect::<Result<Vec<_>, StoreError>>()
        })
        .await?;
    let Some((_, first)) = sources.first() else {
        return show_author_host(host, &parsed).await;
    };
    let instance = first.instance.id;
    let (look_ups, said) = host
        .store
        .read(move |tx| {
            let said = instance_info::all(tx)?.remove(&instance);
            Ok::<_, StoreError>((look_ups(tx, instance, viewer)?, said))
        })
        .await?;
    let running = match &host.pollers {
        Some(pollers) => pollers.progress().await,
        None => Vec::new(),
    };
    let running: HashMap<SourceId, Machine> = running
        .into_iter()
        .map(|progress| (progress.source.id, (*progress.machine).clone()))
        .collect();
    let mut timelines: Vec<TimelineAbilities> = sources
        .iter()
        .map(|(stored, source)| abilities_of(source, running.get(&source.id).unwrap_or(stored)))
        .collect();
    timelines.sort_by(|a, b| (&a.timeline, &a.source).cmp(&(&b.timeline, &b.source)));
    Ok(ShownInstance {
        id: id_of(&address),
        address,
        info: said.map(known_info),
        is_read: true,
        timelines,
        look_ups,
    })
}

fn look_ups(
    tx: &mut Tx<'_>,
    instance: InstanceId,
    viewer: Viewer,
) -> Result<Vec<CredentialLookUps>, StoreError> {
    let seen = look_up_ability::of_instance(tx, instance)?;
    let of_credential = |credential: credential::Credential| {
        let of = |kind: PostKind| {
            let mut seen = seen.iter();
            let of_kind = seen.find(|of| of.credential == credential.key() && of.kind == kind)?;
            Some(LookUpsSeen {
                found: of_kind.finds,
                at_ms: of_kind.at_ms,
            })
        };
        CredentialLookUps {
            posts: of(PostKind::Post),
            boosts: of(PostKind::Boost),
            has_token: credential.token.is_some(),
            credential: credential.name,
        }
    };
    let mut credentials = owned(tx, viewer)?;
    credentials.retain(|credential| credential.instance == instance);
    let credentials = credentials.into_iter();
    Ok(credentials.map(of_credential).collect())
}

fn abilities_of(source: &Source, machine: &Machine) -> TimelineAbilities {
    let honoured = machine.honoured();
    let scheme = machine.scheme();
    TimelineAbilities {
        timeline: source.timeline.clone(),
        source: source.name.clone(),
        since_id: honoured.since_id.state,
        min_id: honoured.min_id.state,
        max_id: honoured.max_id.state,
        both: honoured.both.state,
        limit: honoured.limit.state,
        longest_page: honoured.longest_page,
        link_only: honoured.is_link_only(),
        order: scheme.map(|scheme| scheme.order.name().to_owned()),
        layout: scheme.and_then(|scheme| Some(scheme.layout?.name().to_owned())),
        // Their text changes with the post.
        stable_ids: scheme.map(|scheme| !scheme.names_posts()),
        precision_ms: honoured
            .precision_ms
            .max(scheme.map_or(0, |scheme| scheme.precision_ms())),
        unprovable: machine.unprovable().map(|why| why.to_string()),
    }
}
