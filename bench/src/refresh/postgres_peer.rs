//! Bare `tokio-postgres` workers: lease rows, SKIP LOCKED, one `unnest` a table; what needs no
//! answer travels together.

use std::time::{Duration, Instant};

use driftline_core::post::Post;
use tokio_postgres::{Client, NoTls, Statement};

use super::{
    bare::{self, Change, Due, Fresh, INSTANCE, Known, Slot},
    made::NOW_MS,
    ours::BATCH,
};
use crate::failure::Failure;

/// Works all due posts off with several workers; how many, and the time.
pub(super) fn work_off_with(url: &str, workers: u64) -> Result<(u64, Duration), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut peers = Vec::new();
        for number in 0..workers {
            peers.push(Peer::connect(url, i64::try_from(number)? * 2).await?);
        }
        let start = Instant::now();
        let tasks: Vec<_> = peers
            .into_iter()
            .map(|peer| tokio::spawn(peer.work_off()))
            .collect();
        let mut posts = 0;
        for task in tasks {
            posts += task.await??;
        }
        Ok((posts, start.elapsed()))
    })
}

/// A connection that claims and saves.
pub(super) struct Peer {
    client: Client,
    statements: Statements,
    shard: i64,
}

/// Posts of one lease.
pub(super) struct Lease {
    id: i64,
    pub(super) due: Vec<Due>,
}

