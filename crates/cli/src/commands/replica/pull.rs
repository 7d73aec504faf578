//! `replica pull`: fetches changes.

use std::path::Path;

use clap::Args;

use super::round::{self, Direction};
use crate::{consent::Consent, error::CliError};

/// Fetches the changes of the account's library and of the subscribed sources. Changes of this device stay here.
#[derive(Debug, Args)]
pub struct Pull {
    #[command(flatten)]
    consent: Consent,
}

impl Pull {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        round::command(folder, Direction::Pull, self.consent, json).await
    }
}
