//! `replica unsubscribe`: ends the subscription of a source.

use clap::Args;
use driftline_replica::Replica;

use super::subscribe::show;
use crate::error::CliError;

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
