//! Commands that add sources and show their states.

use std::collections::HashMap;

use driftline_core::{
    answer::{FailureKind, PageRequest},
    quota::QuotaPurpose,
    timeline::{Machine, Settings},
    upstream_id::UpstreamId,
};
use driftline_mirror::{
    Pollers, Reader, SourceFault, SourceHealth, SourceState, quotas::Permit, same_api, source_facts,
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    SourceId, Store, StoreError,
    credential::{self, Credential},
    database_clock, instance, local_ids, machine, quarantine,
    source::{self, NameRefused, NewSource, Source},
};
use driftline_upstream::{Address, ClientPurpose, Timeline, abilities};

use super::{
    AddSource, AddedSource, ChangedSource, Host, ListSources, ListUnreadable, SetSource,
    ShowSettings, SourceRow, UnreadableItem, find,
};

/// Adds a source.
pub(super) async fn add(host: &Host, new: AddSource) -> Result<AddedSource, CommandError> {
    let is_checked = new.check;
    let row = row_of(&host.store, new).await?;
    let warning = match is_checked {
        true => check(host, &row).await?,
        false => None,
    };
    let name = row.name.clone();
    let added = host
        .store
        .write(local_ids::root(), move |tx| source::add(tx, &row, now_ms()))
        .await?;
    match added {
        Ok(key) => Ok(AddedSource {
            name,
            id: key.id,
            warning,
        }),
        Err(NameRefused::Taken) => Err(taken(&name)),
        Err(refused) => Err(CommandError::usage(refused)),
    }
}

/// What the source's operator decided.
pub(super) async fn settings(host: &Host, request: ShowSettings) -> Result<Settings, CommandError> {
    Ok(find(&host.store, &request.name).await?.settings)
}

/// Changes a source's settings. The session that reads it, in whatever process, ends when its request is
/// answered, and another one goes on.
pub(super) async fn set(host: &Host, request: SetSource) -> Result<ChangedSource, CommandError> {
    let SetSource {
        name,
        settings,
        token,
    } = request;
    let source = find(&host.store, &name).await?;
    let token = token.filter(|token| source.token.as_ref() != Some(token));
    let settings = Some(settings).filter(|settings| *settings != source.settings);
    let changed = token.is_some() || settings.is_some();
    if changed {
        let key = source.key();
        let write = host.store.write(source::root(key), move |tx| {
            if let Some(settings) = &settings {
                source::set_settings(tx, key, settings)?;
            }
            match &token {
                Some(token) => source::set_token(tx, key, Some(token)),
                None => Ok(()),
            }
        });
        write.await?;
    }
    Ok(ChangedSource { name, changed })
}

fn taken(name: &str) -> CommandError {
    CommandError::usage(format!(
        "there is a source named {name:?} already; choose another name with --name"
    ))
}

/// Requests the timeline once, as a session will, so that errors in the address, the timeline or the
/// token show before the source is added. Returns why it was not requested, or not answered, if that
/// is no such error.
async fn check(host: &Host, row: &NewSource) -> Result<Option<String>, CommandError> {
    let name = row.name.clone();
    let is_taken = host.store.read(move |tx| source::by_name(tx, &name));
    if is_taken.await?.is_some() {
        return Err(taken(&row.name));
    }
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    let (client, timeline) = access
        .client_of(row.api, &row.origin, &row.timeline, row.token.as_ref())
        .map_err(|error| CommandError::usage(format!("{error}; {UNCHECKED}")))?;
    let scope = client.scope(ClientPurpose::Page(&timeline));
    let known = credential_of(&host.store, row).await?;
    let mut charged = None;
    if let Some(known) = known {
        let quota = access.quotas.of(&known, scope, QuotaPurpose::Poll);
        match quota.take(u32::from(POSTS)).await? {
            Permit::Sent(charge) => charged = Some((quota, charge)),
            Permit::Until(_) => {
                return Ok(Some("the token's quota is used up for now".to_owned()));
            }
        }
    }
    let request = PageRequest {
        limit: POSTS,
        ..PageRequest::default()
    };
    let answer = client.page(&timeline, &request).await;
    if let Some((quota, charge)) = charged {
        match &answer {
            Ok(page) => {
                let read = u32::try_from(page.listed.len()).unwrap_or(u32::MAX);
                quota.answered(charge, read, &page.headers).await?;
            }
            Err(failure) => quota.failed(charge, failure).await?,
        }
    }
    match answer {
        Ok(_) => Ok(None),
        // The server knows the timeline and the token.
        Err(failure) if matches!(failure.kind, FailureKind::Throttled | FailureKind::Capped) => {
            Ok(Some(failure.message))
        }
        Err(failure) => Err(CommandError::failed(format!(
            "{}; {UNCHECKED}",
            failure.message
        ))),
    }
}

