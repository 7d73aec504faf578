//! The commands of the command line on a store, in this process or, while a server holds the data
//! folder, through the server's local socket.

mod account_handle;
mod account_home;
mod account_tokens;
mod accounts;
mod counted_request;
mod credentials;
mod feed;
mod find;
mod growth;
mod host;
pub(crate) mod index_rebuild;
mod instance_removal;
mod instances;
mod look_up_plan;
mod nodes;
pub(crate) mod own_sources;
mod pending_accounts;
mod posts;
mod protocol;
mod reason;
mod refresh_status;
mod server_check;
mod source_fit;
mod source_removal;
mod source_settings;
mod sources;
mod space;
mod status;
mod timeline_check;

use driftline_core::{
    timeline::{Machine, Settings},
    tracking::{ForgottenPosts, TrackOutcome, TrackResult, TrackedPosts},
    upstream_id::UpstreamId,
};
use driftline_mirror::{
    CompletenessReport, Pollers, Reader, completeness_report, forget_tracked, track,
    track_outcomes, tracked_posts, tracked_source,
};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    CommitMachine, SourceKey, Store, StoreError, Tx, Viewer, commit_machine, credential,
    database_clock, machine, quota,
    source::{self, Source},
    source_lease,
};
use driftline_upstream::{ClientPurpose, abilities, scope};
use serde_json::value::{RawValue, to_raw_value};

pub use account_handle::with_account_id;
pub use find::read_query;
pub use host::{DEFAULT_SOURCES_PER_ACCOUNT, Host};
pub use protocol::*;
pub use sources::add_checked;

/// Gives each request its name, its reply and the function that executes it.
macro_rules! commands {
    ($($name:literal: $request:ty => $reply:ty, $function:path;)*) => {
        $(impl Request for $request {
            const NAME: &'static str = $name;
            type Reply = $reply;

            async fn execute(self, host: &Host) -> Result<$reply, CommandError> {
                $function(host, self).await
            }
        })*

        /// Executes the command of that name for a caller that sent its request, and wants its reply,
        /// as JSON.
        ///
        /// # Errors
        /// As for [`Request::execute`], and [`CommandError`] for an unknown name or request.
        pub async fn answer(
            host: &Host,
            name: &str,
            request: &RawValue,
        ) -> Result<Box<RawValue>, CommandError> {
            match name {
                $($name => Box::pin(answer_to::<$request>(host, request)).await,)*
                _ => Err(not_understood(format!("unknown command {name:?}"))),
            }
        }
    };
}

