//! The blocking `postgres` client over the same tables: one `unnest` a table and one transaction a
//! page.

use std::collections::HashMap;

use postgres::{Client, NoTls, Statement, Transaction, types::ToSql};

use super::{
    Speed,
    bare::{self, Row},
};
use crate::{database::postgres_target, failure::Failure, pages::RawPage};

/// Takes all pages in, over a new store.
pub(super) fn ingest(url: &str, schema: &str, pages: &[RawPage]) -> Result<Speed, Failure> {
    bare::make_store(postgres_target(url, Some(schema.to_owned())))?;
    let mut client = Client::connect(url, NoTls)?;
    client.batch_execute(&format!("set search_path to {schema}"))?;
    let mut statements = Statements::default();
    let machine = bare::machine_json()?;
    let (mut accounts, mut usn, mut number) = (0, 0, 0);
    let speed = bare::ingest(pages, |rows, at_ms| {
        let mut tx = client.transaction()?;
        let count = i64::try_from(rows.len())?;
        let hold = statements.get(&mut tx, HOLD)?;
        let held = tx.query_one(&hold, &[&(at_ms << 22), &count])?;
        let last: i64 = held.get(0);
        let ids: Vec<i64> = (last - count + 1..=last).collect();
        let upstream_ids: Vec<&str> = rows.iter().map(|row| row.post.id).collect();
        let seen = statements.get(&mut tx, SEEN)?;
        let new = tx.query(&seen, &[&upstream_ids, &ids])?;
        let new: Vec<String> = new.iter().map(|row| row.get(0)).collect();
        let both = rows.iter().zip(ids);
        let is_new = |row: &Row<'_>| new.iter().any(|id| id == row.post.id);
        let found: Vec<(&Row<'_>, i64)> = both.filter(|(row, _)| is_new(row)).collect();
        let authors = store_accounts(&mut tx, &mut statements, &found, &mut accounts)?;
        store_posts(&mut tx, &mut statements, &found, &authors, at_ms, usn)?;
        usn += i64::try_from(found.len())?;
        statements.run(&mut tx, SOURCE, &[&machine])?;
        statements.run(&mut tx, LIBRARY, &[&usn])?;
        let high = rows.last().map_or("", |row| &row.position);
        let low = format!("{:06}", number / 5);
        statements.run(&mut tx, GAP, &[&low, &high])?;
        number += 1;
        Ok(tx.commit()?)
    })?;
    let sql = "select count(*) from schedule";
    let stored: i64 = client.query_one(sql, &[])?.get(0);
    speed.of_all_stored(u64::try_from(stored)?)
}

/// Statements that are prepared, by their texts.
#[derive(Default)]
struct Statements(HashMap<&'static str, Statement>);

impl Statements {
    fn get(
        &mut self,
        tx: &mut Transaction<'_>,
        sql: &'static str,
    ) -> Result<Statement, postgres::Error> {
        if let Some(known) = self.0.get(sql) {
            return Ok(known.clone());
        }
        let prepared = tx.prepare(sql)?;
        self.0.insert(sql, prepared.clone());
        Ok(prepared)
    }

    fn run(
        &mut self,
        tx: &mut Transaction<'_>,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, postgres::Error> {
        let prepared = self.get(tx, sql)?;
        tx.execute(&prepared, values)
    }
}

/// The local IDs of all authors; those that are new are stored.
fn store_accounts<'j>(
    tx: &mut Transaction<'_>,
    statements: &mut Statements,
    found: &[(&Row<'j>, i64)],
    last: &mut i64,
) -> Result<HashMap<String, i64>, postgres::Error> {
    let mut missing: HashMap<&str, &Row<'j>> = HashMap::new();
    for (row, _) in found {
        missing.insert(row.account.id, row);
    }
    let upstream_ids: Vec<&str> = missing.keys().copied().collect();
    let mut ids = HashMap::new();
    let known = statements.get(tx, KNOWN_ACCOUNTS)?;
    for row in tx.query(&known, &[&upstream_ids])? {
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
    let account_ids = column(&new, |row| row.account.id);
    let accts = column(&new, |row| row.account.acct);
    let names = column(&new, |row| row.account.display_name);
    let urls = column(&new, |row| row.account.url);
    let raws = column(&new, |row| row.post.account.get());
    let values: [&(dyn ToSql + Sync); 6] = [&numbers, &account_ids, &accts, &names, &urls, &raws];
    statements.run(tx, ACCOUNTS, &values)?;
    ids.extend(new.iter().map(|row| row.account.id.to_owned()).zip(numbers));
    Ok(ids)
}

/// A value of each row.
fn column<R, T>(rows: &[R], value: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}

/// The posts with their entries, their freshness and due times.
fn store_posts(
    tx: &mut Transaction<'_>,
    statements: &mut Statements,
    found: &[(&Row<'_>, i64)],
    accounts: &HashMap<String, i64>,
    now_ms: i64,
    usn: i64,
) -> Result<(), postgres::Error> {
    let ids = column(found, |(_, id)| *id);
    let upstream_ids = column(found, |(row, _)| row.post.id);
    let uris = column(found, |(row, _)| row.post.uri);
    let urls = column(found, |(row, _)| row.post.url);
    let authors = column(found, |(row, _)| accounts.get(row.account.id).copied());
    let created = column(found, |(row, _)| row.created_at_ms);
    let edited = column(found, |(row, _)| row.edited_at_ms);
    let visibilities = column(found, |(row, _)| row.post.visibility);
    let boosts_of = column(found, |(row, _)| row.boost_of);
    let hashes = column(found, |(row, _)| row.content_hash);
    let raws = column(found, |(row, _)| row.raw);
    let posts: [&(dyn ToSql + Sync); 12] = [
        &ids,
        &upstream_ids,
        &uris,
        &urls,
        &authors,
        &created,
        &edited,
        &visibilities,
        &boosts_of,
        &hashes,
        &now_ms,
        &raws,
    ];
    statements.run(tx, POSTS, &posts)?;
    let positions = column(found, |(row, _)| row.position.as_str());
    let usns: Vec<i64> = (usn + 1..).take(found.len()).collect();
    let are_public = column(found, |(row, _)| row.post.visibility == "public");
    let entries: [&(dyn ToSql + Sync); 7] = [
        &ids,
        &positions,
        &usns,
        &hashes,
        &are_public,
        &now_ms,
        &authors,
    ];
    statements.run(tx, ENTRIES, &entries)?;
    let due_at_ms = now_ms + bare::EVERY_MS;
    let [replies, boosts, favourites] =
        [0, 1, 2].map(|which| column(found, |(row, _)| row.counts[which]));
    let totals = column(found, |(row, _)| row.counts.iter().sum::<i64>());
    let fresh: [&(dyn ToSql + Sync); 9] = [
        &now_ms,
        &due_at_ms,
        &ids,
        &created,
        &hashes,
        &replies,
        &boosts,
        &favourites,
        &totals,
    ];
    statements.run(tx, FRESH, &fresh)?;
    statements.run(tx, SCHEDULE, &[&due_at_ms, &ids])?;
    Ok(())
}

const SEEN: &str = "insert into upstream_post (upstream_id, instance_id, post_id)
    select u, 1, p from unnest($1::text[], $2::bigint[]) as r(u, p)
    on conflict do nothing returning upstream_id";
const KNOWN_ACCOUNTS: &str = "select upstream_id, id from account
    where upstream_id = any($1::text[]) and instance_id = 1";
const ACCOUNTS: &str = "with shown as (select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[],
        $6::text[]) as r(i, u, a, d, l, r)),
    known as (insert into account (id, instance_id, upstream_id, acct, acct_id)
        select i, 1, u, a, i from shown)
    insert into account_profile (source_id, instance_id, account_id, acct_id, acct, acct_key, display_name,
        url, raw, seen_at_ms)
    select 1, 1, i, i, a, lower(a), d, l, r, 0 from shown";
const POSTS: &str = "insert into post (id, instance_id, upstream_id, uri, url, account_id,
        first_source_id, created_at_ms, edited_at_ms, read_at_ms, visibility,
        boost_of_upstream_id, content_hash, listed, in_public, raw)
    select i, 1, u, ri, rl, a, 1, c, e, $11, v, b, h, v = 'public', true, r
    from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[],
        $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::bigint[], $12::text[])
        as r(i, u, ri, rl, a, c, e, v, b, h, r)";
const ENTRIES: &str =
    "insert into entry (source_id, instance_id, id, post_id, position, first_usn, usn,
        arrived_at_ms, content_hash, gone, visibility, account_id)
    select 1, 1, i, i, p, u, u, $6, h, false, case when l then 0 else 1 end, a
    from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bool[], $7::bigint[])
        as r(i, p, u, h, l, a)";
