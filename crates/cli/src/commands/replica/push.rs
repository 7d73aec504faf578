//! `replica push`: sends changes.

use std::path::Path;

use clap::Args;

use super::round::{self, Direction};
use crate::{consent::Consent, error::CliError};

/// Sends the changes of this device, after fetching those of the server as `pull` does.
///
/// Changes that come to the server meanwhile are left to the next pull.
#[derive(Debug, Args)]
pub struct Push {
    #[command(flatten)]
    consent: Consent,
}

impl Push {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        round::command(folder, Direction::Push, self.consent, json).await
    }
}
