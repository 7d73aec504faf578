//! `replica push`: sends changes.

use std::path::Path;

use clap::Args;

use super::round::{self, Direction};
use crate::{consent::Consent, error::CliError};

/// Sends the changes of this device. Changes that came to the server meanwhile are not fetched.
#[derive(Debug, Args)]
pub struct Push {}

impl Push {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, folder: &Path, json: bool) -> Result<(), CliError> {
        round::command(folder, Direction::Push, Consent::of(false), json).await
    }
}
