//! `credential`: the tokens for requests to upstreams.

use std::io::{IsTerminal as _, Read as _};

use clap::{Args, Subcommand};
use driftline_core::{api::Api, quota::Unit};
use driftline_runtime::now_ms;
use driftline_server::admin::{
    AddCredential, AddedCredential, CredentialRow, ForgetKey, ForgottenKey, ListCredentials,
    QuotaLimit, RemoveCredential, RemovedCredential, TestCredential,
};
use driftline_store::source::TokenLocation;
use driftline_upstream::Address;
use secrecy::SecretString;

use crate::{
    config::Config,
    data_dir::DataDir,
    duration::show_ms,
    error::CliError,
    options::token_options::TokenOptions,
    output, parse,
    store_access::{Missing, once, show},
};

/// What can be done with credentials.
#[derive(Debug, Subcommand)]
pub enum Credential {
    /// Add a token that posts of a server are refreshed with.
    Add(Add),
    /// List the credentials, with what is left of their quotas.
    List,
    /// Ask the server whose a credential is; one that rests is used again.
    Test(CredentialName),
    /// Remove a credential.
    Remove(CredentialName),
    /// Forget which key stored tokens are sealed with, if it is lost: the next start of a server brings
    /// another. Then each stored token has to be added again, and people log in again.
    ForgetKey,
}

/// A credential to add. Without a token option it is anonymous: only public posts are asked for, if
/// the API allows it (Mastodon).
#[derive(Debug, Args)]
pub struct Add {
    /// The server's address, such as `https://mastodon.social`.
    url: String,
    /// The API that it speaks.
    #[arg(long, value_parser = parse::api(), default_value_t)]
    kind: Api,
    /// The credential's name [default: made from the address].
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    token: TokenOptions,
    /// Read the token from standard input and keep it in the store, sealed.
    #[arg(long, conflicts_with_all = ["token_env", "token_file"])]
    stdin: bool,
    /// The most posts that it may read in a calendar month.
    #[arg(long, value_name = "POSTS", value_parser = clap::value_parser!(u32).range(1..))]
    monthly_posts: Option<u32>,
}

/// A credential's name.
#[derive(Debug, Args)]
pub struct CredentialName {
    /// The credential's name, as `credential list` shows it.
    name: String,
}

impl Credential {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::Add(add) => {
                let added = once(config, Missing::Make, add.request(config)?).await?;
                output::reply(json, &added, shown_added)
            }
            Self::List => show(config, json, ListCredentials, |rows| list(rows)).await,
            Self::Test(CredentialName { name }) => {
                let tested = once(config, Missing::Refuse, TestCredential { name }).await?;
                let name = &tested.name;
                let good = |who: &String| format!("{name} is good: {who}");
                output::reply(json, &tested, |of| of.who.iter().map(good).collect())?;
                match &tested.reason {
                    Some(reason) => Err(CliError::failed(format!(
                        "the credential is not good: {reason}"
                    ))),
                    None => Ok(()),
                }
            }
            Self::Remove(CredentialName { name }) => {
                let shown = |of: &RemovedCredential| vec![format!("{} removed", of.name)];
                show(config, json, RemoveCredential { name }, shown).await
            }
            Self::ForgetKey => {
                let shown = |of: &ForgottenKey| {
                    vec![match of.was_known {
                        true => "the key is forgotten: start the servers again, with the same credentials.key in each data folder".to_owned(),
                        false => "no key was known".to_owned(),
                    }]
                };
                show(config, json, ForgetKey, shown).await
            }
        }
    }
}

fn shown_added(AddedCredential { name, warning, .. }: &AddedCredential) -> Vec<String> {
    if let Some(warning) = warning {
        output::note(&format!("its token cannot be read yet: {warning}"));
    }
    vec![format!(
        "{name} added; `driftline credential test {name}` asks the server whose it is"
    )]
}

impl Add {
    fn request(&self, config: &Config) -> Result<AddCredential, CliError> {
        let token = match self.stdin {
            true => Some(sealed(config, &self.url)?),
            false => self.token.location()?,
        };
        Ok(AddCredential {
            name: self.name.clone(),
            address: self.url.clone(),
            api: self.kind,
            token,
            monthly_posts: self.monthly_posts,
        })
    }
}

/// Reads a token and seals it here: nothing but the sealed text leaves this process.
fn sealed(config: &Config, url: &str) -> Result<TokenLocation, CliError> {
    let origin = Address::parse(url).map_err(CliError::usage)?;
    let mut text = String::new();
    let mut input = std::io::stdin();
    if input.is_terminal() {
        output::note("paste the token, then a line break and Ctrl-D");
    }
    let read = input.read_to_string(&mut text);
    read.map_err(|error| CliError::failed(format!("standard input cannot be read: {error}")))?;
    let data_dir = DataDir::new(&config.store)?;
    data_dir.make()?;
    let (secrets, token) = (config.secrets(data_dir.data()), text.trim().to_owned());
    let sealed = secrets.seal(&SecretString::from(token), &origin.to_string());
    sealed.map_err(CliError::usage)
}

/// The lines of credentials with their limits.
pub fn list(rows: &[CredentialRow]) -> Vec<String> {
    if rows.is_empty() {
        return vec![
            "no credentials yet; `driftline credential add URL` adds one, and sources bring theirs"
                .to_owned(),
        ];
    }
    let (now, mut lines) = (now_ms(), Vec::new());
    for row in rows {
        let (name, token, state) = (&row.name, &row.token, &row.state);
        let instance = row.instance.as_deref().unwrap_or("?");
        let api = row.api.map_or("?", Api::name);
        lines.push(format!(
            "{name}  {instance} ({api}), token: {token}, {state}"
        ));
        lines.extend(row.reason.iter().map(|reason| {
            let rests = row.until_ms.map_or_else(String::new, |until_ms| {
                format!("rests for {}: ", show_ms((until_ms - now).max(0)))
            });
            format!("    {rests}{reason}")
        }));
        lines.extend(row.limits.iter().map(|limit| limit_line(limit, now)));
    }
    lines
}

fn limit_line(limit: &QuotaLimit, now_ms: i64) -> String {
    let unit = match limit.unit {
        Unit::Requests => "requests",
        Unit::Posts => "posts",
    };
    let left = match limit.reset_at_ms - now_ms {
        left_ms @ 1.. => format!(", for {}", show_ms(left_ms)),
        _ => String::new(),
    };
    let others = match limit.used_by_others {
        0 => String::new(),
        others => format!(", {others} used by others of the same token"),
    };
    format!(
        "    {}: {} of {} {unit} left{left}{others}",
        limit.scope, limit.remaining, limit.limit
    )
}
