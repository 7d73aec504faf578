use driftline_db::{DbError, testing::Fresh};
use driftline_store::Root;

use super::*;
use crate::refresh::testing::World;
use driftline_runtime::testing::Warnings;

#[tokio::test]
async fn a_fault_of_all_workers_is_logged_once() {
    let (warnings, _guard) = Warnings::listen();
    let world = World::new().await;
    world.name_posts(&["5"]).await;
    let instance = world.instance().await;
    let workers = [(); 3].map(|()| Worker::new(&world.shared, &instance));
    let outage = StoreError::Db(DbError::ConnectionLost("away".into()));
    let of_data = StoreError::Db(DbError::Constraint("broken".into()));
    for worker in workers.iter().chain(&workers) {
        worker.log(Some(&outage));
        worker.log(Some(&of_data));
    }
    assert_eq!(warnings.times("the store fails"), 1);
    assert_eq!(warnings.times("refreshing failed"), 1);
    for worker in &workers {
        worker.log(None);
    }
    assert_eq!(warnings.times("refreshed again"), 1);
}

#[tokio::test]
async fn a_claim_that_could_not_be_released_is_released_by_the_next_turn() {
    let fresh = Fresh::postgres();
    let world = World::on(fresh.target.clone()).await;
    name_obsolete(&world).await;
    let function = "create function broken() returns trigger language plpgsql
         as 'begin raise exception ''it is broken''; end'";
    execute(&world, function).await;
    for table in ["quota", "claim_lease"] {
        let trigger = format!(
            "create trigger broken before update or delete on {table}
             for each row execute function broken()"
        );
        execute(&world, trigger).await;
    }
    let mut worker = Worker::new(&world.shared, &world.instance().await);
    let (_stop, mut stopped) = watch::channel(false);
    assert!(worker.turn(&mut stopped).await.is_err());
    assert!(worker.turn(&mut stopped).await.is_err(), "it cannot yet");
    for table in ["quota", "claim_lease"] {
        execute(&world, format!("drop trigger broken on {table}")).await;
    }
    let turn = worker.turn(&mut stopped).await;
    assert!(matches!(turn, Ok(Turn::Saved)), "claimed again and saved");
}

/// Makes a post due that needs no look-up any more.
async fn name_obsolete(world: &World) {
    world.capped_credential("one", Some(1_000_000)).await;
    world.name_posts(&["5"]).await;
    execute(world, "delete from pending_lookup").await;
}

async fn execute(world: &World, sql: impl Into<String>) {
    let sql = sql.into();
    let done = world.shared.store.write(Root::none(), move |tx| {
        tx.execute(&sql, &[])?;
        Ok::<_, StoreError>(())
    });
    done.await.unwrap();
}

#[tokio::test]
async fn a_claim_without_posts_that_fails_is_released() {
    let world = World::new().await;
    name_obsolete(&world).await;
    // Its charge cannot be given back.
    let trigger = "create trigger broken before update on quota \
         begin select raise(abort, 'it is broken'); end";
    execute(&world, trigger).await;
    let instance = world.instance().await;
    let mut worker = Worker::new(&world.shared, &instance);
    let (_stop, mut stopped) = watch::channel(false);
    assert!(worker.turn(&mut stopped).await.is_err());
    execute(&world, "drop trigger broken").await;
    let claim = world.claim().await;
    assert!(claim.posts.is_empty(), "{claim:?}");
}
