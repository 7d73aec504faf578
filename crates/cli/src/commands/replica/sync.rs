//! `replica sync`: fetches and sends changes.

use std::path::Path;

use clap::Args;

use super::round::{self, Direction};
use crate::{consent::Consent, error::CliError};

/// Fetches the changes of the server's library, and sends those of this device.
///
/// It may be ended and started again at any moment: it goes on where it stopped. If it would remove most of the replica,
/// it asks before.
#[derive(Debug, Args)]
pub struct Sync {
    #[command(flatten)]
    consent: Consent,
}

impl Sync {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        round::command(folder, Direction::Both, self.consent, json).await
    }
}