commands! {
    "source_add": AddSource => AddedSource, sources::add;
    "source_list": ListSources => Vec<SourceRow>, sources::list;
    "source_settings": ShowSettings => Settings, source_settings::show;
    "source_set": SetSource => ChangedSource, source_settings::set;
    "source_pause": PauseSource => PausedSource, pause;
    "source_removal": PlanRemoval => SourceContents, source_removal::plan;
    "source_remove": RemoveSource => RemovedSource, source_removal::remove;
    "source_verify": VerifySource => CompletenessReport, verify;
    "source_unreadable": ListUnreadable => Vec<UnreadableItem>, sources::unreadable;
    "source_fill": FillGap => RequestedFill, fill;
    "instance_list": ListInstances => Vec<KnownInstance>, instances::list;
    "instance_show": ShowInstance => ShownInstance, instances::show;
    "instance_forgetting": PlanForgetting => ForgottenInstance, instance_removal::plan;
    "instance_forget": ForgetInstance => ForgottenInstance, instance_removal::forget;
    "status": ShowStatus => MirrorStatus, status::show;
    "space": ShowSpace => StoreSpace, space::show;
    "compact": Compact => Compacted, space::compact;
    "index_plan": PlanIndexRebuild => IndexPlan, index_rebuild::plan;
    "index_rebuild": RebuildIndex => IndexPortion, index_rebuild::rebuild_next;
    "node_list": ListNodes => Vec<NodeRow>, nodes::list;
    "node_drain": DrainNode => DrainedNode, nodes::drain;
    "credential_add": AddCredential => AddedCredential, credentials::add;
    "credential_list": ListCredentials => Vec<CredentialRow>, credentials::list;
    "credential_test": TestCredential => TestedCredential, credentials::test;
    "credential_remove": RemoveCredential => RemovedCredential, credentials::remove;
    "credential_forget_key": ForgetKey => ForgottenKey, credentials::forget_key;
    "refresh_status": ShowRefreshStatus => RefreshStatus, refresh_status::status;
    "track": TrackPosts => TrackResult, track_posts;
    "tracked": CountTracked => TrackedPosts, count_tracked;
    "track_forget": ForgetTracked => ForgottenPosts, forget;
    "track_outcomes": ListOutcomes => Vec<TrackOutcome>, list_outcomes;
    "look_up_plan": PlanLookUps => LookUpPlan, look_up_plan::plan;
    "why": ExplainPost => PostState, posts::why;
    "history": ShowHistory => PostHistory, posts::history;
    "growth": ListGrowth => GrowthPage, growth::page;
    "feed": ReadFeed => FeedPage, feed::read;
    "find": FindPosts => FoundPosts, find::find;
    "find_plan": ExplainFind => FindPlan, find::explain;
    "account_create": CreateAccount => AccountRow, accounts::create;
    "account_list": ListAccounts => Vec<AccountRow>, accounts::list;
    "account_pending": ListPendingAccounts => Vec<PendingAccountRow>, pending_accounts::list;
    "account_show": ShowAccount => ShownAccount, accounts::show;
    "account_state": ChangeAccountState => ChangedAccountState, accounts::change_state;
    "account_approve": ApproveAccount => ChangedAccountState, accounts::approve;
    "account_resync": ResyncAccount => ResyncAccount, accounts::resync;
    "account_publishing": SetPublishing => ChangedPublishing, accounts::set_publishing;
    "account_reset_passphrase": ResetPassphrase => ChangedPassphrase, accounts::reset_passphrase;
    "account_tokens": ListAccountTokens => Vec<AccountTokenRow>, account_tokens::list;
    "account_revoke_token": RevokeAccountToken => RevokedToken, account_tokens::revoke;
    "account_home": ChangeAccountHome => AccountHome, account_home::change;
    "account_removal": PlanAccountRemoval => DeletedAccount, accounts::plan_removal;
    "account_delete": DeleteAccount => DeletedAccount, accounts::delete;
}

async fn answer_to<R: Request>(
    host: &Host,
    request: &RawValue,
) -> Result<Box<RawValue>, CommandError> {
    let request: R = serde_json::from_str(request.get()).map_err(not_understood)?;
    let reply = request.execute(host).await?;
    to_raw_value(&reply).map_err(CommandError::failed)
}

/// The error of a request that this version does not know.
pub fn not_understood(error: impl std::fmt::Display) -> CommandError {
    CommandError::usage(format!(
        "the server does not understand the command ({error}); use the same version of driftline for both"
    ))
}

/// The source of that name, whoever may read it.
///
/// # Errors
/// [`CommandError`] if there is none.
pub async fn find(store: &Store, name: &str) -> Result<Source, CommandError> {
    let of = name.to_owned();
    let found = store.read(move |tx| source::by_name(tx, &of));
    found.await?.ok_or_else(|| {
        CommandError::usage(format!(
            "there is no source named {name:?}; `driftline source list` shows the names"
        ))
    })
}

