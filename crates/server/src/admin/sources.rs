//! Commands that add sources and show their states.

use std::{collections::HashMap, sync::Arc};

use driftline_core::{
    names::audience::Audience,
    source_kind::SourceKind,
    timeline::{Machine, Proof, Settings},
    upstream_id::UpstreamId,
};
use driftline_mirror::{
    Pollers, Reader, SourceFacts, SourceFault, SourceHealth, SourceState, same_api, source_facts,
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    Owner, SourceId, StoreError, Tx, database_clock, local_ids, machine, quarantine,
    social::{
        account_source::{self, SourceRefused},
        local_account,
    },
    source::{self, NameRefused, NewSource, Source, TokenLocation},
};
use driftline_upstream::{Address, Timeline, abilities};

use super::{
    AddSource, AddedSource, Host, ListSources, ListUnreadable, SourceRow, UnreadableItem,
    account_handle::with_account_id, accounts, credentials::check_key, readable,
    source_fit::check_fit, timeline_check::check,
};

/// Adds a source: the operator's, or an account's.
pub(super) async fn add(host: &Host, new: AddSource) -> Result<AddedSource, CommandError> {
    add_checked(host, new, UNCHECKED).await
}

/// Adds a source as [`AddSource`] does. The error of a check ends with `unchecked`, which says what was
/// not done.
///
/// # Errors
/// As for [`AddSource`].
pub async fn add_checked(
    host: &Host,
    new: AddSource,
    unchecked: &str,
) -> Result<AddedSource, CommandError> {
    let is_checked = new.check;
    let account = match new.owner.as_ref().or(host.account.as_ref()) {
        Some(name) => Some(accounts::find(&host.store, name).await?),
        None => None,
    };
    if account.is_some() && new.allow_private {
        return Err(CommandError::usage(SourceRefused::PrivateNetwork));
    }
    let owner = account
        .as_ref()
        .map_or(Owner::Operator, |of| Owner::Account(of.id));
    let new = with_account_id(host, new, owner).await?;
    let mut row = row_of(host, new, owner).await?;
    let name = match &account {
        Some(account) => source::name_of(&account.name, &row.name),
        None => row.name.clone(),
    };
    let of = name.clone();
    let is_taken = host.store.read(move |tx| source::by_name(tx, &of));
    if is_taken.await?.is_some() {
        return Err(taken(&name));
    }
    let warning = match is_checked {
        true => check(host, &row, unchecked).await?,
        false => None,
    };
    if account.is_some() {
        match same_api(&host.store, &row.origin, row.api).await {
            Err(other) if other.usage => {
                return Err(CommandError::failed(format!(
                    "{} does not answer as servers do that speak {}; {UNCHECKED}",
                    row.origin, row.api
                )));
            }
            same => same?,
        }
    }
    let (audience, has_token) = (row.audience, row.token.is_some());
    let added = match account {
        None => host
            .store
            .write(local_ids::root(), move |tx| source::add(tx, &row, now_ms()))
            .await?
            .map_err(SourceRefused::Name),
        Some(account) => {
            row.token = sealed(host, &row).await?;
            let limit = host.sources_per_account;
            let add =
                move |tx: &mut Tx<'_>| account_source::add(tx, account.id, &row, limit, now_ms());
            host.store
                .write(local_account::root(account.id), add)
                .await?
        }
    };
    match added {
        Ok(key) => Ok(AddedSource {
            name,
            id: key.id,
            warning,
            audience,
            has_token,
        }),
        Err(SourceRefused::Name(NameRefused::Taken)) => Err(taken(&name)),
        Err(refused) => Err(CommandError::usage(refused)),
    }
}

fn taken(name: &str) -> CommandError {
    CommandError::usage(format!(
        "there is a source named {name:?} already; choose another with --name, over HTTP `name`"
    ))
}

/// An account's token as it is kept: sealed, wherever it was read from.
pub(super) async fn sealed(
    host: &Host,
    row: &NewSource,
) -> Result<Option<TokenLocation>, CommandError> {
    let Some(access) = &host.access else {
        return Err(CommandError::failed("this process cannot reach upstreams"));
    };
    check_key(host).await?;
    let sealed = access.secrets.sealed(row.token.as_ref(), &row.origin);
    sealed.map_err(CommandError::usage)
}

async fn row_of(host: &Host, new: AddSource, owner: Owner) -> Result<NewSource, CommandError> {
    let address = Address::parse(&new.address).map_err(CommandError::usage)?;
    let timeline: Timeline = new.timeline.parse().map_err(CommandError::usage)?;
    // What others read is not told to accounts: of theirs the check comes first, and is enough where the server speaks
    // one API.
    if owner == Owner::Operator {
        same_api(&host.store, &address.to_string(), new.api).await?;
    }
    check_fit(new.api, &timeline, &new.settings, new.token.is_some())?;
    let by_itself = match owner {
        Owner::Operator if new.token.is_none() => Audience::Public,
        Owner::Operator | Owner::Account(_) => Audience::Private,
    };
    Ok(NewSource {
        name: new
            .name
            .unwrap_or_else(|| default_name(&address, &timeline.to_string())),
        origin: address.to_string(),
        api: new.api,
        timeline: timeline.to_string(),
        kind: SourceKind::Polled,
        upstream: address.to_string(),
        settings: new.settings,
        token: new.token,
        allow_private: new.allow_private,
        owner,
        audience: new.audience.unwrap_or(by_itself),
    })
}

