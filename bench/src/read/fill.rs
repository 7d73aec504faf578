//! Fills a timeline with valid rows, faster than by taking pages in.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use driftline_core::answer::PageRequest;
use driftline_id::Layout;
use driftline_sim::{World, WorldConfig};
use driftline_store::{Store, Target};
use rusqlite::{Connection, Transaction, params};

use crate::{failure::Failure, ingest, pages};

/// A store with one readable source.
pub(crate) struct Filled {
    pub(crate) path: PathBuf,
    /// The IDs of its posts, which are those of its entries, ascending.
    pub(crate) ids: Arc<Vec<i64>>,
}

/// A new store whose one source holds this many posts of realistic size, by so many authors in turn.
pub(crate) fn timeline(path: &Path, posts: usize, accounts: i64) -> Result<Filled, Failure> {
    let store = Store::open(Target::Sqlite {
        path: path.to_owned(),
    })?;
    ingest::add_source(&store)?;
    store.close_blocking();
    let templates = templates()?;
    let mut connection = Connection::open(path)?;
    connection.execute_batch("pragma synchronous = off; pragma temp_store = memory;")?;
    let mut ids = Vec::with_capacity(posts);
    while ids.len() < posts {
        let tx = connection.transaction()?;
        for number in ids.len()..posts.min(ids.len() + POSTS_PER_COMMIT) {
            ids.push(insert(
                &tx,
                number,
                &templates[number % templates.len()],
                accounts,
            )?);
        }
        tx.commit()?;
    }
    let last = ids.last().copied().unwrap_or(0);
    connection.execute("update local_clock set last_id = ?1", [last])?;
    connection.execute("update source set readable = 1", [])?;
    connection.execute(
        "update library set update_count = ?1",
        [i64::try_from(posts)?],
    )?;
    let checkpoint = "pragma optimize; pragma wal_checkpoint(truncate)";
    connection.execute_batch(checkpoint)?;
    Ok(Filled {
        path: path.to_owned(),
        ids: Arc::new(ids),
    })
}

/// A post's JSON and the ID in it.
struct Template {
    id: String,
    raw: String,
}

fn templates() -> Result<Vec<Template>, Failure> {
    let config = WorldConfig::punctual(40.0);
    let end_ms = config.start_ms + 60_000;
    let mut world = World::new(config, 1);
    let mut templates = Vec::new();
    let mut below = None;
    while templates.len() < TEMPLATES {
        let request = PageRequest {
            max_id: below,
            limit: pages::LIMIT,
            ..PageRequest::default()
        };
        let mut page = world.page(end_ms, &request);
        below = page.last().map(|status| status.id.clone());
        if page.is_empty() {
            return Err(Failure::new("the simulated world has too few posts"));
        }
        templates.extend(page.iter_mut().map(|status| Template {
            id: status.id.to_string(),
            raw: pages::padded(status),
        }));
    }
    Ok(templates)
}

fn insert(
    tx: &Transaction<'_>,
    number: usize,
    template: &Template,
    accounts: i64,
) -> Result<i64, Failure> {
    let number = i64::try_from(number)?;
    let at_ms = START_MS + number * MS_BETWEEN_POSTS;
    let id = i64::try_from(Layout::PULSATE.smallest_at(at_ms))?;
    let upstream_id = Layout::MASTODON.smallest_at(at_ms).to_string();
    let raw = template.raw.replace(&template.id, &upstream_id);
    let account = 1 + number % accounts;
    tx.prepare_cached(
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, read_at_ms, visibility, content_hash, listed, in_public, raw)
         values (?1, 1, ?2, ?3, ?3, ?4, 1, ?5, ?5, 'public', ?1, 1, 1, ?6)",
    )?
    .execute(params![
        id,
        upstream_id,
        format!("https://sim.example/statuses/{upstream_id}"),
        account,
        at_ms,
        raw,
    ])?;
    tx.prepare_cached(
        "insert into upstream_post (upstream_id, instance_id, post_id) values (?1, 1, ?2)",
    )?
    .execute(params![upstream_id, id])?;
    tx.prepare_cached(
        "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
             arrived_at_ms, content_hash, gone, visibility, account_id)
         values (1, 1, ?1, ?1, ?2, ?3, ?3, ?4, ?1, 0, 0, ?5)",
    )?
    .execute(params![
        id,
        format!("{:03}{upstream_id}", upstream_id.len()),
        number + 1,
        at_ms,
        account,
    ])?;
    if number < accounts {
        tx.execute(
            "insert into account (id, acct_id, instance_id, upstream_id, acct, display_name, url, raw)
             values (?1, ?1, 1, ?2, ?2, ?2, null, '{}')",
            params![account, format!("drifter{account}")],
        )?;
    }
    Ok(id)
}

/// October 2025: after the epoch of local IDs, before now.
const START_MS: i64 = 1_760_000_000_000;
const MS_BETWEEN_POSTS: i64 = 86;
/// How many authors a timeline has where that does not matter.
pub(crate) const ACCOUNTS: i64 = 200;
const TEMPLATES: usize = 400;
const POSTS_PER_COMMIT: usize = 10_000;
