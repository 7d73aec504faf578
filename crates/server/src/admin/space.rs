//! Commands about the room that the store takes.

use std::time::Duration;

use driftline_runtime::CommandError;
use driftline_store::{Root, Store, StoreError, space};
use tokio::time::sleep;

use super::{Compact, Compacted, Host, ShowSpace, StoreSpace, TableSpace};

/// The room that the store takes.
pub(super) async fn show(host: &Host, _: ShowSpace) -> Result<StoreSpace, CommandError> {
    let read = host.store.read(|tx| {
        let pages = space::pages(tx)?;
        Ok::<_, StoreError>((pages, space::tables(tx)?))
    });
    Ok(match read.await? {
        (Some(pages), _) => StoreSpace::Sqlite {
            bytes: pages.all * pages.page_bytes,
            free_bytes: pages.free * pages.page_bytes,
            is_incremental: pages.is_incremental,
            // The copy, and the write-ahead log that it comes back through.
            needed_bytes: 2 * pages.all.saturating_sub(pages.free) * pages.page_bytes,
        },
        (None, tables) => StoreSpace::Postgresql {
            tables: tables.into_iter().map(row).collect(),
        },
    })
}

fn row(table: space::TableSpace) -> TableSpace {
    let rows = u128::from(table.live_rows) + u128::from(table.dead_rows);
    let reusable = u128::from(table.bytes) * u128::from(table.dead_rows) / rows.max(1);
    TableSpace {
        name: table.name,
        bytes: table.bytes,
        live_rows: table.live_rows,
        dead_rows: table.dead_rows,
        reusable_bytes: u64::try_from(reusable).unwrap_or(table.bytes),
        vacuumed_at_ms: table.vacuumed_at_ms,
    }
}

/// Gives free room back, or rewrites the file where it has to and may.
pub(super) async fn compact(host: &Host, request: Compact) -> Result<Compacted, CommandError> {
    let store = &host.store;
    let before = pages(store).await?;
    let rewritten = !before.is_incremental;
    match rewritten {
        true if !request.may_rewrite => {
            return Err(CommandError::usage(
                "this file can only be compacted by rewriting it, and that was not agreed to",
            ));
        }
        true => store.vacuum().await.map_err(StoreError::from)?,
        false => give_back(store).await?,
    }
    let now = pages(store).await?;
    Ok(Compacted {
        bytes_before: before.all * before.page_bytes,
        bytes: now.all * now.page_bytes,
        rewritten,
    })
}

async fn pages(store: &Store) -> Result<space::Pages, CommandError> {
    let found = store
        .read(|tx| Ok::<_, StoreError>(space::pages(tx)?))
        .await?;
    found.ok_or_else(|| {
        CommandError::usage(
            "PostgreSQL compacts its tables itself: autovacuum lets new rows take the room of deleted ones",
        )
    })
}

/// Gives the room of what was removed back: next to a server's other work, or at once where no
/// server runs.
pub(super) async fn give_back_after_removal(host: &Host) {
    let store = host.store.clone();
    let giving = async move {
        if let Err(error) = give_back(&store).await {
            tracing::info!(%error, "free room was not given back; `driftline compact` does it");
        }
    };
    match host.pollers {
        Some(_) => drop(tokio::spawn(giving)),
        None => giving.await,
    }
}

/// Gives all free pages back, in short writes between which others have their turn.
async fn give_back(store: &Store) -> Result<(), StoreError> {
    loop {
        let write = store.write(Root::none(), |tx| {
            Ok::<_, StoreError>(space::give_back(tx, PAGES)?)
        });
        if write.await? < u64::from(PAGES) {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
}

/// At most about 0.1 s of the writer's time.
const PAGES: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(100);
