//! Delayed jobs in apalis-sqlite: put, then fetched, completed and put again in batches.
//!
//! `driftline-bench-apalis FILE DELAYED DUE [full]` makes a new database of `DELAYED` jobs that are
//! due in hours and `DUE` jobs that are due, and hashes one line: jobs put per second, jobs of
//! whole cycles per second, and the median time in ms of a fetch when nothing is due.
//!
//! It runs the library's own statements in batches, as few transactions as they allow, rather than
//! its workers, which would be slower.

use std::{
    env,
    error::Error,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use apalis_core::{
    backend::TaskResult,
    task::{Task, builder::TaskBuilder, status::Status},
    worker::context::WorkerContext,
};
use apalis_sqlite::{Config, SqliteStorage, queries};
use sqlx::{
    Connection, SqlitePool,
    sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [file, delayed, due, rest @ ..] = arguments.as_slice() else {
        return Err("FILE DELAYED DUE [full]".into());
    };
    let is_full = rest.iter().any(|word| word == "full");
    let (delayed, due): (u64, u64) = (delayed.parse()?, due.parse()?);
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    let pool: SqlitePool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await?;
    SqliteStorage::setup(&pool).await?;
    let mut connection = pool.acquire().await?;
    let connection: &mut SqliteConnection = &mut connection;
    if is_full {
        // Its own set-up turns syncing off.
        sqlx::query("pragma synchronous = full")
            .execute(&mut *connection)
            .await?;
    }
    let config = Config::default().queue(QUEUE).batch_size(BATCH);
    let worker = WorkerContext::new("bench");
    queries::register_worker(&mut *connection, &config, &worker, "SqliteStorage").await?;

    let start = Instant::now();
    put(connection, delayed, LATER).await?;
    let put_per_s = delayed as f64 / start.elapsed().as_secs_f64();
    put(connection, due, Duration::ZERO).await?;

    let start = Instant::now();
    let mut done = 0;
    loop {
        let tasks = fetch(connection, &config, &worker).await?;
        if tasks.is_empty() {
            break;
        }
        done += tasks.len() as u64;
        complete(connection, &tasks, &worker).await?;
    }
    // The last fetch found nothing and is one of those below.
    let cycles_per_s = done as f64 / start.elapsed().as_secs_f64();
    if done != due {
        return Err(format!("{done} jobs came of {due}").into());
    }
    let mut idle_ms = Vec::new();
    for _ in 0..IDLE_FETCHES {
        let start = Instant::now();
        fetch(connection, &config, &worker).await?;
        idle_ms.push(start.elapsed().as_secs_f64() * 1_000.0);
    }
    idle_ms.sort_by(f64::total_cmp);
    println!("{put_per_s} {cycles_per_s} {}", idle_ms[IDLE_FETCHES / 2]);
    Ok(())
}

/// Puts jobs in batches, a transaction each.
async fn put(
    connection: &mut SqliteConnection,
    jobs: u64,
    delay: Duration,
) -> Result<(), Box<dyn Error>> {
    let run_at = unix_s()? + delay.as_secs();
    let numbers: Vec<u64> = (0..jobs).collect();
    for batch in numbers.chunks(BATCH) {
        let tasks: Vec<Task<Vec<u8>>> = batch.iter().map(|id| task(*id, run_at)).collect();
        let mut tx = connection.begin().await?;
        queries::push_tasks(&mut *tx, QUEUE, &tasks).await?;
        tx.commit().await?;
    }
    Ok(())
}

async fn fetch(
    connection: &mut SqliteConnection,
    config: &Config,
    worker: &WorkerContext,
) -> Result<Vec<Task<Vec<u8>>>, Box<dyn Error>> {
    let mut tx = connection.begin().await?;
    let tasks = queries::fetch_next(&mut *tx, config, worker).await?;
    tx.commit().await?;
    Ok(tasks)
}

/// Completes jobs and puts each again for later, in one transaction: it has no statement that
/// moves a completed job.
async fn complete(
    connection: &mut SqliteConnection,
    tasks: &[Task<Vec<u8>>],
    worker: &WorkerContext,
) -> Result<(), Box<dyn Error>> {
    let run_at = unix_s()? + LATER.as_secs();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let id = task.task_id().cloned().ok_or("a job without an ID")?;
        results.push(TaskResult {
            task_id: id,
            attempt: 1,
            status: Status::Done,
            result: Ok(serde_json::Value::Null),
        });
    }
    let results: Vec<_> = results.iter().collect();
    let again: Vec<Task<Vec<u8>>> = tasks
        .iter()
        .map(|done| {
            TaskBuilder::new(done.args.clone())
                .run_at_timestamp(run_at)
                .build()
        })
        .collect();
    let mut tx = connection.begin().await?;
    queries::ack_tasks(&mut *tx, &results, worker.name()).await?;
    queries::push_tasks(&mut *tx, QUEUE, &again).await?;
    tx.commit().await?;
    Ok(())
}

fn task(id: u64, run_at: u64) -> Task<Vec<u8>> {
    let args = id.to_string().into_bytes();
    TaskBuilder::new(args).run_at_timestamp(run_at).build()
}

fn unix_s() -> Result<u64, Box<dyn Error>> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

const QUEUE: &str = "posts";
const BATCH: usize = 100;
const LATER: Duration = Duration::from_secs(7_200);
const IDLE_FETCHES: usize = 5;
