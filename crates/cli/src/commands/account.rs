//! `account`: the people of this server.

use clap::{ArgAction, Args, Subcommand};
use driftline_core::social::{AccountName, AccountState, MailAddress, Role, without_bidi_controls};
use driftline_server::admin::{
    AccountHome, AccountRow, AccountTokenRow, ApproveAccount, ChangeAccountHome,
    ChangeAccountState, ChangedAccountState, ChangedPassphrase, ChangedPublishing, CreateAccount,
    DeleteAccount, DeletedAccount, ListAccountTokens, ListAccounts, ListPendingAccounts,
    PendingAccountRow, PlanAccountRemoval, ResetPassphrase, ResyncAccount, RevokeAccountToken,
    RevokedToken, SetPublishing, ShowAccount, ShownAccount, TokenKind, account_state_text as state,
};

use crate::{
    config::Config,
    consent::Consent,
    error::CliError,
    options::passphrase_options::{self, NewPassphrase, PassphraseOptions},
    output, parse, shown as text,
    store_access::{Missing, once, show},
    table::{self, left},
};

/// What can be done with accounts.
#[derive(Debug, Subcommand)]
pub enum Account {
    /// Create an account that is active at once; you vouch for its mail address.
    Create(Create),
    /// List the accounts, or the sign-ups that are not verified yet.
    List(List),
    /// Show an account.
    Show(Name),
    /// Let an account do nothing any more: it cannot log in, and its tokens stop at once.
    Freeze(Name),
    /// Let an account post nothing for the world.
    Silence(Name),
    /// Let an account do everything, again or at first.
    Activate(Name),
    /// Let an account that is frozen do everything again.
    Unfreeze(Name),
    /// Approve an account that waits for it.
    Approve(Name),
    /// Let an account show its sources to the world, or no more: then those that are public become private.
    Publish(Publish),
    /// Make all replicas of an account's library fetch it as a whole at their next sync.
    Resync(Name),
    /// Replace an account's passphrase.
    ResetPassphrase(Reset),
    /// List what is logged in to an account, or log one of them out.
    Tokens(Tokens),
    /// List the sources that an account has in its home timeline, or change them.
    Home(Home),
    /// Delete an account with all that is its own, or a sign-up that is not verified yet.
    Delete(Delete),
}

/// An account to create.
#[derive(Debug, Args)]
pub struct Create {
    #[command(flatten)]
    name: Name,
    /// Its mail address.
    #[arg(long, value_name = "ADDRESS")]
    mail: MailAddress,
    /// What it may do for the server.
    #[arg(long, value_parser = parse::role(), default_value_t)]
    role: Role,
    #[command(flatten)]
    passphrase: PassphraseOptions,
}

/// Which accounts to list.
#[derive(Debug, Args)]
pub struct List {
    /// List the sign-ups whose mail address is not verified yet; they are no accounts.
    #[arg(long)]
    pending: bool,
}

/// An account that may publish, or may not.
#[derive(Debug, Args)]
pub struct Publish {
    #[command(flatten)]
    name: Name,
    /// Whether it may: `on` or `off`.
    #[arg(value_name = "on|off", value_parser = parse::switch, action = ArgAction::Set)]
    may_publish: bool,
}

/// An account whose passphrase is to be replaced.
#[derive(Debug, Args)]
pub struct Reset {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    passphrase: PassphraseOptions,
}

/// What is logged in to an account.
#[derive(Debug, Args)]
pub struct Tokens {
    #[command(flatten)]
    name: Name,
    /// Log out the one of that ID.
    #[arg(long, value_name = "ID", value_parser = parse::log_in_id)]
    revoke: Option<u64>,
}

/// The sources of an account's home timeline.
#[derive(Debug, Args)]
pub struct Home {
    #[command(flatten)]
    name: Name,
    /// Take in all that a source shows to the account; may be given several times.
    #[arg(long, value_name = "SOURCE")]
    add: Vec<String>,
    /// Leave a source out; may be given several times.
    #[arg(long, value_name = "SOURCE")]
    remove: Vec<String>,
}

/// An account to delete.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    name: Name,
    #[command(flatten)]
    consent: Consent,
}

/// An account's name.
#[derive(Debug, Args)]
pub struct Name {
    /// The account's name: 1 to 64 of the letters A to Z in any case, digits, `.`, `_`, `~` and `-`.
    name: AccountName,
}