impl Peer {
    pub(super) async fn connect(url: &str, shard: i64) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(async move {
            // Waiting requests get the error as well.
            let _ = connection.await;
        });
        Ok(Self {
            statements: Statements::prepare(&client).await?,
            client,
            shard,
        })
    }

    async fn work_off(mut self) -> Result<u64, Failure> {
        let mut posts = 0;
        while let Some(lease) = self.claim(NOW_MS).await? {
            let answers = bare::answers(&lease.due)?;
            self.save(&lease, &answers).await?;
            posts += lease.due.len() as u64;
        }
        Ok(posts)
    }

    /// Takes a batch of due posts off the schedule and into a lease.
    pub(super) async fn claim(&mut self, now_ms: i64) -> Result<Option<Lease>, Failure> {
        let Self {
            client, statements, ..
        } = self;
        let mut slots: Vec<Slot> = Vec::new();
        let base = INSTANCE * 8;
        for (number, bucket) in bare::buckets(self.shard).enumerate() {
            let missing = (BATCH - slots.len()) as i64;
            let rows = if number == 0 {
                let (_, ended, rows) = tokio::try_join!(
                biased;
                        client.batch_execute("begin"),
                        async { client.query(&statements.ended, &[&base]).await },
                        async { client.query(&statements.first, &[&bucket, &now_ms, &missing]).await },
                    )?;
                if !ended.is_empty() {
                    return Err(Failure::new("a lease of the peer ended"));
                }
                rows
            } else {
                let first = &statements.first;
                client.query(first, &[&bucket, &now_ms, &missing]).await?
            };
            slots.extend(rows.iter().map(|row| Slot {
                bucket,
                due_at_ms: row.get(0),
                post_id: row.get(1),
            }));
            if slots.len() >= BATCH {
                break;
            }
        }
        self.shard += 1;
        if slots.is_empty() {
            client.batch_execute("commit").await?;
            return Ok(None);
        }
        let (buckets, times, ids) = columns(&slots);
        let (_, lease, _, posts, ()) = tokio::try_join!(
            biased;
            async { client.execute(&statements.take_off, &[&buckets, &times, &ids]).await },
            async { client.query_one(&statements.lease, &[&base, &"bench", &60_000_i64, &buckets, &times, &ids]).await },
            async { client.query(&statements.fresh, &[&ids]).await },
            async { client.query(&statements.by_id, &[&ids]).await },
            client.batch_execute("commit"),
        )?;
        let mut due: Vec<Due> = posts
            .iter()
            .filter_map(|row| {
                let id: i64 = row.get(0);
                let slot = slots.iter().find(|slot| slot.post_id == id)?;
                Some(Due {
                    slot: *slot,
                    upstream_id: row.get(1),
                })
            })
            .collect();
        due.sort_by_key(|due| due.slot.post_id);
        let id = lease.get(0);
        Ok(Some(Lease { id, due }))
    }

    /// Saves a batch, in one transaction.
    pub(super) async fn save(&mut self, lease: &Lease, answers: &[Post]) -> Result<(), Failure> {
        let Self {
            client, statements, ..
        } = self;
        let ids: Vec<i64> = lease.due.iter().map(|due| due.slot.post_id).collect();
        let base = INSTANCE * 8;
        let (_, ended, mut fresh, mut known) = tokio::try_join!(
            biased;
            client.batch_execute("begin"),
            async { client.execute(&statements.end, &[&base, &lease.id]).await },
            async { client.query(&statements.fresh, &[&ids]).await },
            async { client.query(&statements.known, &[&ids]).await },
        )?;
        let all = lease.due.len();
        if ended != 1 || fresh.len() != all || known.len() != all {
            return Err(Failure::new("the peer lost a lease or a row"));
        }
        for rows in [&mut fresh, &mut known] {
            rows.sort_by_key(|row| row.get::<_, i64>(0));
        }
        let changes: Vec<Change<'_>> = lease
            .due
            .iter()
            .zip(answers)
            .zip(fresh.iter().zip(&known))
            .map(|((due, post), (fresh, known))| {
                Change::of(due, fresh_of(fresh), known_of(known), post)
            })
            .collect();
        let changed: Vec<&Change<'_>> = changes.iter().filter(|c| c.is_changed).collect();
        let notified = changes.iter().filter(|change| change.is_notified);
        let notified: Vec<i64> = notified.map(|change| change.slot.post_id).collect();
        let slots: Vec<Slot> = changes.iter().map(|change| change.slot).collect();
        let (buckets, times, post_ids) = columns(&slots);
        tokio::try_join!(
            biased;
            replace(client, statements, &changed),
            count(client, statements, &changed),
            update(client, statements, &changes),
            async { client.execute(&statements.put_on, &[&buckets, &times, &post_ids]).await },
            async { client.execute(&statements.outbox, &[&INSTANCE, &NOW_MS, &notified]).await },
            client.batch_execute("commit"),
        )?;
        Ok(())
    }

    /// Puts a batch off for a minute, without any answer.
    pub(super) async fn put_off(&mut self, lease: &Lease, now_ms: i64) -> Result<(), Failure> {
        let Self {
            client, statements, ..
        } = self;
        let put_off = |due: &Due| Slot {
            due_at_ms: now_ms + 60_000,
            ..due.slot
        };
        let slots: Vec<Slot> = lease.due.iter().map(put_off).collect();
        let (buckets, times, ids) = columns(&slots);
        tokio::try_join!(
            biased;
            client.batch_execute("begin"),
            async { client.execute(&statements.end, &[&(INSTANCE * 8), &lease.id]).await },
            async { client.execute(&statements.failed, &[&ids, &times]).await },
            async { client.execute(&statements.put_on, &[&buckets, &times, &ids]).await },
            client.batch_execute("commit"),
        )?;
        Ok(())
    }
}

