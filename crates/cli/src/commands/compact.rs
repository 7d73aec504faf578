//! `compact`: gives the room of what was removed back.

use bytesize::ByteSize;
use clap::Args;
use driftline_server::admin::{Compact as Request, Compacted, ShowSpace, StoreSpace};

use crate::{
    config::Config,
    consent::Consent,
    error::CliError,
    output,
    progress::Waiting,
    shown,
    store_access::{Missing, once},
    table::{self, left, right},
};

/// Gives free room of the database file back to the file system.
///
/// A file of this version gives it back without holding anything up. An older one is rewritten,
/// once: the command shows what that costs, and asks. On PostgreSQL it shows what room deleted rows
/// take, and changes nothing: autovacuum lets new rows take it.
#[derive(Debug, Args)]
pub struct Compact {
    #[command(flatten)]
    consent: Consent,
}

impl Compact {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, config: &Config, json: bool) -> Result<(), CliError> {
        let space = once(config, Missing::Refuse, ShowSpace).await?;
        let StoreSpace::Sqlite {
            bytes,
            free_bytes,
            is_incremental,
            needed_bytes,
        } = space
        else {
            return output::reply(json, &space, tables);
        };
        if !is_incremental {
            let [bytes, free, needed] = [bytes, free_bytes, needed_bytes].map(ByteSize::b);
            self.consent.ask(&format!(
                "the database takes {bytes}, of which {free} are free; it is rewritten, which takes up to {needed} more in its folder meanwhile, and all that writes to it waits until that is done"
            ))?;
        }
        let compact = Request {
            may_rewrite: !is_incremental,
        };
        let waiting = Waiting::start("giving room back");
        let compacted = once(config, Missing::Refuse, compact).await?;
        drop(waiting);
        output::reply(json, &compacted, lines)
    }
}

fn lines(of: &Compacted) -> Vec<String> {
    let [before, now] = [of.bytes_before, of.bytes].map(ByteSize::b);
    let how = match (of.rewritten, of.bytes < of.bytes_before) {
        (true, _) => "; from now on free room is given back after each removal",
        (false, true) => "",
        (false, false) => ": nothing was free",
    };
    vec![format!("the database took {before} and takes {now}{how}")]
}

fn tables(of: &StoreSpace) -> Vec<String> {
    let StoreSpace::Postgresql { tables } = of else {
        return Vec::new();
    };
    let mut lines = table::lines(tables.iter().map(|table| {
        let vacuumed = table.vacuumed_at_ms.map_or("never".to_owned(), shown::time);
        [
            left("TABLE", &table.name),
            right("SIZE", ByteSize::b(table.bytes)),
            right("ROWS", table.live_rows),
            right("DELETED ROWS", table.dead_rows),
            right("REUSABLE", ByteSize::b(table.reusable_bytes)),
            left("LAST VACUUM", vacuumed),
        ]
    }));
    lines.push(
        "nothing was changed: autovacuum lets new rows take the room of deleted ones, and files seldom shrink; the figures are the server's estimates"
            .to_owned(),
    );
    lines
}
