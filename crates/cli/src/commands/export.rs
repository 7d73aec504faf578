//! `export`: what is stored, as JSON lines.

use std::io::{self, BufWriter, Write as _};

use clap::{Args, builder::PossibleValue};
use driftline_runtime::now_ms;
use driftline_server::admin::{ExportPosts, ExportRow};

use crate::{
    config::Config,
    error::CliError,
    output, shown,
    store_access::{self, Missing},
};

/// Prints a source's posts in order of arrival, one JSON object a line.
///
/// `status` in it is the post as the upstream wrote it, without what concerns
/// the account whose token read it (`favourited`, a poll's `voted`…); a post
/// known to be deleted has `deleted_at_ms`, and what was stored of it is gone. One
/// that the source lists no more, though it is not known to be deleted, has
/// `left_at_ms`.
#[derive(Debug, Args)]
pub struct Export {
    /// The source's name.
    name: String,
    /// How posts are written.
    #[arg(long = "format", value_parser = [jsonl()], default_value = "jsonl")]
    _format: String,
    /// Only posts that were stored since: a time such as
    /// 2026-03-01T12:00:00Z, or how long ago, such as 2h.
    #[arg(long, value_name = "TIME", value_parser = |text: &str| shown::ago_or_time_ms(text, now_ms()))]
    since: Option<i64>,
}

impl Export {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config) -> Result<(), CliError> {
        store_access::with(config, Missing::Refuse, async |access| {
            let mut after = 0;
            loop {
                let request = ExportPosts {
                    name: self.name.clone(),
                    after,
                    since_ms: self.since,
                    limit: PAGE,
                };
                let page = access.execute(request).await?;
                print(&page.rows).map_err(|error| output::broken(&error))?;
                match page.next {
                    Some(next) => after = next,
                    None => return Ok(()),
                }
            }
        })
        .await
    }
}

fn jsonl() -> PossibleValue {
    PossibleValue::new("jsonl").help("One JSON object a line")
}

fn print(rows: &[ExportRow]) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for row in rows {
        serde_json::to_writer(&mut out, row)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

const PAGE: u32 = 500;
