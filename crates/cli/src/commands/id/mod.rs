//! `id`: IDs made, served and taken apart.

pub mod adopt;
mod bounds;
pub mod decode;
pub mod next;
pub mod serve;

use clap::Subcommand;

use crate::{config::Config, error::CliError};

/// What can be done with IDs.
#[derive(Debug, Subcommand)]
pub enum Id {
    /// Print new IDs, one a line.
    Next(next::Next),
    /// Give out IDs over Thrift and HTTP.
    Serve(serve::Serve),
    /// Show the parts of an ID.
    Decode(decode::Decode),
    /// Print the smallest and the largest ID of a time.
    OfTime(bounds::OfTime),
    /// Print the ID to poll with after an ID or a time, with an overlap.
    Since(bounds::Since),
    /// Use the nodes of a data folder that was copied or restored.
    Adopt(adopt::Adopt),
}

impl Id {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        match self {
            Self::Next(next) => next.run(config, json).await,
            Self::Serve(serve) => Box::pin(serve.run(config, json)).await,
            Self::Decode(decode) => decode.run(json),
            Self::OfTime(of_time) => of_time.run(&config.id, json),
            Self::Since(since) => since.run(&config.id, json),
            Self::Adopt(adopt) => adopt.run(config),
        }
    }
}
