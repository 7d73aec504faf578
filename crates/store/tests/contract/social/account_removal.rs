use driftline_core::social::RelationMove;
use driftline_store::{
    AccountId, LocalAccountId, Root, Store, StoreError, account_id,
    social::{
        account_removal::{self, AccountContents, CHUNK, Removed},
        local_account, mute, relation,
    },
};

use super::{account, create, name, new_account, read, write};
use crate::world::{START_MS, on_both};

fn remove_some(store: &Store, id: LocalAccountId) -> Removed {
    write(store, local_account::root(id), move |tx| {
        account_removal::remove_some(tx, id)
    })
}

fn rows(store: &Store, table: &'static str) -> i64 {
    read(store, move |tx| {
        let count = format!("select count(*) as rows from {table}");
        Ok(tx.query_one(&count, &[], |row| row.i64("rows"))?)
    })
}

#[test]
fn an_account_goes_in_chunks_with_all_that_is_its_own() {
    on_both(|store| {
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
                    "insert into relation values ($1, $2, 'following', $3, 'none', 0, true, false)",
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
        let planned = read(store, move |tx| account_removal::plan(tx, ann));
        let expected = AccountContents {
            relations: many + 1,
            mutes: 1,
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
    });
}