/// The sources with their states.
pub(super) async fn list(host: &Host, _: ListSources) -> Result<Vec<SourceRow>, CommandError> {
    let (sources, readings) = Readings::read(host).await?;
    let rows = sources.into_iter().map(|source| readings.row(source));
    Ok(rows.collect())
}

/// How sources are read at one time.
pub(super) struct Readings {
    /// Of the sessions of this process.
    machines: HashMap<SourceId, Arc<Machine>>,
    health: Option<SourceHealth>,
    refreshes: bool,
    is_out_of_room: bool,
    stored: HashMap<SourceId, Arc<Machine>>,
    /// Items that no post could be read from.
    unreadable: HashMap<SourceId, u64>,
    /// The time by the database's clock, Unix ms.
    database_ms: i64,
}

/// What follows from the machine of a source.
pub(super) struct Reading {
    pub(super) facts: SourceFacts,
    /// What reading again has proven.
    pub(super) proof: Proof,
}

impl Readings {
    /// The sources, and how they are read now.
    pub(super) async fn read(host: &Host) -> Result<(Vec<Source>, Self), StoreError> {
        let viewer = host.viewer;
        let (sources, stored, unreadable, now_ms) = host
            .store
            .read(move |tx| {
                let sources = source::readable(tx, viewer)?;
                let (mut machines, mut unreadable) = (HashMap::new(), HashMap::new());
                for source in sources.iter().filter(|source| is_read(source)) {
                    let machine = machine::load(tx, source.key())?;
                    machines.insert(source.id, Arc::new(machine));
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
        let machines = machines.into_iter();
        let machines = machines.map(|progress| (progress.source.id, progress.machine));
        let readings = Self {
            machines: machines.collect(),
            health: host.pollers.as_ref().map(Pollers::health),
            refreshes: host.pollers.as_ref().is_some_and(Pollers::refreshes),
            is_out_of_room: host.store_disk.low().is_some(),
            stored,
            unreadable,
            database_ms: now_ms,
        };
        Ok((sources, readings))
    }

    /// The machine of a source: that of the session here, or the stored one.
    pub(super) fn machine(&self, source: &Source) -> Arc<Machine> {
        let here = self.machines.get(&source.id);
        let machine = here.or_else(|| self.stored.get(&source.id));
        machine.cloned().unwrap_or_default()
    }

    /// How many items of a source no post could be read from.
    pub(super) fn unreadable(&self, source: &Source) -> u64 {
        self.unreadable.get(&source.id).copied().unwrap_or_default()
    }

    /// What follows from a source's machine.
    pub(super) fn of(&self, source: &Source, machine: &Machine) -> Reading {
        let is_here = self.machines.contains_key(&source.id);
        let (health, database_ms) = (self.health.as_ref(), self.database_ms);
        let reader = Reader {
            is_out_of_room: self.is_out_of_room,
            ..reader(source, machine, is_here, health, database_ms)
        };
        let settings = Settings {
            refreshed: self.refreshes && source.refreshing,
            ..source.settings.clone()
        };
        let now_ms = now_ms();
        let plan = machine.plan(&settings, abilities(source.instance.api), now_ms);
        Reading {
            facts: source_facts(source, machine, &plan, &reader, now_ms),
            proof: plan.proof,
        }
    }

    pub(super) fn row(&self, source: Source) -> SourceRow {
        let machine = self.machine(&source);
        let Reading { facts, .. } = self.of(&source, &machine);
        let is_fault_of_it = facts.state() == SourceState::Failing;
        SourceRow {
            id: source.id,
            state: facts.state(),
            state_text: facts.state_text(),
            unreadable: self.unreadable(&source),
            verdict: facts.verdict(),
            fault: facts.fault.filter(|_| is_fault_of_it),
            wait: facts.wait,
            last_error: machine.last_error().cloned(),
            owner: source::parts_of_name(&source.name).0.map(str::to_owned),
            name: source.name,
            upstream: source.upstream,
            timeline: source.timeline,
            kind: source.instance.api,
            allow_private: source.allow_private,
            audience: source.audience,
            refreshing: source.refreshing,
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
    let key = readable(host, &request.name).await?.key();
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
    let is_held =
        holding.is_some_and(|holding| database_clock::is_live(holding.until_ms, database_ms));
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
        is_out_of_room: false,
    }
}

fn is_read(source: &Source) -> bool {
    !source.paused && source.kind.is_polled()
}

/// A name that people recognise: the host, and the timeline unless it is the
/// public one.
pub(super) fn default_name(address: &Address, timeline: &str) -> String {
    let mut name = address.host().trim_matches(['[', ']']).replace(':', "-");
    if let Some(port) = address.port() {
        name.push_str(&format!("-{port}"));
    }
    if timeline != "public" {
        let is_other = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
        name.push('-');
        name.push_str(&timeline.replace(is_other, "-"));
    }
    name.truncate(64);
    name
}

const UNCHECKED: &str = "the source was not added; --no-check adds it without asking the server";