impl Account {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        if config.as_account.is_some() {
            return Err(CliError::usage(
                "only the operator manages accounts; leave --as out",
            ));
        }
        match self {
            Self::Create(create) => {
                let NewPassphrase { hash, generated } = create.passphrase.read().await?;
                let request = CreateAccount {
                    passphrase: hash,
                    name: create.name.name,
                    mail: create.mail,
                    role: create.role,
                };
                let created = once(config, Missing::Make, request).await?;
                passphrase_options::reply(json, &created, generated.as_ref(), shown_created)
            }
            Self::List(List { pending: false }) => show(config, json, ListAccounts, listed).await,
            Self::List(List { pending: true }) => {
                show(config, json, ListPendingAccounts, listed_pending).await
            }
            Self::Show(Name { name }) => show(config, json, ShowAccount { name }, shown).await,
            Self::Freeze(Name { name }) => change(config, json, name, AccountState::Frozen).await,
            Self::Silence(Name { name }) => {
                change(config, json, name, AccountState::Silenced).await
            }
            Self::Activate(Name { name }) => change(config, json, name, AccountState::Active).await,
            Self::Unfreeze(Name { name }) => {
                let request = ChangeAccountState {
                    name,
                    from: Some(AccountState::Frozen),
                    to: AccountState::Active,
                };
                show(config, json, request, changed).await
            }
            Self::Approve(Name { name }) => {
                show(config, json, ApproveAccount { name }, approved).await
            }
            Self::Resync(Name { name }) => {
                show(config, json, ResyncAccount { name }, resynced).await
            }
            Self::Publish(publish) => {
                let request = SetPublishing {
                    name: publish.name.name,
                    may_publish: publish.may_publish,
                };
                show(config, json, request, publishing).await
            }
            Self::ResetPassphrase(reset) => {
                let NewPassphrase { hash, generated } = reset.passphrase.read().await?;
                let request = ResetPassphrase {
                    passphrase: hash,
                    name: reset.name.name,
                };
                let changed = once(config, Missing::Refuse, request).await?;
                let shown =
                    |of: &ChangedPassphrase| vec![format!("{} has another passphrase", of.name)];
                passphrase_options::reply(json, &changed, generated.as_ref(), shown)
            }
            Self::Tokens(Tokens {
                name: Name { name },
                revoke: None,
            }) => show(config, json, ListAccountTokens { name }, tokens).await,
            Self::Tokens(Tokens {
                name: Name { name },
                revoke: Some(id),
            }) => show(config, json, RevokeAccountToken { name, id }, revoked).await,
            Self::Home(home) => {
                let request = ChangeAccountHome {
                    name: home.name.name,
                    add: home.add,
                    remove: home.remove,
                };
                show(config, json, request, home_sources).await
            }
            Self::Delete(delete) => output::reply(json, &delete.run(config).await?, deleted),
        }
    }
}

impl Delete {
    /// Deletes the account, once it is said what goes with it and that is agreed to.
    async fn run(self, config: &Config) -> Result<DeletedAccount, CliError> {
        let name = self.name.name;
        if !self.consent.is_given() {
            let plan = PlanAccountRemoval { name: name.clone() };
            let contents = once(config, Missing::Refuse, plan).await?;
            let what = match contents.pending {
                true => format!("the sign-up of {name} would be deleted"),
                false => format!("{name} would be deleted for good, {}", gone(&contents)),
            };
            self.consent.ask(&what)?;
        }
        once(config, Missing::Refuse, DeleteAccount { name }).await
    }
}

async fn change(
    config: &Config,
    json: bool,
    name: AccountName,
    to: AccountState,
) -> Result<(), CliError> {
    let request = ChangeAccountState {
        name,
        from: None,
        to,
    };
    show(config, json, request, changed).await
}

fn shown_created(of: &AccountRow) -> Vec<String> {
    vec![format!(
        "{} is created and {}, with the mail address {}",
        of.name,
        state(of.state),
        of.mail
    )]
}

fn resynced(of: &ResyncAccount) -> Vec<String> {
    vec![format!(
        "the replicas of {} fetch the whole library at their next sync",
        of.name
    )]
}

fn changed(of: &ChangedAccountState) -> Vec<String> {
    let already = if of.changed { "" } else { " already" };
    vec![format!("{} is {}{already}", of.name, state(of.state))]
}

fn approved(of: &ChangedAccountState) -> Vec<String> {
    match of.changed {
        true => vec![format!("{} is approved and {}", of.name, state(of.state))],
        false => changed(of),
    }
}