/// The credential that the source would be read with, if it exists: then the request is counted.
async fn credential_of(store: &Store, row: &NewSource) -> Result<Option<Credential>, StoreError> {
    let (origin, token) = (row.origin.clone(), row.token.clone());
    store
        .read(move |tx| {
            let Some(instance) = instance::by_origin(tx, &origin)? else {
                return Ok(None);
            };
            credential::find(tx, instance.id, token.as_ref())
        })
        .await
}

async fn row_of(store: &Store, new: AddSource) -> Result<NewSource, CommandError> {
    let address = Address::parse(&new.address).map_err(CommandError::usage)?;
    let timeline: Timeline = new.timeline.parse().map_err(CommandError::usage)?;
    same_api(store, &address.to_string(), new.api).await?;
    if new.token.is_none() && timeline.needs_token() {
        return Err(CommandError::usage(format!(
            "the timeline {timeline} needs a token: give --token-env or --token-file"
        )));
    }
    Ok(NewSource {
        name: new
            .name
            .unwrap_or_else(|| default_name(&address, &timeline)),
        origin: address.to_string(),
        api: new.api,
        timeline: timeline.to_string(),
        upstream: address.to_string(),
        settings: new.settings,
        token: new.token,
    })
}

/// The sources with their states.
pub(super) async fn list(host: &Host, _: ListSources) -> Result<Vec<SourceRow>, CommandError> {
    let (sources, stored, unreadable, now_ms) = host
        .store
        .read(|tx| {
            let sources = source::list(tx)?;
            let (mut machines, mut unreadable) = (HashMap::new(), HashMap::new());
            for source in sources.iter().filter(|source| is_read(source)) {
                machines.insert(source.id, machine::load(tx, source.key())?);
            }
            for source in &sources {
                unreadable.insert(source.id, quarantine::count(tx, source.key())?);
            }
            let now_ms = database_clock::now_ms(tx)?;
            Ok::<_, StoreError>((sources, machines, unreadable, now_ms))
        })
        .await?;
    let machines = match &host.pollers {
        Some(pollers) => pollers.progress().await,
        None => Vec::new(),
    };
    let readings = Readings {
        machines: machines
            .into_iter()
            .map(|progress| (progress.source.id, (*progress.machine).clone()))
            .collect(),
        health: host.pollers.as_ref().map(Pollers::health),
        refreshes: host.pollers.as_ref().is_some_and(Pollers::refreshes),
        stored,
        unreadable,
        database_ms: now_ms,
    };
    let rows = sources.into_iter().map(|source| readings.row(source));
    Ok(rows.collect())
}

/// How sources are read at one time.
struct Readings {
    /// Of the sessions of this process.
    machines: HashMap<SourceId, Machine>,
    health: Option<SourceHealth>,
    refreshes: bool,
    stored: HashMap<SourceId, Machine>,
    /// Items that no post could be read from.
    unreadable: HashMap<SourceId, u64>,
    /// The time by the database's clock, Unix ms.
    database_ms: i64,
}

