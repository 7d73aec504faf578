use driftline_core::social::{Nickname, Profile, RelationMove};
use driftline_db::Dialect;
use driftline_store::{
    AccountId, LocalAccountId, Root, Store, StoreError, Tx, account_id,
    social::{
        account_note,
        account_removal::{self, AccountContents, CHUNK, Removed},
        local_account, mute, profile, relation,
    },
};

use super::{account, at_once, create, name, new_account, on_both_with_two, read, write};
use crate::world::START_MS;

on_both!(
    an_account_goes_in_chunks_with_all_that_is_its_own,
    an_account_that_is_being_deleted_does_nothing_more,
);

fn remove_some(store: &Store, id: LocalAccountId) -> Removed {
    write(store, local_account::root(id), move |tx| {
        account_removal::remove_some(tx, id)
    })
}

/// Takes an account out of the libraries of others.
fn leave_libraries(store: &Store, id: LocalAccountId) {
    let owners = read(store, move |tx| {
        account_removal::owners_naming(tx, id, CHUNK)
    });
    for owner in owners {
        let left = store.write_blocking(local_account::root(owner), move |tx| {
            account_removal::forget(tx, owner, id)
        });
        // It may have been removed meanwhile.
        assert!(
            matches!(left, Ok(()) | Err(StoreError::NoAccount)),
            "{left:?}"
        );
    }
}

fn rows(store: &Store, table: &'static str) -> i64 {
    read(store, move |tx| {
        let count = format!("select count(*) as rows from {table}");
        Ok(tx.query_one(&count, &[], |row| row.i64("rows"))?)
    })
}

fn an_account_goes_in_chunks_with_all_that_is_its_own(store: &Store) {
    let [ann, bob] = ["ann", "bob"].map(|text| account(store, text));
    let follow = RelationMove::Follow { auto_accept: true };
    for (one, other) in [(ann, bob), (bob, ann)] {
        write(store, relation::root(one, account_id(other)), move |tx| {
            relation::change(tx, one, account_id(other), follow, START_MS)
        })
        .expect("a follow");
    }
    let raw = i64::try_from(ann).expect("an ID");
    let many = i64::from(CHUNK) + 5;
    write(store, Root::none(), move |tx| {
        for number in 0..many {
            tx.execute_later(
                "insert into relation values ($1, $2, 'following', $3, 'none', 0, true, null, null)",
                &[&raw, &(5_000_000_000_000_000_000 + number), &number],
            )?;
        }
        Ok(())
    });
    write(store, local_account::root(ann), move |tx| {
        mute::set(
            tx,
            ann,
            AccountId::new(6_000_000_000_000_000_000),
            true,
            None,
            START_MS,
        )
    });
    write(store, local_account::root(bob), move |tx| {
        mute::set(tx, bob, account_id(ann), true, None, START_MS)
    });
    let planned = read(store, move |tx| account_removal::plan(tx, ann));
    let expected = AccountContents {
        relations: many + 1,
        mutes: 1,
        objects: 0,
    };
    assert_eq!(planned, expected);

    write(store, local_account::root(ann), move |tx| {
        account_removal::begin(tx, ann)
    });
    let (by_name, by_id, passphrase, count) = read(store, move |tx| {
        Ok((
            local_account::by_name(tx, &name("ann"))?,
            local_account::by_id(tx, ann)?,
            local_account::passphrase(tx, ann)?,
            local_account::count(tx, None)?,
        ))
    });
    assert_eq!((by_name, by_id, passphrase, count), (None, None, None, 1));
    let follow_again = store.write_blocking(relation::root(bob, account_id(ann)), move |tx| {
        relation::change(tx, bob, account_id(ann), RelationMove::Unfollow, START_MS)
    });
    assert_eq!(follow_again, Err(StoreError::NoAccount));
    assert!(create(store, &new_account("ANN")).is_err(), "still taken");
    let found = read(store, |tx| account_removal::find(tx, &name("Ann")));
    assert_eq!(found, Some(ann), "to go on with");

    leave_libraries(store, ann);
    let first = remove_some(store, ann);
    assert_eq!(
        (first.contents.relations, first.is_done),
        (i64::from(CHUNK), false)
    );
    let second = remove_some(store, ann);
    assert_eq!((second.contents.relations, second.is_done), (6, false));
    assert_eq!(rows(store, "relation"), 0, "those of others with it, too");
    assert!(remove_some(store, ann).is_done);
    for (table, left) in [
        ("local_account", 1),
        ("profile", 1),
        ("library", 1),
        ("mute", 0),
    ] {
        assert_eq!(rows(store, table), left, "{table}");
    }
    assert!(create(store, &new_account("ANN")).is_ok());
}