fn publishing(of: &ChangedPublishing) -> Vec<String> {
    let (not, already) = match (of.may_publish, of.changed) {
        (true, true) => ("", ""),
        (true, false) => ("", " already"),
        (false, true) => ("not ", ""),
        (false, false) => ("not ", ", as before"),
    };
    let withdrawn = match of.withdrawn {
        0 => String::new(),
        withdrawn => format!(
            "; {} of its own, which the world could read, {} private now",
            text::count(withdrawn as u64, "source"),
            if withdrawn == 1 { "is" } else { "are" }
        ),
    };
    vec![format!(
        "{} may {not}show sources to the world{already}{withdrawn}",
        of.name
    )]
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn tokens(rows: &Vec<AccountTokenRow>) -> Vec<String> {
    if rows.is_empty() {
        return vec!["nothing is logged in".to_owned()];
    }
    table::lines(rows.iter().map(|row| {
        let kind = match row.kind {
            TokenKind::App => "app",
            TokenKind::Device => "device",
            TokenKind::Browser => "browser",
        };
        [
            left("ID", &row.id),
            left("KIND", kind),
            left("NAME", line(&row.name)),
            left("SCOPES", row.scopes.as_deref().unwrap_or("all")),
            left("CREATED", text::time(row.created_at_ms)),
            // It is not recorded more precisely.
            left(
                "LAST USE",
                row.used_at_ms.map_or_else(|| "-".to_owned(), text::date),
            ),
        ]
    }))
}

fn revoked(of: &RevokedToken) -> Vec<String> {
    vec![format!("{} is logged out of {}", of.id, of.name)]
}

fn home_sources(of: &AccountHome) -> Vec<String> {
    let private = match of.private_sources {
        0 => None,
        some => Some(format!(
            "{} that accounts keep to themselves",
            text::count(some, "source")
        )),
    };
    if of.sources.is_empty() {
        let sources = private.unwrap_or_else(|| "no source".to_owned());
        return vec![format!(
            "the home timeline of {} has whom it follows, and {sources} as a whole",
            of.name
        )];
    }
    let mut lines = table::lines(of.sources.iter().map(|source| {
        [
            left("SOURCE", &source.name),
            left("READS IT", if source.is_readable { "yes" } else { "no" }),
        ]
    }));
    lines.extend(private.map(|private| format!("and {private}")));
    lines
}

fn deleted(of: &DeletedAccount) -> Vec<String> {
    vec![match of.pending {
        true => format!("the sign-up of {} is deleted", of.name),
        false => format!("{} is deleted, {}", of.name, gone(of)),
    }]
}

fn gone(of: &DeletedAccount) -> String {
    let sources = match of.sources {
        0 => String::new(),
        sources => format!(
            "{} with {} that no other source has, ",
            text::count(sources, "source"),
            text::count(of.posts, "post")
        ),
    };
    format!(
        "with its profile, {sources}{}, {} and {} of its library",
        text::count(of.relations.unsigned_abs(), "relation"),
        text::count(of.mutes.unsigned_abs(), "mute"),
        text::count(of.objects.unsigned_abs(), "object")
    )
}

fn state_of(account: &AccountRow) -> String {
    let waits = if account.awaits_approval {
        ", awaits approval"
    } else {
        ""
    };
    format!("{}{waits}", state(account.state))
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn listed(accounts: &Vec<AccountRow>) -> Vec<String> {
    if accounts.is_empty() {
        return vec![
            "no accounts yet; `driftline account create NAME --mail ADDRESS` makes one".to_owned(),
        ];
    }
    table::lines(accounts.iter().map(|account| {
        [
            left("NAME", &account.name),
            left("STATE", state_of(account)),
            left("ROLE", account.role),
            left("MAIL", &account.mail),
            left("CREATED", text::time(account.created_at_ms)),
            left("LAST LOG-IN", log_in(account)),
        ]
    }))
}

#[expect(clippy::ptr_arg, reason = "a reply")]
fn listed_pending(rows: &Vec<PendingAccountRow>) -> Vec<String> {
    if rows.is_empty() {
        return vec!["no sign-up waits for its mail address to be verified".to_owned()];
    }
    table::lines(rows.iter().map(|row| {
        [
            left("NAME", &row.name),
            left("MAIL", &row.mail),
            left("SIGNED UP", text::time(row.signed_up_at_ms)),
            left("VOID AT", text::time(row.void_at_ms)),
            left("REASON", line(&row.reason)),
        ]
    }))
}

fn log_in(account: &AccountRow) -> String {
    account
        .last_login_at_ms
        .map_or_else(|| "never".to_owned(), text::time)
}

fn shown(of: &ShownAccount) -> Vec<String> {
    let account = &of.account;
    let mut lines = vec![
        format!("{}  {}", account.name, line(account.nickname.as_str()))
            .trim_end()
            .to_owned(),
        format!(
            "    ID {}, {}, {}",
            account.id,
            state_of(account),
            account.role
        ),
        format!(
            "    mail {}, verified {}",
            account.mail,
            text::time(account.mail_verified_at_ms)
        ),
        format!(
            "    created {}, last log-in {}",
            text::time(account.created_at_ms),
            log_in(account)
        ),
        format!(
            "    follows {}, followed by {}, asks {}, asked by {}, blocks {}, mutes {}",
            of.following, of.followers, of.requested, of.requests, of.blocks, of.mutes
        ),
    ];
    if account.may_publish {
        lines.push("    may show its sources to the world".to_owned());
    }
    if !account.reason.is_empty() {
        lines.push(format!(
            "    why it wants to be here: {}",
            line(&account.reason)
        ));
    }
    if !of.profile.bio.is_empty() {
        lines.push(format!("    bio: {}", line(&of.profile.bio)));
    }
    lines
}

/// A text of somebody else's as one line, which can neither move the terminal's cursor nor turn text around.
fn line(text: &str) -> String {
    without_bidi_controls(text).replace(char::is_control, " ")
}
