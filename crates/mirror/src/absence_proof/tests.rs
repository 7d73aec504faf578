use driftline_core::{answer::FailureKind, post::PostKind};
use driftline_store::{GoneProof, look_up_ability};

use super::testing::{World, post};

/// Posts 10 to 13 by Ann, 20 and 21 by Ben; 30 and 31 are boosts.
fn listed() -> Vec<driftline_core::post::Post> {
    vec![
        post(31, 2, Some(10)),
        post(30, 1, Some(20)),
        post(21, 2, None),
        post(20, 2, None),
        post(13, 1, None),
        post(12, 1, None),
        post(11, 1, None),
        post(10, 1, None),
    ]
}

async fn known(world: &World) -> Vec<(PostKind, bool)> {
    let key = world.credential.key();
    let known = world
        .store
        .read(move |tx| look_up_ability::of_credential(tx, key))
        .await;
    let known = known.unwrap().into_iter();
    known.map(|of| (of.kind, of.finds)).collect()
}

#[tokio::test]
async fn a_post_is_deleted_if_another_by_its_author_is_found() {
    let world = World::new(listed(), true).await;
    world.finds([20, 21, 12, 11, 10]);
    assert_eq!(world.proof(13).await, Ok(GoneProof::Deleted));
    assert_eq!(world.asked(), [12]);
    assert_eq!(known(&world).await, [(PostKind::Post, true)]);
    // The first control may be deleted too.
    world.finds([20, 21, 11, 10]);
    assert_eq!(world.proof(13).await, Ok(GoneProof::Deleted));
    assert_eq!(world.asked(), [12, 11]);
}

#[tokio::test]
async fn an_author_who_blocks_the_reader_has_deleted_nothing() {
    let world = World::new(listed(), true).await;
    world.finds([20, 21]);
    assert_eq!(world.proof(13).await, Ok(GoneProof::Hidden));
    assert_eq!(world.asked(), [12, 11, 21]);
    assert_eq!(world.proof(13).await, Ok(GoneProof::Hidden));
    assert_eq!(world.asked(), [12, 11], "that posts are found is known");
}

#[tokio::test]
async fn without_a_token_no_author_can_hide() {
    let world = World::new(listed(), false).await;
    world.finds([21]);
    assert_eq!(world.proof(13).await, Ok(GoneProof::Deleted));
    assert_eq!(world.asked(), [21]);
    assert_eq!(world.proof(12).await, Ok(GoneProof::Deleted));
    assert_eq!(world.asked(), [0; 0]);
}

#[tokio::test]
async fn where_no_post_is_found_nothing_is_proven() {
    let world = World::new(listed(), false).await;
    assert_eq!(world.proof(13).await, Ok(GoneProof::Nothing));
    // By different authors; there are but two.
    assert_eq!(world.asked(), [21]);
    assert_eq!(known(&world).await, [], "one control may be deleted");
    let world = World::new(vec![post(1, 1, None)], true).await;
    assert_eq!(world.proof(1).await, Ok(GoneProof::Nothing));
    assert_eq!(world.asked(), [0; 0], "nothing to compare it with");
    assert_eq!(world.proof(99).await, Ok(GoneProof::Nothing), "not stored");
}

#[tokio::test]
async fn boosts_that_no_look_up_finds_are_not_deleted() {
    let boosts = (1..5).map(|n| post(30 + n, n, Some(10)));
    let posts = boosts.rev().chain([post(10, 9, None)]).collect();
    let world = World::new(posts, true).await;
    world.finds([10]);
    assert_eq!(world.proof(34).await, Ok(GoneProof::Nothing));
    assert_eq!(world.asked(), [33, 32]);
    assert_eq!(known(&world).await, [(PostKind::Boost, false)]);
    assert_eq!(world.proof(31).await, Ok(GoneProof::Nothing));
    assert_eq!(world.asked(), [0; 0], "it is known");
}

/// Mitra, where one account boosts.
#[tokio::test]
async fn boosts_by_one_account_show_that_no_look_up_finds_any() {
    let boosts = (31..35).rev().map(|id| post(id, 1, Some(10)));
    let world = World::new(boosts.chain([post(10, 9, None)]).collect(), true).await;
    world.finds([10]);
    assert_eq!(world.proof(34).await, Ok(GoneProof::Nothing));
    assert_eq!(world.asked(), [33, 32]);
    assert_eq!(known(&world).await, [(PostKind::Boost, false)]);
    assert_eq!(world.proof(31).await, Ok(GoneProof::Nothing));
    assert_eq!(world.asked(), [0; 0], "it is known");
}

#[tokio::test]
async fn an_unboost_is_no_deletion() {
    let world = World::new(listed(), true).await;
    world.finds([30, 20]);
    assert_eq!(world.proof(31).await, Ok(GoneProof::Hidden));
    assert_eq!(world.asked(), [30]);
}

#[tokio::test]
async fn a_control_without_a_usable_answer_leaves_all_open() {
    let world = World::new(listed(), true).await;
    world.posts.lock().fails = true;
    let failure = world.proof(13).await.expect_err("a failure");
    assert_eq!(failure.kind, FailureKind::ServerError);
    assert_eq!(known(&world).await, []);
}
