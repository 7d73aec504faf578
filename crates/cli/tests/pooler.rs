//! A start behind a connection pooler in transaction mode.
#![allow(clippy::unwrap_used)]

mod support;

use driftline_db::testing::{Pooler, postgres_database};
use driftline_store::{Root, SecretUrl, Store, StoreError, Target};
use support::{DataDir, soon};

/// The server is reached, and the pool has no connection left.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_says_that_it_waits_for_a_full_pool() {
    let database = postgres_database();
    let pooler = Pooler::start(&database, 1).unwrap();
    // A busy machine takes longer to start a server than a transaction may be idle otherwise.
    let long = "idle_in_transaction_session_timeout=10min";
    let holder = open(&format!("{}?{long}", pooler.url())).await;
    let (held, is_held) = std::sync::mpsc::channel();
    let (free, is_free) = std::sync::mpsc::channel::<()>();
    let holding = holder.clone();
    let holds = std::thread::spawn(move || {
        holding.write_blocking(Root::none(), move |tx| {
            driftline_store::touch(tx)?;
            held.send(()).unwrap();
            let _ = is_free.recv();
            Ok::<_, StoreError>(())
        })
    });
    is_held.recv().unwrap();
    let data_dir = data_dir(pooler.url());
    let server = data_dir.start(&["--json", "serve", "--listen", "127.0.0.1:0"]);
    let waits = "waiting for the answer to a statement: PostgreSQL at 127.0.0.1";
    let is_logged = soon(|| data_dir.log().contains(waits));
    assert!(is_logged, "{}", data_dir.log());
    assert!(!data_dir.log().contains("serving"), "{}", data_dir.log());
    free.send(()).unwrap();
    holds.join().unwrap().unwrap();
    let mut server = server;
    assert!(server.line().contains("listening"));
    let log = data_dir.log();
    assert!(log.contains("statements are not prepared"), "{log}");
    server.stop();
    holder.close().await;
}

async fn open(url: &str) -> Store {
    let target = Target::Postgres {
        url: SecretUrl::new(url),
        schema: None,
    };
    let opened = tokio::task::spawn_blocking(|| Store::open(target));
    opened.await.unwrap().unwrap()
}

fn data_dir(url: &str) -> DataDir {
    DataDir::new()
        .with("DRIFTLINE_STORE__DATABASE_URL", url)
        .with("RUST_LOG", "info")
}