impl Readings {
    fn row(&self, source: Source) -> SourceRow {
        let here = self.machines.get(&source.id);
        let machine = here.or_else(|| self.stored.get(&source.id));
        let unread = Machine::default();
        let machine = machine.unwrap_or(&unread);
        let reader = reader(
            &source,
            machine,
            here.is_some(),
            self.health.as_ref(),
            self.database_ms,
        );
        let settings = Settings {
            refreshed: self.refreshes,
            ..source.settings.clone()
        };
        let now_ms = now_ms();
        let plan = machine.plan(&settings, abilities(source.instance.api), now_ms);
        let facts = source_facts(&source, machine, &plan, &reader, now_ms);
        let is_fault_of_it = facts.state() == SourceState::Failing;
        SourceRow {
            id: source.id,
            state: facts.state(),
            state_text: facts.state_text(),
            unreadable: self.unreadable.get(&source.id).copied().unwrap_or_default(),
            verdict: facts.verdict(),
            fault: facts.fault.filter(|_| is_fault_of_it),
            last_error: machine.last_error().cloned(),
            name: source.name,
            upstream: source.upstream,
            timeline: source.timeline,
            paused: source.paused,
            readable: source.readable,
            update_count: source.update_count,
            every_ms: source.settings.every_ms,
        }
    }
}

/// The items of a source that no post could be read from.
pub(super) async fn unreadable(
    host: &Host,
    request: ListUnreadable,
) -> Result<Vec<UnreadableItem>, CommandError> {
    let key = find(&host.store, &request.name).await?.key();
    let items = host.store.read(move |tx| quarantine::list(tx, key)).await?;
    let items = items.into_iter().map(|quarantined| {
        let (item, id) = (quarantined.item, |id: UpstreamId| id.to_string());
        // One that is cut may end in the middle of a character.
        let is_cut = quarantined.size > item.bytes.len() as u64;
        let is_text = match str::from_utf8(&item.bytes) {
            Ok(_) => true,
            Err(error) => is_cut && error.error_len().is_none(),
        };
        let hex = || item.bytes.iter().map(|byte| format!("{byte:02x}"));
        UnreadableItem {
            id: item.position.map(id),
            above: item.above.map(id),
            below: item.below.map(id),
            reason: item.reason,
            program: quarantined.program,
            first_seen_at_ms: quarantined.first_seen_at_ms,
            last_seen_at_ms: quarantined.last_seen_at_ms,
            size: quarantined.size,
            hex: (!is_text).then(|| hex().collect()),
            text: String::from_utf8_lossy(&item.bytes).into_owned(),
        }
    });
    Ok(items.collect())
}

/// Who reads a source with this machine at this time, Unix ms by the database's clock. `is_here` says
/// that a session of this process does.
pub(super) fn reader(
    source: &Source,
    machine: &Machine,
    is_here: bool,
    health: Option<&SourceHealth>,
    database_ms: i64,
) -> Reader {
    let holding = source.holding.as_ref();
    let is_held = holding.is_some_and(|holding| holding.until_ms > database_ms);
    let ours = health.filter(|health| health.is_read(source.id).is_some());
    let fault = match ours {
        Some(health) => health
            .fault(source.id)
            .or_else(|| health.stalled(source.id, now_ms())),
        // Another process reads it and keeps its error with it.
        None if is_held => machine.ongoing_error().map(SourceFault::of_error),
        None => None,
    };
    Reader {
        is_read: is_here || is_held,
        is_elsewhere: is_held && !is_here,
        fault,
    }
}

fn is_read(source: &Source) -> bool {
    !source.paused && source.timeline != source::TRACKED
}

/// A name that people recognise: the host, and the timeline unless it is the
/// public one.
fn default_name(address: &Address, timeline: &Timeline) -> String {
    let mut name = address.host().trim_matches(['[', ']']).replace(':', "-");
    if let Some(port) = address.port() {
        name.push_str(&format!("-{port}"));
    }
    let timeline = timeline.to_string();
    if timeline != "public" {
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
        name.push('-');
        name.push_str(&timeline.replace(is_other, "-"));
    }
    name.truncate(64);
    name
}

/// The page size of the check: the smallest that every API allows.
const POSTS: u16 = 5;
const UNCHECKED: &str = "the source was not added; --no-check adds it without asking the server";
