//! Commands on the accounts of this server.

use driftline_core::social::{AccountName, AccountState, Direction, Relation, StateChangeError};
use driftline_runtime::{CommandError, now_ms};
use driftline_store::{
    LocalAccountId, Owner, Store, StoreError, Tx, credential, local_ids,
    social::{
        account_removal::{self, AccountContents, CHUNK},
        account_source,
        local_account::{self, AccountTaken, LocalAccount, NewAccount},
        log_ins, mute, profile, relation,
    },
    source::{self, LastPosts},
    sync, thread_source,
};

use super::{
    AccountRow, ApproveAccount, ChangeAccountState, ChangedAccountState, ChangedPassphrase,
    ChangedPublishing, CreateAccount, DeleteAccount, DeletedAccount, Host, ListAccounts,
    PlanAccountRemoval, ResetPassphrase, ResyncAccount, SetPublishing, ShowAccount, ShownAccount,
    account_state_text, pending_accounts, space::give_back_after_removal,
};

/// Creates an account that is active at once.
pub(super) async fn create(
    host: &Host,
    request: CreateAccount,
) -> Result<AccountRow, CommandError> {
    let name = request.name.clone();
    let new = NewAccount {
        name: request.name,
        mail: request.mail,
        passphrase: request.passphrase,
        role: request.role,
        awaits_approval: false,
        reason: String::new(),
    };
    let created = host.store.write(local_ids::root(), move |tx| {
        let created = local_account::create(tx, &new, now_ms())?;
        if let Ok(account) = &created {
            let activated = local_account::change_state(tx, account.id, AccountState::Active)?;
            activated.map_err(|_| StoreError::NoAccount)?;
        }
        Ok::<_, StoreError>(created)
    });
    let created = match created.await? {
        Ok(created) => created,
        Err(taken) => return Err(why_taken(&host.store, name, taken).await?),
    };
    Ok(row(LocalAccount {
        state: AccountState::Active,
        ..created
    }))
}

/// An account whose removal was cut short keeps its name, and no list shows it.
async fn why_taken(
    store: &Store,
    name: AccountName,
    taken: AccountTaken,
) -> Result<CommandError, CommandError> {
    let of = name.clone();
    let is_being_deleted = store.read(move |tx| {
        let is_there = account_removal::find(tx, &of)?.is_some();
        Ok::<_, StoreError>(is_there && local_account::by_name(tx, &of)?.is_none())
    });
    let is_being_deleted = taken == AccountTaken::Name && is_being_deleted.await?;
    Ok(CommandError::usage(match is_being_deleted {
        true => format!(
            "the deletion of the account {name} is not over; `driftline account delete {name}` goes on with it"
        ),
        false => taken.to_string(),
    }))
}

/// The accounts, in order of their creation.
pub(super) async fn list(host: &Host, _: ListAccounts) -> Result<Vec<AccountRow>, CommandError> {
    let mut rows = Vec::new();
    let mut after = None;
    loop {
        let page = host
            .store
            .read(move |tx| local_account::list(tx, after, PAGE));
        let page = page.await?;
        let Some(last) = page.last() else {
            return Ok(rows);
        };
        after = Some(last.id);
        rows.extend(page.into_iter().map(row));
    }
}

/// An account with what it has to do with others.
pub(super) async fn show(host: &Host, request: ShowAccount) -> Result<ShownAccount, CommandError> {
    let account = find(&host.store, &request.name).await?;
    let id = account.id;
    let counts = host.store.read(move |tx| {
        let mut count = |direction, relation| relation::count(tx, id, direction, relation);
        let (outgoing, incoming) = (Direction::Outgoing, Direction::Incoming);
        let following = count(outgoing, Relation::Following)?;
        let requested = count(outgoing, Relation::RequestingFollow)?;
        let blocks = count(outgoing, Relation::Blocking)?;
        let followers = count(incoming, Relation::Following)?;
        let requests = count(incoming, Relation::RequestingFollow)?;
        let mutes = mute::count(tx, id, now_ms())?;
        let profile = profile::load(tx, id)?;
        Ok::<_, StoreError>(ShownAccount {
            account: row(account.clone()),
            profile,
            following,
            followers,
            requested,
            requests,
            blocks,
            mutes,
        })
    });
    Ok(counts.await?)
}

