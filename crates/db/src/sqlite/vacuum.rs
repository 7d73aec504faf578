use std::path::Path;

use rusqlite::Connection;

use super::error::classify;
use crate::error::DbError;

/// Rewrites the whole file, outside of a transaction, as one that can return free pages.
pub(crate) fn vacuum(connection: &Connection, path: &Path) -> Result<(), DbError> {
    let run = |sql: &str| {
        connection
            .execute_batch(sql)
            .map_err(|error| classify(&error))
    };
    // The copy is written to a file next to the database. In memory it would take the same space,
    // and the system's folder for temporary files may be in memory, or small.
    let folder = path.parent().and_then(Path::to_str).unwrap_or_default();
    let folder = std::path::absolute(folder).unwrap_or_default();
    let folder = folder.to_str().unwrap_or_default().replace('\'', "''");
    let done = run("pragma temp_store = file")
        .and_then(|()| run(&format!("pragma temp_store_directory = '{folder}'")))
        .and_then(|()| run("pragma auto_vacuum = incremental; vacuum"));
    let restored = run("pragma temp_store_directory = ''; pragma temp_store = memory");
    done.and(restored)?;
    // Readers may delay it. A later checkpoint then shrinks the file.
    run("pragma wal_checkpoint(truncate)")
}