/// The source of that name that the host's viewer may read; of an account's own its short name will do.
async fn readable(host: &Host, name: &str) -> Result<Source, CommandError> {
    let viewer = host.viewer;
    let names: Vec<String> = host
        .account
        .iter()
        .map(|account| source::name_of(account, name))
        .chain([name.to_owned()])
        .collect();
    let found = host.store.read(move |tx| {
        let all = source::readable(tx, viewer)?;
        for name in &names {
            let named = source::by_name(tx, name)?;
            if let Some(named) = named.filter(|named| all.iter().any(|of| of.id == named.id)) {
                return Ok(Some(named));
            }
        }
        Ok::<_, StoreError>(None)
    });
    found.await?.ok_or_else(|| no_source(host, name))
}

fn no_source(host: &Host, name: &str) -> CommandError {
    let (account, _) = source::parts_of_name(name);
    CommandError::usage(match (account, &host.account) {
        (Some(account), None) => format!(
            "there is no source named {name:?}, or it is private to its account; `--as {account}` shows what that account may read"
        ),
        (_, Some(account)) => format!(
            "there is no source named {name:?} that {account} may read; `driftline source list --as {account}` shows the names"
        ),
        (None, None) => {
            format!("there is no source named {name:?}; `driftline source list` shows the names")
        }
    })
}

/// The source of that name that the host's viewer may change: an account changes its own, the operator those that
/// they may read.
async fn changeable(host: &Host, name: &str) -> Result<Source, CommandError> {
    let source = readable(host, name).await?;
    match (host.viewer, source.owner) {
        (Viewer::Operator, _) => Ok(source),
        (viewer, owner) if viewer.owner() == Some(owner) => Ok(source),
        _ => Err(CommandError::usage(format!(
            "the source {:?} is not that account's own; leave --as out to change it as the operator",
            source.name
        ))),
    }
}

/// The current report of the source of that name.
///
/// # Errors
/// [`CommandError`] if there is no such source.
pub async fn report_of(store: &Store, name: &str) -> Result<CompletenessReport, CommandError> {
    let source = find(store, name).await?;
    report_on(store, None, source).await
}

/// The current report of a source, from its running session if there is one.
async fn report_on(
    store: &Store,
    pollers: Option<&Pollers>,
    source: Source,
) -> Result<CompletenessReport, CommandError> {
    let running = match pollers {
        Some(pollers) => pollers.progress().await,
        None => Vec::new(),
    };
    let running = running
        .into_iter()
        .find(|progress| progress.source.id == source.id);
    let (of, now, is_here) = (source.clone(), now_ms(), running.is_some());
    let (counts, machine, database_ms) = store
        .read(move |tx| {
            let counts = driftline_store::completeness::counts(tx, of.key())?;
            let machine = match &running {
                Some(progress) => (*progress.machine).clone(),
                None => stored_machine(tx, &of, now)?,
            };
            Ok::<_, StoreError>((counts, machine, database_clock::now_ms(tx)?))
        })
        .await?;
    let health = pollers.map(Pollers::health);
    let reader = Reader {
        is_out_of_room: pollers.is_some_and(Pollers::is_out_of_room),
        ..sources::reader(&source, &machine, is_here, health.as_ref(), database_ms)
    };
    Ok(completeness_report(
        &source,
        &machine,
        &counts,
        abilities(source.instance.api),
        source.refreshing && pollers.is_some_and(Pollers::refreshes),
        &reader,
        now,
    ))
}

/// The machine of a source that no session reads here, with what its quota leaves.
fn stored_machine(tx: &mut Tx<'_>, source: &Source, now_ms: i64) -> Result<Machine, StoreError> {
    let mut machine = machine::load(tx, source.key())?;
    let instance = &source.instance;
    let credential = credential::find(tx, instance.id, (source.owner, source.token.as_ref()))?;
    if let (Some(credential), Ok(timeline)) = (credential, source.timeline.parse()) {
        let scope = scope(instance.api, ClientPurpose::Page(&timeline));
        machine.set_quota(quota::load(tx, credential.key(), scope)?.view(now_ms));
    }
    Ok(machine)
}

