//! The blocking `postgres` client over the same tables: one `unnest` a table and one transaction a
//! page.

use std::collections::HashMap;

use driftline_store::{Store, Target};
use postgres::{Client, NoTls, Statement, Transaction};

use super::{
    Speed,
    bare::{self, Row},
    ours,
};
use crate::{failure::Failure, pages::RawPage};

/// Takes all pages in.
pub(super) fn ingest(
    target: Target,
    url: &str,
    schema: &str,
    pages: &[RawPage],
) -> Result<Speed, Failure> {
    let store = Store::open(target)?;
    ours::add_source(&store)?;
    store.close_blocking();
    let mut writer = Writer::connect(url, schema)?;
    let speed = bare::ingest(pages, |rows, at_ms| writer.commit(rows, at_ms))?;
    speed.of_all_stored(writer.stored()?)
}

/// A connection that commits pages.
struct Writer {
    client: Client,
    statements: Statements,
    machine: String,
    usn: i64,
    accounts: i64,
    pages: usize,
}

impl Writer {
    /// Connects to a store that has the source.
    fn connect(url: &str, schema: &str) -> Result<Self, Failure> {
        let mut client = Client::connect(url, NoTls)?;
        client.batch_execute(&format!("set search_path to {schema}"))?;
        Ok(Self {
            statements: Statements::prepare(&mut client)?,
            client,
            machine: bare::machine_json()?,
            usn: 0,
            accounts: 0,
            pages: 0,
        })
    }

