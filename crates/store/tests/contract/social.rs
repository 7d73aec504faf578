//! People: their accounts, and how they stand to each other.

mod account_copies;
mod account_removal;
mod account_sources;
mod account_states;
mod bells;
mod kept_timelines;
mod library_objects;
mod list_bells;
mod list_entries;
mod local_accounts;
mod mutes;
mod notifications;
mod pending_accounts;
mod relations;

use std::{sync::Barrier, thread};

use driftline_core::social::{AccountName, MailAddress};
use driftline_db::testing::{Fresh, databases, is_distributed};
use driftline_store::{
    LocalAccountId, Store, local_ids,
    social::local_account::{self, AccountTaken, LocalAccount, NewAccount},
    testing::{new_account, open, passphrase_hash as hash},
};

use crate::world::{START_MS, read, write};

fn mail(text: &str) -> MailAddress {
    MailAddress::new(text).expect("an address")
}

fn name(text: &str) -> AccountName {
    AccountName::new(text).expect("a name")
}

fn create(store: &Store, new: &NewAccount) -> Result<LocalAccount, AccountTaken> {
    let new = new.clone();
    write(store, local_ids::root(), move |tx| {
        local_account::create(tx, &new, START_MS)
    })
}

pub(crate) fn account(store: &Store, text: &str) -> LocalAccountId {
    create(store, &new_account(text)).expect("an account").id
}

/// Runs a test on each database with two stores, as two processes have; SQLite has one.
pub(crate) fn on_both_with_two(test: impl Fn(&Store, &Store)) {
    let mut all: Vec<(Fresh, bool)> = databases()
        .into_iter()
        .map(|fresh| (fresh, false))
        .collect();
    if !is_distributed() {
        all.push((Fresh::postgres(), true));
    }
    for (fresh, is_reserving) in all {
        let one = match is_reserving {
            true => driftline_store::testing::open_reserving(&fresh),
            false => open(&fresh),
        };
        let other = match fresh.name {
            "SQLite" => one.clone(),
            _ => Store::open(fresh.target.clone()).expect("a store"),
        };
        test(&one, &other);
        let retries = one.stats().retries + other.stats().retries;
        assert_eq!(retries, 0, "writers deadlocked on {}", fresh.name);
        one.close_blocking();
        other.close_blocking();
    }
}

/// Runs two writes at once, as far as the database lets it.
fn at_once<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B + Send,
) -> (A, B) {
    let barrier = &Barrier::new(2);
    thread::scope(|scope| {
        let one = scope.spawn(move || {
            barrier.wait();
            one()
        });
        let other = scope.spawn(move || {
            barrier.wait();
            other()
        });
        (
            one.join().expect("no panic"),
            other.join().expect("no panic"),
        )
    })
}