const HOLD: &str =
    "update local_clock set last_id = greatest($1, last_id + 1) + $2 - 1 where one = 1
    returning last_id";
const SOURCE: &str = "update source set machine = $1 where id = 1";
const LIBRARY: &str = "update library set update_count = $1 where owner_id = 1";
const GAP: &str =
    "insert into gap (source_id, instance_id, low, high, kind, history, fill_requested,
        tries, read_age_ms, from_ms, until_ms)
    values (1, 1, $1, $2, 'provisional', false, false, 0, 0, 1, 2)
    on conflict (source_id, low, instance_id) do update set high = excluded.high";
const FRESH: &str =
    "insert into freshness (post_id, instance_id, bucket, post_created_at_ms, first_at_ms,
        refreshed_at_ms, due_at_ms, refreshes, failures, missing, state_hash, replies,
        boosts, favourites, before_total, notified_at_ms, notified_total)
    select i, 1, 8 + i % 8, b, $1, $1, $2, 0, 0, false, h, c, d, e, 0, $1, t
    from unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
        $8::bigint[], $9::bigint[]) as r(i, b, h, c, d, e, t)";
const SCHEDULE: &str = "insert into schedule (bucket, due_at_ms, post_id, instance_id)
    select 8 + i % 8, $1, i, 1 from unnest($2::bigint[]) as r(i)";