async fn pause(host: &Host, request: PauseSource) -> Result<PausedSource, CommandError> {
    let PauseSource { name, paused } = request;
    let source = changeable(host, &name).await?;
    let changed = set_paused(host, source.key(), paused).await?;
    Ok(PausedSource {
        name: source.name,
        paused,
        changed,
    })
}

/// Pauses a source, which this process then reads no more, or lets it go on; `false` if it was so already.
async fn set_paused(host: &Host, key: SourceKey, paused: bool) -> Result<bool, StoreError> {
    let set = move |tx: &mut Tx<'_>| source::set_paused(tx, key, paused);
    let changed = host.store.write(source::root(key), set).await?;
    if paused && let Some(pollers) = &host.pollers {
        pollers.release(key.id).await;
    }
    Ok(changed)
}

async fn verify(host: &Host, request: VerifySource) -> Result<CompletenessReport, CommandError> {
    let source = readable(host, &request.name).await?;
    report_on(&host.store, host.pollers.as_ref(), source).await
}

async fn fill(host: &Host, request: FillGap) -> Result<RequestedFill, CommandError> {
    let FillGap { name, gap } = request;
    let key = changeable(host, &name).await?.key();
    let low = UpstreamId::new(gap.as_str());
    let requested = match &host.pollers {
        Some(pollers) => pollers.fill(key.id, low.clone()).await,
        None => None,
    };
    let wanted = match requested {
        Some(requested) => requested,
        None => request_fill_in_store(&host.store, key, low).await?,
    };
    if wanted {
        Ok(RequestedFill { name, gap, wanted })
    } else {
        Err(CommandError::usage(format!(
            "{name} has no open gap that begins at {gap:?}; `driftline source verify {name}` lists them"
        )))
    }
}

/// Under a lease of its own, so that no session overwrites the request.
async fn request_fill_in_store(
    store: &Store,
    key: SourceKey,
    low: UpstreamId,
) -> Result<bool, CommandError> {
    let requested = store
        .write(source::root(key), move |tx| {
            let Some(lease) = source_lease::claim(tx, key, "command line", 1)? else {
                return Ok(None);
            };
            let mut machine = machine::load(tx, key)?;
            let requested = machine.request_fill_at(&low);
            if requested {
                commit_machine(
                    tx,
                    &CommitMachine {
                        source: key,
                        fence: Some(lease.fence),
                        machine: &machine,
                    },
                )?;
            }
            source_lease::release(tx, &lease)?;
            Ok::<_, StoreError>(Some(requested))
        })
        .await?;
    requested.ok_or_else(|| {
        CommandError::failed(
            "another process reads this source; run the command on that server, with its --data folder",
        )
    })
}

async fn track_posts(host: &Host, request: TrackPosts) -> Result<TrackResult, CommandError> {
    let TrackPosts {
        posts,
        allow_private,
        check,
    } = request;
    if check {
        let (instance, api) = (&posts.instance, posts.api);
        let source = tracked_source(&host.store, instance, api, allow_private).await?;
        server_check::check(host, &source, &posts.ids).await?;
    }
    let policies = host.access.as_ref().map(|access| access.policies.clone());
    let policies = policies.unwrap_or_default();
    track(&host.store, &policies, posts, allow_private).await
}

async fn forget(host: &Host, request: ForgetTracked) -> Result<ForgottenPosts, CommandError> {
    let ForgetTracked {
        instance,
        ids,
        is_plan,
    } = request;
    forget_tracked(&host.store, &instance, ids, is_plan).await
}

async fn list_outcomes(
    host: &Host,
    request: ListOutcomes,
) -> Result<Vec<TrackOutcome>, CommandError> {
    track_outcomes(&host.store, &request.instance, request.ids).await
}

async fn count_tracked(host: &Host, request: CountTracked) -> Result<TrackedPosts, CommandError> {
    tracked_posts(&host.store, &request.instance).await
}