/// Changes an account's state along an edge; one that has it already is left alone. Freezing ends all that is
/// logged in.
pub(super) async fn change_state(
    host: &Host,
    request: ChangeAccountState,
) -> Result<ChangedAccountState, CommandError> {
    let ChangeAccountState { name, from, to } = request;
    let account = find(&host.store, &name).await?;
    let allowed = move |known: &LocalAccount| match from {
        Some(from) if from != known.state => Allowed::NotFrom(from),
        _ => Allowed::Yes,
    };
    change(host, account, to, allowed).await
}

/// Activates an account that waits for approval.
pub(super) async fn approve(
    host: &Host,
    request: ApproveAccount,
) -> Result<ChangedAccountState, CommandError> {
    let account = find(&host.store, &request.name).await?;
    let allowed = |known: &LocalAccount| match known.awaits_approval {
        true => Allowed::Yes,
        false => Allowed::NotWaiting,
    };
    change(host, account, AccountState::Active, allowed).await
}

/// Makes all replicas of an account's library fetch it as a whole at their next sync.
pub(super) async fn resync(
    host: &Host,
    request: ResyncAccount,
) -> Result<ResyncAccount, CommandError> {
    let account = find(&host.store, &request.name).await?;
    let raise = move |tx: &mut Tx<'_>| sync::require_full(tx, account.id);
    host.store
        .write(local_account::root(account.id), raise)
        .await?;
    Ok(ResyncAccount { name: account.name })
}

/// Lets an account show its sources to the world, or no more: then those that are public become private.
pub(super) async fn set_publishing(
    host: &Host,
    request: SetPublishing,
) -> Result<ChangedPublishing, CommandError> {
    let SetPublishing { name, may_publish } = request;
    let account = find(&host.store, &name).await?;
    let id = account.id;
    let set = move |tx: &mut Tx<'_>| local_account::set_may_publish(tx, id, may_publish);
    host.store.write(local_account::root(id), set).await?;
    let mut withdrawn = 0;
    if !may_publish {
        // Also where nothing changed: what was cut short goes on.
        let own = host.store.read(move |tx| account_source::list(tx, id));
        for source in own.await? {
            let key = source.key();
            let withdraw = move |tx: &mut Tx<'_>| account_source::withdraw(tx, key);
            if host.store.write(source::root(key), withdraw).await? {
                withdrawn += 1;
            }
        }
    }
    Ok(ChangedPublishing {
        name: account.name,
        may_publish,
        changed: may_publish != account.may_publish,
        withdrawn,
    })
}

/// Whether an account's state may be changed as was asked.
enum Allowed {
    Yes,
    /// It would have to await approval.
    NotWaiting,
    /// It would have to have this state.
    NotFrom(AccountState),
}

/// Why an account's state was not changed.
enum Refused {
    NotFrom { is: AccountState, not: AccountState },
    NotWaiting { is: AccountState },
    NoEdge(StateChangeError),
}

async fn change(
    host: &Host,
    account: LocalAccount,
    to: AccountState,
    allowed: impl Fn(&LocalAccount) -> Allowed + Send + 'static,
) -> Result<ChangedAccountState, CommandError> {
    let id = account.id;
    let changed = host.store.write(local_account::root(id), move |tx| {
        let known = local_account::by_id(tx, id)?.ok_or(StoreError::NoAccount)?;
        let is = known.state;
        if is == to {
            return Ok::<_, StoreError>(Ok((is, is)));
        }
        match allowed(&known) {
            Allowed::Yes => {}
            Allowed::NotWaiting => return Ok(Err(Refused::NotWaiting { is })),
            Allowed::NotFrom(not) => return Ok(Err(Refused::NotFrom { is, not })),
        }
        let changed = local_account::change_state(tx, id, to)?;
        if to == AccountState::Frozen && changed.is_ok() {
            log_ins::end_all(tx, id)?;
        }
        Ok(changed.map(|before| (before, to)).map_err(Refused::NoEdge))
    });
    let name = account.name;
    let changed = changed.await?;
    host.callers.forget(id);
    let (before, state) = changed.map_err(|refused| why_not(&name, &refused))?;
    // Also where nothing changed: what was cut short goes on.
    suspend_sources(host, id, state == AccountState::Frozen).await?;
    Ok(ChangedAccountState {
        name,
        state,
        before,
        changed: state != before,
    })
}

