//! Fills a timeline with valid rows, faster than by taking pages in.

use driftline_core::names::object_uri::{UriEvidence, UriKey};
use driftline_db::Column;
use driftline_id::Layout;
use driftline_store::{Root, StoreError, Tx};

use crate::{database::Place, failure::Failure, ingest, pages, upstream::Kind};

/// Fills a new database, whose one source then holds this many posts of realistic size, by so many authors in turn;
/// returns the IDs of the posts, which are those of their entries, ascending.
pub(crate) fn timeline(place: &Place, posts: usize, accounts: i64) -> Result<Vec<i64>, Failure> {
    let store = place.open()?;
    ingest::add_source(&store)?;
    let mut templates = Vec::new();
    for page in pages::forward(TEMPLATES)? {
        templates.extend(Kind::Mastodon.posts(&page.body)?);
    }
    let mut ids = Vec::with_capacity(posts);
    while ids.len() < posts {
        let numbers = ids.len()..posts.min(ids.len() + POSTS_PER_COMMIT);
        let rows =
            numbers.map(|number| Row::of(number, &templates[number % templates.len()], accounts));
        let rows: Vec<Row> = rows.collect::<Result<_, _>>()?;
        ids.extend(rows.iter().map(|row| row.id));
        store.write_blocking(Root::none(), move |tx| insert(tx, &rows, accounts))?;
    }
    let last = ids.last().copied().unwrap_or(0);
    let count = i64::try_from(posts)?;
    store.write_blocking(Root::none(), move |tx| {
        tx.execute("update local_clock set last_id = $1", &[&last])?;
        tx.execute("update source set readable = true", &[])?;
        tx.execute("update library set update_count = $1", &[&count])?;
        Ok::<_, StoreError>(())
    })?;
    store.close_blocking();
    place.settle()?;
    Ok(ids)
}

/// A post, its entry, and what names it.
struct Row {
    number: i64,
    id: i64,
    upstream_id: String,
    position: String,
    uri: String,
    key: UriKey,
    account: i64,
    at_ms: i64,
    raw: String,
}

impl Row {
    fn of(number: usize, (id, raw): &(u64, String), accounts: i64) -> Result<Self, Failure> {
        let number = i64::try_from(number)?;
        let at_ms = START_MS + number * MS_BETWEEN_POSTS;
        let upstream_id = Layout::MASTODON.smallest_at(at_ms).to_string();
        let uri = format!("https://sim.example/statuses/{upstream_id}");
        Ok(Self {
            number,
            id: i64::try_from(Layout::PULSATE.smallest_at(at_ms))?,
            position: format!("{:03}{upstream_id}", upstream_id.len()),
            key: UriKey::new(&uri).ok_or_else(|| Failure::new("a post without a name"))?,
            uri,
            account: 1 + number % accounts,
            at_ms,
            raw: raw.replace(&id.to_string(), &upstream_id),
            upstream_id,
        })
    }
}

fn insert(tx: &mut Tx<'_>, rows: &[Row], accounts: i64) -> Result<(), StoreError> {
    let row = || rows.iter();
    let ids = || Column::i64(row().map(|row| row.id));
    let upstream_ids = || Column::text(row().map(|row| row.upstream_id.as_str()));
    let of_account = || Column::i64(row().map(|row| row.account));
    let at = || Column::i64(row().map(|row| row.at_ms));
    tx.execute_many(
        "insert into post (id, instance_id, upstream_id, uri, url, account_id, first_source_id,
             created_at_ms, read_at_ms, visibility, content_hash, listed, in_public, raw)
         select r.id, 1, r.upstream_id, r.uri, r.uri, r.account, 1, r.at_ms, r.at_ms, 'public',
             r.id, true, true, r.json
         from {rows as r(id, upstream_id, uri, account, at_ms, json)}",
        &[],
        &[
            ids(),
            upstream_ids(),
            Column::text(row().map(|row| row.uri.as_str())),
            of_account(),
            at(),
            Column::text(row().map(|row| row.raw.as_str())),
        ],
    )?;
    tx.execute_many(
        "insert into upstream_post (upstream_id, instance_id, post_id)
         select r.upstream_id, 1, r.id from {rows as r(id, upstream_id)}",
        &[],
        &[ids(), upstream_ids()],
    )?;
    tx.execute_many(
        "insert into object_uri (uri_key, instance_id, kind, object_id, known)
         select r.uri_key, 1, 'post', r.id, $1 from {rows as r(id, uri_key)}",
        &[&UriEvidence::Claimed.name()],
        &[ids(), Column::text(row().map(|row| row.key.as_str()))],
    )?;
    tx.execute_many(
        "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
             arrived_at_ms, content_hash, gone, visibility, account_id)
         select 1, 1, r.id, r.id, r.position, r.usn, r.usn, r.at_ms, r.id, false, 0, r.account
         from {rows as r(id, position, usn, at_ms, account)}",
        &[],
        &[
            ids(),
            Column::text(row().map(|row| row.position.as_str())),
            Column::i64(row().map(|row| row.number + 1)),
            at(),
            of_account(),
        ],
    )?;
    let first: Vec<(i64, String)> = row()
        .filter(|row| row.number < accounts)
        .map(|row| (row.account, format!("drifter{}", row.account)))
        .collect();
    tx.execute_many(
        "insert into account (id, acct_id, instance_id, upstream_id, acct)
         select r.id, r.id, 1, r.name, r.name from {rows as r(id, name)}",
        &[],
        &[
            Column::i64(first.iter().map(|(id, _)| *id)),
            Column::text(first.iter().map(|(_, name)| name.as_str())),
        ],
    )?;
    Ok(())
}

/// October 2025: after the epoch of local IDs, before now.
const START_MS: i64 = 1_760_000_000_000;
const MS_BETWEEN_POSTS: i64 = 86;
/// How many authors a timeline has where that does not matter.
pub(crate) const ACCOUNTS: i64 = 200;
const TEMPLATES: u64 = 400;
const POSTS_PER_COMMIT: usize = 10_000;