    /// Commits a page.
    fn commit(&mut self, rows: &[Row<'_>], at_ms: i64) -> Result<(), Failure> {
        let statements = &self.statements;
        let mut tx = self.client.transaction()?;
        let count = i64::try_from(rows.len())?;
        let last: i64 = tx
            .query_one(&statements.hold, &[&(at_ms << 22), &count])?
            .get(0);
        let first = last - count + 1;
        let ids: Vec<i64> = (first..).take(rows.len()).collect();
        let upstream_ids: Vec<&str> = rows.iter().map(|row| row.upstream_id).collect();
        let new = tx.query(&statements.seen, &[&upstream_ids, &ids])?;
        let new: Vec<String> = new.iter().map(|row| row.get(0)).collect();
        let found: Vec<(&Row<'_>, i64)> = rows
            .iter()
            .zip(ids)
            .filter(|(row, _)| new.iter().any(|id| id == row.upstream_id))
            .collect();
        let accounts = store_accounts(&mut tx, statements, &found, &mut self.accounts)?;
        store_posts(&mut tx, statements, &found, &accounts, at_ms)?;
        store_entries(&mut tx, statements, &found, &accounts, at_ms, self.usn)?;
        schedule(&mut tx, statements, &found, at_ms)?;
        self.usn += i64::try_from(found.len())?;
        tx.execute(&statements.source, &[&self.machine])?;
        tx.execute(&statements.library, &[&self.usn])?;
        let high = rows.last().map_or("", |row| &row.position);
        let low = format!("{:06}", self.pages / 5);
        tx.execute(&statements.gap, &[&low, &high])?;
        tx.commit()?;
        self.pages += 1;
        Ok(())
    }

    /// How many posts are stored.
    fn stored(&mut self) -> Result<u64, Failure> {
        let sql = "select count(*) from schedule";
        let stored: i64 = self.client.query_one(sql, &[])?.get(0);
        Ok(u64::try_from(stored)?)
    }
}

struct Statements {
    seen: Statement,
    known_accounts: Statement,
    accounts: Statement,
    posts: Statement,
    entries: Statement,
    hold: Statement,
    source: Statement,
    library: Statement,
    gap: Statement,
    fresh: Statement,
    schedule: Statement,
}

impl Statements {
    fn prepare(client: &mut Client) -> Result<Self, postgres::Error> {
        let mut prepare = |sql: &str| client.prepare(sql);
        Ok(Self {
            seen: prepare(
                "insert into upstream_post (upstream_id, instance_id, post_id)
                 select u, 1, p from unnest($1::text[], $2::bigint[]) as r(u, p)
                 on conflict do nothing returning upstream_id",
            )?,
            known_accounts: prepare(
                "select upstream_id, id from account
                 where upstream_id = any($1::text[]) and instance_id = 1",
            )?,
            accounts: prepare(
                "with shown as (select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[],
                     $6::text[]) as r(i, u, a, d, l, r)),
                 known as (insert into account (id, instance_id, upstream_id, acct, acct_id)
                     select i, 1, u, a, i from shown)
                 insert into account_profile (source_id, instance_id, account_id, acct_id, acct, acct_key, display_name,
                     url, raw, seen_at_ms)
                 select 1, 1, i, i, a, lower(a), d, l, r, 0 from shown",
            )?,
            posts: prepare(
                "insert into post (id, instance_id, upstream_id, uri, url, account_id,
                     first_source_id, created_at_ms, edited_at_ms, read_at_ms, visibility,
                     boost_of_upstream_id, content_hash, listed, in_public, raw)
                 select i, 1, u, ri, rl, a, 1, c, e, $11, v, b, h, v = 'public', true, r
                 from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[],
                     $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $12::text[])
                     as r(i, u, ri, rl, a, c, e, v, b, h, r)",
            )?,
            entries: prepare(
                "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
                     arrived_at_ms, content_hash, gone, visibility, account_id)
                 select 1, 1, i, i, p, u, u, $6, h, false, case when l then 0 else 1 end, a
                 from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $7::bigint[])
                     as r(i, p, u, h, l, a)",
            )?,
            hold: prepare(
                "update local_clock set last_id = greatest($1, last_id + 1) + $2 - 1 where one = 1
                 returning last_id",
            )?,
            source: prepare("update source set machine = $1 where id = 1")?,
            library: prepare("update library set update_count = $1 where owner_id = 1")?,
            gap: prepare(
                "insert into gap (source_id, instance_id, low, high, kind, history, fill_requested,
                     tries, read_age_ms, from_ms, until_ms)
                 values (1, 1, $1, $2, 'provisional', false, false, 0, 0, 1, 2)
                 on conflict (source_id, low, instance_id) do update set high = excluded.high",
            )?,
            fresh: prepare(
                "insert into freshness (post_id, instance_id, bucket, post_created_at_ms, first_at_ms,
                     refreshed_at_ms, due_at_ms, refreshes, failures, missing, state_hash, replies,
                     boosts, favourites, before_total, notified_at_ms, notified_total)
                 select i, 1, 8 + i % 8, b, $1, $1, $2, 0, 0, false, h, c, d, e, 0, $1, t
                 from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::bigint[]) as r(i, b, h, c, d, e, t)",
            )?,
            schedule: prepare(
                "insert into schedule (bucket, due_at_ms, post_id, instance_id)
                 select 8 + i % 8, $1, i, 1 from unnest($2::bigint[]) as r(i)",
            )?,
        })
    }
}