/// Stops fetching for an account's sources, or lets them go on, but for those that it has paused.
async fn suspend_sources(
    host: &Host,
    account: LocalAccountId,
    suspended: bool,
) -> Result<(), CommandError> {
    let own = host.store.read(move |tx| account_source::list(tx, account));
    for source in own.await? {
        let key = source.key();
        let set = move |tx: &mut Tx<'_>| source::set_suspended(tx, key, suspended);
        let changed = host.store.write(source::root(key), set).await?;
        if changed
            && suspended
            && let Some(pollers) = &host.pollers
        {
            pollers.release(key.id).await;
        }
    }
    Ok(())
}

/// Removes an account's sources with what only they have, and all its tokens.
async fn remove_sources(host: &Host, account: LocalAccountId) -> Result<(u64, u64), CommandError> {
    let store = &host.store;
    let (mut sources, mut posts) = (0, 0);
    for source in store
        .read(move |tx| account_source::list(tx, account))
        .await?
    {
        let key = source.key();
        let pause = move |tx: &mut Tx<'_>| source::set_suspended(tx, key, true);
        store.write(source::root(key), pause).await?;
        if let Some(pollers) = &host.pollers {
            pollers.release(key.id).await;
        }
        let remove = move |tx: &mut Tx<'_>| source::remove(tx, key, LastPosts::Remove);
        let removed = store.write(source::root(key), remove).await?;
        sources += 1;
        posts += removed.posts;
    }
    let owner = Owner::Account(account);
    let hidden = store.read(move |tx| thread_source::of_owner(tx, owner));
    for key in hidden.await? {
        let remove = move |tx: &mut Tx<'_>| source::remove(tx, key, LastPosts::Remove);
        posts += store.write(source::root(key), remove).await?.posts;
    }
    let forget = move |tx: &mut Tx<'_>| credential::remove_of_account(tx, account);
    store.write(local_ids::root(), forget).await?;
    Ok((sources, posts))
}

/// What was wrong, and what to do.
fn why_not(name: &AccountName, refused: &Refused) -> CommandError {
    let text = account_state_text;
    CommandError::usage(match refused {
        Refused::NotFrom { is, not } => {
            format!(
                "{name} is {} and not {}; nothing was changed",
                text(*is),
                text(*not)
            )
        }
        Refused::NotWaiting { is } => {
            format!(
                "{name} does not wait for approval: it is {}; nothing was changed",
                text(*is)
            )
        }
        Refused::NoEdge(StateChangeError { from, to }) => format!(
            "{name} is {} and cannot become {}; `driftline account activate {name}` first, or `driftline account delete {name}`",
            text(*from),
            text(*to)
        ),
    })
}

/// Replaces an account's passphrase, and ends all that was logged in by the one before.
pub(super) async fn reset_passphrase(
    host: &Host,
    request: ResetPassphrase,
) -> Result<ChangedPassphrase, CommandError> {
    let ResetPassphrase { name, passphrase } = request;
    let account = find(&host.store, &name).await?;
    let id = account.id;
    let set = host.store.write(local_account::root(id), move |tx| {
        local_account::set_passphrase(tx, id, &passphrase)?;
        log_ins::end_all(tx, id)
    });
    set.await?;
    host.callers.forget(id);
    Ok(ChangedPassphrase { name: account.name })
}

/// What goes with an account if it is deleted now.
pub(super) async fn plan_removal(
    host: &Host,
    request: PlanAccountRemoval,
) -> Result<DeletedAccount, CommandError> {
    let id = match find_any(&host.store, &request.name).await? {
        Some(id) => id,
        None => {
            let pending = pending_accounts::plan_removal(&host.store, &request.name).await?;
            return pending.ok_or_else(|| unknown_everywhere(&request.name));
        }
    };
    let plan = host.store.read(move |tx| {
        let (mut sources, mut posts) = (0, 0);
        for source in account_source::list(tx, id)? {
            sources += 1;
            posts += source::removal(tx, source.key())?.posts;
        }
        Ok::<_, StoreError>((account_removal::plan(tx, id)?, (sources, posts)))
    });
    let (contents, sources) = plan.await?;
    Ok(deleted(request.name, contents, sources))
}

