//! `export`: what is stored, as lines on standard output or as files with a manifest.

mod check;
mod columns;
mod directory;
mod file;
mod format;
mod manifest;
mod media;
mod media_fetch;
mod options;
#[cfg(feature = "parquet")]
mod parquet_file;
mod part;
mod reading;
mod record;
mod redaction;

use driftline_core::{feed::FeedPosition, predicate::Usage};
use driftline_server::admin::read_query;

pub use self::options::Export;
use self::{
    directory::Directory, file::LineWriter, format::MediaMode, options::ExportCommand,
    reading::Reading, record::Filter,
};
use crate::{
    config::Config,
    error::CliError,
    output,
    store_access::{self, Missing},
};

impl Export {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(mut self, config: &Config, json: bool) -> Result<(), CliError> {
        if let Some(ExportCommand::Check { dir }) = &self.command {
            return check::run(dir, json);
        }
        if let Some(query) = &self.matching {
            // One spelling, and no `me`: a folder is for one predicate, whoever writes into it.
            let predicate = read_query(query, config.as_account.as_ref(), Usage::Search)?;
            self.matching = Some(predicate.canonical().to_string());
        }
        if let Some(dir) = self.out.clone() {
            return store_access::with(config, Missing::Refuse, async |access| {
                let client = match self.media {
                    Some(MediaMode::Fetch) => Some(config.http(self.allow_private)?),
                    _ => None,
                };
                Directory::open(dir, &self, client)?
                    .write(access, json)
                    .await
            })
            .await;
        }
        if self.names.is_empty() {
            return Err(CliError::usage(
                "name the sources to export; `driftline source list` shows the names",
            ));
        }
        store_access::with(config, Missing::Refuse, async |access| {
            let mut lines = LineWriter::new(self.format, std::io::stdout().lock())?;
            let mut reading = Reading::new(&self.names, self.filter(), &FeedPosition::default());
            while let Some(page) = reading.next(access).await? {
                for record in &page {
                    lines
                        .write(record)
                        .map_err(|error| output::broken(&error))?;
                }
                lines.flush().map_err(|error| output::broken(&error))?;
            }
            lines.flush().map_err(|error| output::broken(&error))
        })
        .await
    }

    fn filter(&self) -> Filter {
        Filter {
            since_ms: self.since,
            until_ms: self.until,
            by: self.by,
            matching: self.matching.clone(),
            deleted: self.deleted,
        }
    }
}
