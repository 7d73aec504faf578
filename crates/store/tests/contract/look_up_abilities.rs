//! Which look-ups find live posts.

use driftline_core::{api::Api, post::PostKind};
use driftline_store::{
    CredentialKey, StoreError,
    credential::{self, NewCredential},
    local_ids,
    look_up_ability::{self, LookUpAbility},
};

use crate::world::{Store, read, write};

on_both!(what_was_seen_last_of_a_kind_and_a_credential_is_kept);

fn ability(credential: CredentialKey, kind: PostKind, finds: bool, at_ms: i64) -> LookUpAbility {
    LookUpAbility {
        credential,
        kind,
        finds,
        at_ms,
    }
}

fn what_was_seen_last_of_a_kind_and_a_credential_is_kept(store: &Store) {
    let add = |name: &str| {
        let new = NewCredential {
            name: name.into(),
            origin: "https://sim.example".into(),
            api: Api::Mastodon,
            token: None,
            monthly_posts: None,
        };
        let job = move |tx: &mut driftline_store::Tx<'_>| credential::add(tx, &new, 1);
        write(store, local_ids::root(), job).expect("a credential")
    };
    let (one, two) = (add("one"), add("two"));
    let learn = |ability: LookUpAbility| {
        let root = credential::root(ability.credential);
        write(store, root, move |tx| look_up_ability::learn(tx, &ability));
    };
    let known = |id| {
        let job = move |tx: &mut driftline_store::Tx<'_>| look_up_ability::of_credential(tx, id);
        read(store, job)
    };
    assert_eq!(known(one), []);
    let (post, boost) = (PostKind::Post, PostKind::Boost);
    learn(ability(one, post, true, 10));
    learn(ability(one, boost, true, 10));
    learn(ability(one, boost, false, 20));
    // An answer that came before says nothing any more.
    learn(ability(one, boost, true, 15));
    // Nor did one that a clock dated ahead come after it.
    learn(ability(two, post, true, 172_800_000));
    learn(ability(two, post, false, 30));
    let of_one = [ability(one, boost, false, 20), ability(one, post, true, 10)];
    assert_eq!(known(one), of_one);
    let all = read(store, move |tx| {
        let found = credential::by_key(tx, one)?;
        let found = found.ok_or(StoreError::NoSource)?;
        look_up_ability::of_instance(tx, found.instance)
    });
    assert_eq!(all.len(), 3);
    let removed = store.write_blocking(local_ids::root(), move |tx| credential::remove(tx, one));
    assert!(removed.expect("a write"));
    assert_eq!(known(one), []);
    assert_eq!(known(two).len(), 1);
}