async fn replace(
    client: &Client,
    statements: &Statements,
    changed: &[&Change<'_>],
) -> Result<u64, tokio_postgres::Error> {
    let posts = || changed.iter().map(|change| change.post);
    client
        .execute(
            &statements.replace,
            &[
                &NOW_MS,
                &changed.iter().map(|c| c.slot.post_id).collect::<Vec<_>>(),
                &posts().map(|p| p.uri.as_deref()).collect::<Vec<_>>(),
                &posts().map(|p| p.url.as_deref()).collect::<Vec<_>>(),
                &posts().map(|p| p.edited_at_ms).collect::<Vec<_>>(),
                &posts().map(|p| p.visibility.name()).collect::<Vec<_>>(),
                &changed
                    .iter()
                    .map(|c| c.known.content_hash)
                    .collect::<Vec<_>>(),
                &changed.iter().map(|c| c.known.listed).collect::<Vec<_>>(),
                &posts().map(|p| p.raw.as_str()).collect::<Vec<_>>(),
            ],
        )
        .await
}

async fn count(
    client: &Client,
    statements: &Statements,
    changed: &[&Change<'_>],
) -> Result<u64, tokio_postgres::Error> {
    let before = changed
        .iter()
        .map(|c| (c.slot.post_id, c.before.refreshed_at_ms, c.before.counts));
    let after = changed.iter().map(|c| (c.slot.post_id, NOW_MS, c.counts));
    let rows: Vec<_> = before.chain(after).collect();
    let [replies, boosts, favourites, quotes, views] =
        [0, 1, 2, 3, 4].map(|at: usize| rows.iter().map(|row| row.2[at]).collect::<Vec<_>>());
    client
        .execute(
            &statements.count,
            &[
                &rows.iter().map(|row| row.0).collect::<Vec<_>>(),
                &rows.iter().map(|row| row.1).collect::<Vec<_>>(),
                &replies,
                &boosts,
                &favourites,
                &quotes,
                &views,
            ],
        )
        .await
}

async fn update(
    client: &Client,
    statements: &Statements,
    changes: &[Change<'_>],
) -> Result<u64, tokio_postgres::Error> {
    let [replies, boosts, favourites, quotes, views] =
        [0, 1, 2, 3, 4].map(|at: usize| changes.iter().map(|c| c.counts[at]).collect::<Vec<_>>());
    client
        .execute(
            &statements.update,
            &[
                &NOW_MS,
                &changes.iter().map(|c| c.slot.post_id).collect::<Vec<_>>(),
                &changes.iter().map(|c| c.slot.due_at_ms).collect::<Vec<_>>(),
                &changes
                    .iter()
                    .map(|c| c.before.refreshes + 1)
                    .collect::<Vec<_>>(),
                &changes.iter().map(Change::outcome).collect::<Vec<_>>(),
                &changes.iter().map(|c| c.state_hash).collect::<Vec<_>>(),
                &replies,
                &boosts,
                &favourites,
                &quotes,
                &views,
                &changes
                    .iter()
                    .map(|c| c.before.refreshed_at_ms)
                    .collect::<Vec<_>>(),
                &changes.iter().map(Change::before_total).collect::<Vec<_>>(),
                &changes.iter().map(|c| c.notified().0).collect::<Vec<_>>(),
                &changes.iter().map(|c| c.notified().1).collect::<Vec<_>>(),
            ],
        )
        .await
}

fn fresh_of(row: &tokio_postgres::Row) -> Fresh {
    Fresh {
        refreshed_at_ms: row.get(4),
        refreshes: row.get(6),
        state_hash: row.get(10),
        counts: [11, 12, 13, 14, 15].map(|at: usize| row.get(at)),
        notified_at_ms: row.get(18),
        notified_total: row.get(19),
    }
}

fn known_of(row: &tokio_postgres::Row) -> Known {
    Known {
        content_hash: row.get(4),
        listed: row.get(7),
    }
}

fn columns(slots: &[Slot]) -> (Vec<i64>, Vec<i64>, Vec<i64>) {
    (
        slots.iter().map(|slot| slot.bucket).collect(),
        slots.iter().map(|slot| slot.due_at_ms).collect(),
        slots.iter().map(|slot| slot.post_id).collect(),
    )
}

struct Statements {
    ended: Statement,
    first: Statement,
    take_off: Statement,
    lease: Statement,
    fresh: Statement,
    by_id: Statement,
    end: Statement,
    known: Statement,
    replace: Statement,
    count: Statement,
    update: Statement,
    put_on: Statement,
    outbox: Statement,
    failed: Statement,
}

impl Statements {
    async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let now = "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";
        let prepare = async |sql: &str| client.prepare(&sql.replace("{now}", now)).await;
        Ok(Self {
            ended: prepare(
                "delete from claim_lease where bucket = $1 and id in
                     (select id from claim_lease where bucket = $1 and until_ms <= {now}
                      for update skip locked)
                 returning id",
            )
            .await?,
            first: prepare(
                "select due_at_ms, post_id from schedule where bucket = $1 and due_at_ms <= $2
                 order by due_at_ms, post_id limit $3 for update skip locked",
            )
            .await?,
            take_off: prepare(
                "delete from schedule where (bucket, due_at_ms, post_id) in
                     (select * from unnest($1::bigint[], $2::bigint[], $3::bigint[]))",
            )
            .await?,
            lease: prepare(
                "insert into claim_lease
                     (bucket, id, holder, until_ms, buckets, due_times_ms, post_ids, instance_id)
                 values ($1, {now} * 1048576 + cast(random() * 1048575 as bigint), $2, {now} + $3,
                     $4::bigint[], $5::bigint[], $6::bigint[], 1)
                 returning id, until_ms",
            )
            .await?,
            fresh: prepare(
                "select post_id, bucket, post_created_at_ms, first_at_ms, refreshed_at_ms, due_at_ms,
                     refreshes, failures, missing, outcome, state_hash, replies, boosts,
                     favourites, quotes, views, before_at_ms, before_total, notified_at_ms, notified_total
                 from freshness where post_id = any($1)",
            )
            .await?,
            by_id: prepare(
                "select id, upstream_id, visibility from post
                 where id = any($1) and deleted_at_ms is null",
            )
            .await?,
            end: prepare(
                "delete from claim_lease where bucket = $1 and id = $2 and until_ms > {now}",
            )
            .await?,
            known: prepare(
                "select id, first_source_id, edited_at_ms, read_at_ms, content_hash, deleted_at_ms,
                     visibility, listed
                 from post where id = any($1)",
            )
            .await?,
            replace: prepare(
                "update post set uri = r.uri, url = r.url, edited_at_ms = r.edited,
                     read_at_ms = $1, visibility = r.visibility, content_hash = r.hash,
                     deleted_at_ms = null, listed = r.listed, raw = r.raw
                 from unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::text[],
                     $7::bigint[], $8::bool[], $9::text[])
                     as r(id, uri, url, edited, visibility, hash, listed, raw)
                 where post.id = r.id",
            )
            .await?,
            count: prepare(
                "insert into count_history (post_id, at_ms, replies, boosts, favourites, quotes,
                     views, instance_id)
                 select *, 1 from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[],
                     $5::bigint[], $6::bigint[], $7::bigint[])
                 on conflict (post_id, at_ms, instance_id) do nothing",
            )
            .await?,
            update: prepare(
                "update freshness set refreshed_at_ms = $1, due_at_ms = r.due, refreshes = r.n,
                     failures = 0, missing = false, outcome = r.outcome, state_hash = r.hash,
                     replies = r.c1, boosts = r.c2, favourites = r.c3, quotes = r.c4, views = r.c5,
                     before_at_ms = r.before_at, before_total = r.before, notified_at_ms = r.notified_at,
                     notified_total = r.notified
                 from unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                     $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[],
                     $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[])
                     as r(id, due, n, outcome, hash, c1, c2, c3, c4, c5, before_at, before, notified_at,
                         notified)
                 where freshness.post_id = r.id",
            )
            .await?,
            put_on: prepare(
                "insert into schedule (bucket, due_at_ms, post_id, instance_id)
                 select *, 1 from unnest($1::bigint[], $2::bigint[], $3::bigint[])",
            )
            .await?,
            outbox: prepare(
                "insert into outbox (instance_id, post_id, since_ms, counts)
                 select $1, r.id, $2, true from unnest($3::bigint[]) as r(id)
                 on conflict (instance_id, post_id) do update
                 set since_ms = excluded.since_ms, counts = (outbox.counts or excluded.counts)",
            )
            .await?,
            failed: prepare(
                "update freshness set due_at_ms = r.due, failures = failures + 1
                 from unnest($1::bigint[], $2::bigint[]) as r(id, due)
                 where freshness.post_id = r.id",
            )
            .await?,
        })
    }
}
