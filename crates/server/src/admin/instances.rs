//! Commands about instances.

use std::collections::HashMap;

use driftline_core::timeline::Machine;
use driftline_runtime::CommandError;
use driftline_store::{
    SourceId, StoreError, machine,
    source::{self, Source},
};
use driftline_upstream::Address;

use super::{Host, ShowInstance, ShownInstance, TimelineAbilities};

/// What an instance honours of the requests for its timelines.
pub(super) async fn show(
    host: &Host,
    request: ShowInstance,
) -> Result<ShownInstance, CommandError> {
    let address = Address::parse(&request.address).map_err(CommandError::usage)?;
    let address = address.to_string();
    let origin = address.clone();
    let sources = host
        .store
        .read(move |tx| {
            let sources = source::list(tx)?.into_iter();
            let sources = sources.filter(|source| source.instance.origin == origin);
            let with_machine = |source: Source| Ok((machine::load(tx, source.id)?, source));
            sources
                .map(with_machine)
                .collect::<Result<Vec<_>, StoreError>>()
        })
        .await?;
    if sources.is_empty() {
        return Err(CommandError::usage(format!(
            "no source reads {address}; `driftline source list` shows the servers that are read"
        )));
    }
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
    Ok(ShownInstance { address, timelines })
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
        precision_ms: honoured
            .precision_ms
            .max(scheme.map_or(0, |scheme| scheme.precision_ms())),
        unprovable: machine.unprovable().map(|why| why.to_string()),
    }
}