/// The local IDs of all authors; those that are new are stored.
fn store_accounts<'j>(
    tx: &mut Transaction<'_>,
    statements: &Statements,
    found: &[(&Row<'j>, i64)],
    last: &mut i64,
) -> Result<HashMap<String, i64>, postgres::Error> {
    let mut missing: HashMap<&str, &Row<'j>> = HashMap::new();
    for (row, _) in found {
        missing.insert(row.account.id, row);
    }
    let upstream_ids: Vec<&str> = missing.keys().copied().collect();
    let mut ids = HashMap::new();
    for row in tx.query(&statements.known_accounts, &[&upstream_ids])? {
        let upstream_id: String = row.get(0);
        missing.remove(upstream_id.as_str());
        ids.insert(upstream_id, row.get(1));
    }
    if missing.is_empty() {
        return Ok(ids);
    }
    let new: Vec<&Row<'j>> = missing.into_values().collect();
    let numbers: Vec<i64> = (*last + 1..).take(new.len()).collect();
    *last += new.len() as i64;
    tx.execute(
        &statements.accounts,
        &[
            &numbers,
            &new.iter().map(|row| row.account.id).collect::<Vec<_>>(),
            &new.iter().map(|row| row.account.acct).collect::<Vec<_>>(),
            &new.iter()
                .map(|row| row.account.display_name)
                .collect::<Vec<_>>(),
            &new.iter().map(|row| row.account.url).collect::<Vec<_>>(),
            &new.iter().map(|row| row.account_raw).collect::<Vec<_>>(),
        ],
    )?;
    ids.extend(new.iter().map(|row| row.account.id.to_owned()).zip(numbers));
    Ok(ids)
}

fn store_posts(
    tx: &mut Transaction<'_>,
    statements: &Statements,
    found: &[(&Row<'_>, i64)],
    accounts: &HashMap<String, i64>,
    now_ms: i64,
) -> Result<(), postgres::Error> {
    let rows = || found.iter().map(|(row, _)| row);
    tx.execute(
        &statements.posts,
        &[
            &found.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
            &rows().map(|row| row.upstream_id).collect::<Vec<_>>(),
            &rows().map(|row| row.uri).collect::<Vec<_>>(),
            &rows().map(|row| row.url).collect::<Vec<_>>(),
            &rows()
                .map(|row| accounts.get(row.account.id).copied())
                .collect::<Vec<_>>(),
            &rows().map(|row| row.created_at_ms).collect::<Vec<_>>(),
            &rows().map(|row| row.edited_at_ms).collect::<Vec<_>>(),
            &rows().map(|row| row.visibility).collect::<Vec<_>>(),
            &rows().map(|row| row.boost_of).collect::<Vec<_>>(),
            &rows().map(|row| row.content_hash).collect::<Vec<_>>(),
            &now_ms,
            &rows().map(|row| row.raw).collect::<Vec<_>>(),
        ],
    )?;
    Ok(())
}

fn store_entries(
    tx: &mut Transaction<'_>,
    statements: &Statements,
    found: &[(&Row<'_>, i64)],
    accounts: &HashMap<String, i64>,
    now_ms: i64,
    usn: i64,
) -> Result<(), postgres::Error> {
    let rows = || found.iter().map(|(row, _)| row);
    tx.execute(
        &statements.entries,
        &[
            &found.iter().map(|(_, id)| *id).collect::<Vec<_>>(),
            &rows().map(|row| row.position.as_str()).collect::<Vec<_>>(),
            &(usn + 1..).take(found.len()).collect::<Vec<_>>(),
            &rows().map(|row| row.content_hash).collect::<Vec<_>>(),
            &rows()
                .map(|row| row.visibility == "public")
                .collect::<Vec<_>>(),
            &now_ms,
            &rows()
                .map(|row| accounts.get(row.account.id).copied())
                .collect::<Vec<_>>(),
        ],
    )?;
    Ok(())
}

/// The posts' freshness and due times.
fn schedule(
    tx: &mut Transaction<'_>,
    statements: &Statements,
    found: &[(&Row<'_>, i64)],
    now_ms: i64,
) -> Result<(), postgres::Error> {
    let rows = || found.iter().map(|(row, _)| row);
    let ids: Vec<i64> = found.iter().map(|(_, id)| *id).collect();
    let due_at_ms = now_ms + bare::EVERY_MS;
    tx.execute(
        &statements.fresh,
        &[
            &now_ms,
            &due_at_ms,
            &ids,
            &rows().map(|row| row.created_at_ms).collect::<Vec<_>>(),
            &rows().map(|row| row.content_hash).collect::<Vec<_>>(),
            &rows().map(|row| row.replies).collect::<Vec<_>>(),
            &rows().map(|row| row.boosts).collect::<Vec<_>>(),
            &rows().map(|row| row.favourites).collect::<Vec<_>>(),
            &rows().map(|row| row.total()).collect::<Vec<_>>(),
        ],
    )?;
    tx.execute(&statements.schedule, &[&due_at_ms, &ids])?;
    Ok(())
}
