//! `replica init`: makes a replica.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
};

use clap::Args;
use driftline_replica::{Client, InitOutcome, Replica, ReplicaError, Retries, ServerUrl, Token};
use serde_json::json;

use super::round::random;
use crate::{error::CliError, hidden_input::ask, output};

/// Makes a replica of a token's account. Nothing is copied before the first `sync`.
///
/// In a folder that has a replica of the same account, it replaces the token and keeps everything else. The token needs
/// the scopes read and write; it is kept in a file of its own, for the owner of the folder only.
#[derive(Debug, Args)]
pub struct Init {
    /// The server's address, such as `https://driftline.example`.
    url: String,
    /// The file that holds the token; without it the token is read from standard input.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Subscribe to this source, too, as `subscribe` does; may be given several times. A subscription that is there keeps its
    /// filter, unless --filter is given.
    #[arg(long = "source", value_name = "NAME")]
    sources: Vec<String>,
    /// Copy only posts of these sources that match this predicate.
    #[arg(
        long,
        value_name = "PREDICATE",
        requires = "sources",
        allow_hyphen_values = true
    )]
    filter: Option<String>,
    /// Send the token over plain http, where others on the way can read it.
    #[arg(long)]
    allow_http: bool,
}

impl Init {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        let server: ServerUrl = self.url.parse()?;
        if server.is_readable_on_the_way() && !self.allow_http {
            return Err(ReplicaError::Readable(server.to_string()).into());
        }
        let client = Client::new(&server, self.token()?, Retries::few())?;
        // Nothing is stored before the sources are known.
        let filter = self.filter.as_deref();
        client
            .check_sources(&self.sources, filter, &mut random)
            .await?;
        let (replica, outcome) = Replica::init(folder, &client, &mut random).await?;
        let subscribed = self.subscribe(&replica, &client).await;
        let account = replica.binding().account.clone();
        replica.close().await;
        subscribed?;
        let (folder, server) = (folder.display().to_string(), server.as_str());
        let reply =
            json!({ "folder": folder, "server": server, "account": account, "outcome": outcome });
        output::reply(json, &reply, |_| {
            vec![match outcome {
                InitOutcome::Made => format!(
                    "made a replica of account {account} of {server}\nin {folder}; `driftline replica sync` copies its library"
                ),
                InitOutcome::TokenRenewed => format!(
                    "the replica of account {account} of {server}\nin {folder} has another token, and kept everything else"
                ),
            }]
        })
    }

    async fn subscribe(&self, replica: &Replica, client: &Client) -> Result<(), ReplicaError> {
        let present = replica.status().await?.subscriptions;
        let mut by_filter: BTreeMap<Option<&str>, Vec<String>> = BTreeMap::new();
        for name in &self.sources {
            // A subscription that is there keeps its filter. The account may read it again.
            let known = present.iter().find(|of| of.source == *name);
            let kept = known.and_then(|of| of.filter.as_deref());
            let filter = self.filter.as_deref().or(kept);
            by_filter.entry(filter).or_default().push(name.clone());
        }
        for (filter, names) in by_filter {
            replica
                .subscribe(client, &names, filter, &mut random)
                .await?;
        }
        Ok(())
    }

    fn token(&self) -> Result<Token, CliError> {
        if let Some(path) = &self.token_file {
            let file = File::open(path).map_err(|error| {
                CliError::usage(format!(
                    "the file {} cannot be read: {error}",
                    path.display()
                ))
            })?;
            return Ok(Token::read(file)?);
        }
        match io::stdin().is_terminal() {
            true => Ok(Token::from_secret(&ask("Token: ")?)?),
            false => Ok(Token::read(io::stdin())?),
        }
    }
}