fn an_account_that_is_being_deleted_does_nothing_more(store: &Store) {
    let ann = account(store, "ann");
    let copy = AccountId::new(5_000_000_000_000_000_000);
    write(store, local_account::root(ann), move |tx| {
        account_removal::begin(tx, ann)
    });
    let root = || local_account::root(ann);
    let followed = store.write_blocking(root(), move |tx| {
        let options = relation::FollowOptions::default();
        relation::follow(tx, ann, copy, options, START_MS).map(|_| ())
    });
    let muted = store.write_blocking(root(), move |tx| {
        mute::set(tx, ann, copy, true, None, START_MS).map(|_| ())
    });
    let told = store.write_blocking(root(), move |tx| {
        profile::set(tx, ann, &Nickname::default(), &Profile::default(), START_MS).map(|_| ())
    });
    for done in [followed, muted, told] {
        assert_eq!(done, Err(StoreError::NoAccount));
    }
    assert!(remove_some(store, ann).is_done);
}

#[test]
fn two_that_have_to_do_with_each_other_go_at_once() {
    on_both_with_two(|one, other| {
        for round in 0..20 {
            let [ann, bob] = ["ann", "bob"].map(|text| account(one, &format!("{text}{round}")));
            for (from, to) in [(ann, bob), (bob, ann)] {
                let to = account_id(to);
                write(one, relation::root(from, to), move |tx| {
                    mute::set(tx, from, to, true, None, START_MS)?;
                    let follow = RelationMove::Follow { auto_accept: true };
                    relation::change(tx, from, to, follow, START_MS)
                })
                .expect("a follow");
            }
            let remove = |store: &Store, id| {
                write(store, local_account::root(id), move |tx| {
                    account_removal::begin(tx, id)
                });
                loop {
                    leave_libraries(store, id);
                    if remove_some(store, id).is_done {
                        break;
                    }
                }
            };
            at_once(|| remove(one, ann), || remove(other, bob));
            for table in ["local_account", "relation", "mute", "library"] {
                assert_eq!(rows(one, table), 0, "{table}");
            }
        }
    });
}

#[test]
fn a_removal_waits_for_new_mutes_and_notes_on_the_account() {
    on_both_with_two(|one, other| {
        // The other one has a higher ID, then a lower one.
        let [ann, bob] = ["ann", "bob"].map(|text| account(one, text));
        for (from, to) in [(ann, bob), (bob, ann)] {
            let (root, to_id) = (relation::root(from, account_id(to)), account_id(to));
            let other = other.clone();
            let is_locked = move |tx: &mut Tx<'_>| {
                if tx.dialect() == Dialect::Sqlite {
                    return Ok(true);
                }
                let other_id = i64::try_from(to).expect("an ID");
                let free = "select id from local_account where id = $1 {skip_locked}";
                let found = other.write_blocking(Root::none(), move |tx| {
                    Ok::<_, StoreError>(tx.query_opt(free, &[&other_id], |row| row.i64("id"))?)
                });
                Ok::<_, StoreError>(found?.is_none())
            };
            let looks = is_locked.clone();
            assert!(write(one, root, move |tx| {
                mute::set(tx, from, to_id, true, None, START_MS)?;
                looks(tx)
            }));
            assert!(write(one, root, move |tx| {
                account_note::set(tx, from, to_id, "text", START_MS)?.expect("a note");
                is_locked(tx)
            }));
        }
    });
}