/// Deletes an account, or a sign-up that is not verified yet, in many short transactions: what is cut short goes on when it is asked for again.
pub(super) async fn delete(
    host: &Host,
    request: DeleteAccount,
) -> Result<DeletedAccount, CommandError> {
    let store = &host.store;
    let id = match find_any(store, &request.name).await? {
        Some(id) => id,
        None => {
            let pending = pending_accounts::delete(store, &request.name).await?;
            return pending.ok_or_else(|| unknown_everywhere(&request.name));
        }
    };
    let root = local_account::root(id);
    store
        .write(root, move |tx| account_removal::begin(tx, id))
        .await?;
    host.callers.forget(id);
    let sources = remove_sources(host, id).await?;
    let mut contents = AccountContents::default();
    loop {
        leave_libraries(store, id).await?;
        let removed = store.write(root, move |tx| account_removal::remove_some(tx, id));
        let removed = removed.await?;
        contents.relations += removed.contents.relations;
        contents.mutes += removed.contents.mutes;
        contents.objects += removed.contents.objects;
        if removed.is_done {
            break;
        }
    }
    give_back_after_removal(host).await;
    Ok(deleted(request.name, contents, sources))
}

/// Takes an account out of the libraries of others: out of their lists, follows, blocks, mutes and notes.
async fn leave_libraries(store: &Store, id: LocalAccountId) -> Result<(), StoreError> {
    loop {
        let owners = store.read(move |tx| account_removal::owners_naming(tx, id, CHUNK));
        let owners = owners.await?;
        for owner in &owners {
            let owner = *owner;
            let forget = move |tx: &mut Tx<'_>| account_removal::forget(tx, owner, id);
            match store.write(local_account::root(owner), forget).await {
                // It was removed meanwhile.
                Ok(()) | Err(StoreError::NoAccount) => {}
                Err(error) => return Err(error),
            }
        }
        if owners.is_empty() {
            return Ok(());
        }
    }
}

/// The account of that name.
pub(super) async fn find(store: &Store, name: &AccountName) -> Result<LocalAccount, CommandError> {
    let of = name.clone();
    let found = store.read(move |tx| local_account::by_name(tx, &of));
    found.await?.ok_or_else(|| unknown(name))
}

/// The account of that name, one whose removal was cut short included.
async fn find_any(
    store: &Store,
    name: &AccountName,
) -> Result<Option<LocalAccountId>, CommandError> {
    let of = name.clone();
    let found = store.read(move |tx| account_removal::find(tx, &of));
    Ok(found.await?)
}

fn unknown_everywhere(name: &AccountName) -> CommandError {
    CommandError::usage(format!(
        "there is no account named {name}, and nobody signs up under it; `driftline account list` and `driftline account list --pending` show the names"
    ))
}

fn unknown(name: &AccountName) -> CommandError {
    CommandError::usage(format!(
        "there is no account named {name}; `driftline account list` shows the names"
    ))
}

fn row(account: LocalAccount) -> AccountRow {
    AccountRow {
        id: account.id.to_string(),
        name: account.name,
        nickname: account.nickname,
        state: account.state,
        awaits_approval: account.awaits_approval,
        role: account.role,
        mail: account.mail,
        mail_verified_at_ms: account.mail_verified_at_ms,
        created_at_ms: account.created_at_ms,
        last_login_at_ms: account.last_login_at_ms,
        reason: account.reason,
        may_publish: account.may_publish,
    }
}

fn deleted(
    name: AccountName,
    contents: AccountContents,
    (sources, posts): (u64, u64),
) -> DeletedAccount {
    DeletedAccount {
        name,
        pending: false,
        sources,
        posts,
        relations: contents.relations,
        mutes: contents.mutes,
        objects: contents.objects,
    }
}

const PAGE: u32 = 1_000;
