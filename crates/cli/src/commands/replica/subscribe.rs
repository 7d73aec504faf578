//! `replica subscribe` and `replica unsubscribe`: the subscriptions of sources.

use clap::Args;
use driftline_replica::{Replica, Retries, Subscription};

use super::{round::random, show::one_line};
use crate::{
    error::CliError,
    output,
    shown::{count, plain},
};

/// Subscribes to sources of the server; each `sync` then copies their posts, the newest first.
///
/// With a filter it copies the posts that match. To change the filter, subscribe again with another one or without: the next
/// `sync` fetches what is lacking and removes the rest.
#[derive(Debug, Args)]
pub struct Subscribe {
    /// The names of the sources.
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Copy only posts that match this predicate, which may have the terms of `find`.
    #[arg(long, value_name = "PREDICATE", allow_hyphen_values = true)]
    filter: Option<String>,
}

impl Subscribe {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let client = replica.client(Retries::few())?;
        let filter = self.filter.as_deref();
        let subscribed = replica
            .subscribe(&client, &self.names, filter, &mut random)
            .await?;
        show(&subscribed, json)
    }
}

/// Ends the subscription of a source, and removes its posts from this device.
#[derive(Debug, Args)]
pub struct Unsubscribe {
    /// The source's name.
    name: String,
}

impl Unsubscribe {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        show(&replica.unsubscribe(&self.name).await?, json)
    }
}

/// Prints subscriptions.
///
/// # Errors
/// [`CliError`] if standard output cannot be written.
pub fn show(subscriptions: &[Subscription], json: bool) -> Result<(), CliError> {
    let mut subscriptions = subscriptions.iter();
    subscriptions.try_for_each(|of| output::reply(json, of, lines))
}

/// The text for a subscription: a line, and one with the beginning of its filter.
pub fn lines(of: &Subscription) -> Vec<String> {
    let entries = u64::try_from(of.entries).unwrap_or(u64::MAX);
    let state = match (of.is_gone, of.is_complete) {
        (true, _) => "; the account may not read it any more",
        (false, true) => "",
        (false, false) => ", not complete yet",
    };
    let line = format!(
        "source {}: {}{state}",
        plain(&of.source),
        count(entries, "post")
    );
    let filter = of.filter.as_deref();
    let filter = filter.map(|filter| format!("    filter: {}", one_line(filter)));
    std::iter::once(line).chain(filter).collect()
}
