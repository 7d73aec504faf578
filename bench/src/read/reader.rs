//! The readers of home timelines: whom they follow, and what they ask.

use std::net::SocketAddr;

use driftline_api::auth::PassphraseHasher;
use driftline_core::social::{AccountName, AccountState, HashCost, MailAddress, Passphrase, Role};
use driftline_db::Column;
use driftline_store::{
    LocalAccountId, Root, Store, StoreError, Tx, local_ids,
    social::local_account::{self, NewAccount},
};
use serde_json::{Value, json};

use super::client::Asked;
use crate::{database::Place, failure::Failure, http::Connection};

/// The owner of the home timeline that is read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reader {
    /// Follows 500 authors.
    Few,
    /// Follows 5,000 authors, of whom ten write.
    Many,
}

impl Reader {
    /// All of them.
    pub(super) const ALL: [Self; 2] = [Self::Few, Self::Many];

    /// Its account's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Few => "few",
            Self::Many => "many",
        }
    }

    /// The authors that it follows; those above the number of authors write nothing.
    fn follows(self) -> Vec<i64> {
        match self {
            Self::Few => (0..500)
                .map(|number| 1 + number * (AUTHORS / 500))
                .collect(),
            Self::Many => {
                let writers = (0..10).map(|number| 2 + number * (AUTHORS / 10));
                let silent = (0..4_990).map(|number| AUTHORS + 1 + number);
                writers.chain(silent).collect()
            }
        }
    }

    /// Pages of its home timeline.
    pub(super) fn asks_driftline(self, token: String, min_bytes: usize) -> Asked {
        Asked {
            target: "/api/v1/timelines/home?limit=20&max_id=".to_owned(),
            token: Some(token),
            min_bytes,
        }
    }

    /// The same of the bare handler.
    pub(super) fn asks_bare(self, min_bytes: usize) -> Asked {
        Asked {
            target: format!("/{}?max_id=", self.name()),
            token: None,
            min_bytes,
        }
    }
}

/// Makes the accounts of all readers in a store, with whom they follow.
pub(super) fn add_all(place: &Place) -> Result<(), Failure> {
    let store = place.open()?;
    for reader in Reader::ALL {
        let id = i64::try_from(add_account(&store, reader.name())?.raw())?;
        let follows = reader.follows();
        store.write_blocking(Root::none(), move |tx| {
            tx.execute_many(
                "insert into relation (account_id, other_id, outgoing, outgoing_id, incoming,
                     incoming_id, show_boosts)
                 select $1, r.id, 'following', r.id, 'none', 0, true from {rows as r(id)}",
                &[&id],
                &[Column::i64(follows.iter().copied())],
            )?;
            Ok::<_, StoreError>(())
        })?;
    }
    store.close_blocking();
    Ok(())
}

/// Makes an active account of the server.
pub(crate) fn add_account(store: &Store, name: &str) -> Result<LocalAccountId, Failure> {
    let passphrase = Passphrase::choose(&PASSPHRASE.to_owned().into())?;
    let runtime = tokio::runtime::Runtime::new()?;
    let hash = runtime.block_on(PassphraseHasher::new(CHEAP, 1).hash(passphrase));
    let new = NewAccount {
        name: AccountName::new(name)?,
        mail: MailAddress::new(format!("{name}@mail.example"))?,
        passphrase: hash.map_err(|_| Failure::new("no passphrase is hashed"))?,
        role: Role::Member,
        awaits_approval: false,
        reason: String::new(),
    };
    let now_ms = driftline_runtime::now_ms();
    let root = local_ids::root();
    let created = store.write_blocking(root, move |tx| local_account::create(tx, &new, now_ms))?;
    let id = created?.id;
    let activated = store.write_blocking(local_account::root(id), move |tx: &mut Tx<'_>| {
        local_account::change_state(tx, id, AccountState::Active)
    })?;
    activated?;
    Ok(id)
}

/// Logs a reader in; its token.
pub(super) fn log_in(server: SocketAddr, reader: Reader) -> Result<String, Failure> {
    log_in_as(server, reader.name())
}

/// Logs an account in that [`add_account`] made; its token.
pub(crate) fn log_in_as(server: SocketAddr, name: &str) -> Result<String, Failure> {
    let body = json!({ "who": name, "passphrase": PASSPHRASE, "device": "bench" });
    let mut connection = Connection::open(server)?;
    let request = "POST /api/driftline/v1/log-in";
    let answer: Value =
        serde_json::from_slice(connection.ask(request, None, &body.to_string())?)?;
    let token = answer["token"].as_str().map(str::to_owned);
    token.ok_or_else(|| Failure::new(format!("no log-in: {answer}")))
}

const PASSPHRASE: &str = "correct horse battery";
const CHEAP: HashCost = HashCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};
/// As many authors write in turn.
pub(super) const AUTHORS: i64 = 10_000;
