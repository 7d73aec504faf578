//! `credential`: the tokens for requests to upstreams.

use std::io::{IsTerminal as _, Read as _};

use clap::{Args, Subcommand};
use driftline_runtime::now_ms;
use driftline_server::admin::{AddCredential, Command, Token};
use driftline_store::source::TokenLocation;
use driftline_upstream::Address;
use secrecy::SecretString;
use serde_json::Value;

use crate::{
    config::Config,
    data_dir::DataDir,
    duration::show_ms,
    error::CliError,
    output,
    source_options::Kind,
    store_access::{Missing, once},
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
}

/// A credential to add. Without a token option it is anonymous: only public posts are asked for, if
/// the API allows it (Mastodon).
#[derive(Debug, Args)]
pub struct Add {
    /// The server's address, such as `https://mastodon.social`.
    url: String,
    /// The API that it speaks.
    #[arg(long, value_enum, default_value_t = Kind::Mastodon)]
    kind: Kind,
    /// The credential's name [default: made from the address].
    #[arg(long)]
    name: Option<String>,
    /// The environment variable of the server's process that holds the token.
    #[arg(long, value_name = "VAR", group = "location")]
    token_env: Option<String>,
    /// The file that holds the token.
    #[arg(long, value_name = "FILE", group = "location")]
    token_file: Option<String>,
    /// Read the token from standard input and keep it in the store, sealed.
    #[arg(long, group = "location")]
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
        let missing = match self {
            Self::Add(_) => Missing::Make,
            _ => Missing::Refuse,
        };
        let command = match &self {
            Self::Add(add) => Command::CredentialAdd(Box::new(add.command(config)?)),
            Self::List => Command::CredentialList,
            Self::Test(CredentialName { name }) => Command::CredentialTest { name: name.clone() },
            Self::Remove(CredentialName { name }) => {
                Command::CredentialRemove { name: name.clone() }
            }
        };
        let answer = once(config, missing, command).await?;
        if json {
            output::json(&answer)?;
        } else if answer["good"] != false {
            self.say(&answer)?;
        }
        match answer["reason"].as_str() {
            Some(reason) if answer["good"] == false => Err(CliError::failed(format!(
                "the credential is not good: {reason}"
            ))),
            _ => Ok(()),
        }
    }

    fn say(&self, answer: &Value) -> Result<(), CliError> {
        let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
        match self {
            Self::Add(_) => {
                if let Some(warning) = answer["warning"].as_str() {
                    output::note(&format!("its token cannot be read yet: {warning}"));
                }
                output::line(&format!(
                    "{} added; `driftline credential test {}` asks the server whose it is",
                    text("name"),
                    text("name")
                ))
            }
            Self::List => print(answer),
            Self::Test(_) => output::line(&format!("{} is good: {}", text("name"), text("who"))),
            Self::Remove(_) => output::line(&format!("{} removed", text("name"))),
        }
    }
}

impl Add {
    fn command(&self, config: &Config) -> Result<AddCredential, CliError> {
        let token = if self.stdin {
            sealed(config, &self.url)?
        } else if let Some(name) = &self.token_env {
            Token::Environment(name.clone())
        } else if let Some(path) = &self.token_file {
            let path = std::path::absolute(path)
                .ok()
                .and_then(|path| path.into_os_string().into_string().ok())
                .ok_or_else(|| {
                    CliError::usage(format!("invalid path {path:?}: it is not UTF-8"))
                })?;
            Token::File(path)
        } else {
            Token::None
        };
        Ok(AddCredential {
            name: self.name.clone(),
            address: self.url.clone(),
            api: self.kind.into(),
            token,
            monthly_posts: self.monthly_posts,
        })
    }
}

/// Reads a token and seals it here: nothing but the sealed text leaves this process.
fn sealed(config: &Config, url: &str) -> Result<Token, CliError> {
    let origin = Address::parse(url).map_err(|error| CliError::usage(error.to_string()))?;
    let mut text = String::new();
    let mut input = std::io::stdin();
    if input.is_terminal() {
        output::note("paste the token, then a line break and Ctrl-D");
    }
    input
        .read_to_string(&mut text)
        .map_err(|error| CliError::failed(format!("standard input cannot be read: {error}")))?;
    let data_dir = DataDir::new(&config.store)?;
    data_dir.make()?;
    let sealed = config
        .secrets(data_dir.data())
        .seal(
            &SecretString::from(text.trim().to_owned()),
            &origin.to_string(),
        )
        .map_err(|error| CliError::usage(error.to_string()))?;
    match sealed {
        TokenLocation::Sealed(sealed) => Ok(Token::Sealed(sealed)),
        _ => Err(CliError::failed("the token was not sealed")),
    }
}

/// Prints a table of credentials with their limits.
pub fn print(answer: &Value) -> Result<(), CliError> {
    let rows = answer.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return output::line(
            "no credentials yet; `driftline credential add URL` adds one, and sources bring theirs",
        );
    }
    let now = now_ms();
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or("?");
        output::line(&format!(
            "{}  {} ({}), token: {}, {}",
            text("name"),
            text("instance"),
            text("api"),
            text("token"),
            text("state")
        ))?;
        match (row["reason"].as_str(), row["until_ms"].as_i64()) {
            (Some(reason), Some(until_ms)) => output::line(&format!(
                "    rests for {}: {reason}",
                show_ms((until_ms - now).max(0))
            ))?,
            (Some(reason), None) => output::line(&format!("    {reason}"))?,
            (None, _) => {}
        }
        for limit in row["limits"].as_array().into_iter().flatten() {
            let left_ms = limit["reset_at_ms"].as_i64().unwrap_or(now) - now;
            let others = limit["used_by_others"].as_u64().unwrap_or(0);
            let others = if others > 0 {
                format!(", {others} used by others of the same token")
            } else {
                String::new()
            };
            output::line(&format!(
                "    {}: {} of {} {} left{}{others}",
                limit["scope"].as_str().unwrap_or("?"),
                limit["remaining"],
                limit["limit"],
                limit["unit"].as_str().unwrap_or("?"),
                if left_ms > 0 {
                    format!(", for {}", show_ms(left_ms))
                } else {
                    String::new()
                },
            ))?;
        }
    }
    Ok(())
}
