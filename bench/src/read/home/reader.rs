//! The readers of home timelines: whom they follow, and what they ask.

use std::{net::SocketAddr, sync::Arc};

use driftline_api::auth::PassphraseHasher;
use driftline_core::social::{AccountName, AccountState, HashCost, MailAddress, Passphrase, Role};
use driftline_db::Column;
use driftline_store::{
    Root, Store, StoreError, Target, Tx, local_ids,
    social::local_account::{self, NewAccount},
};
use reqwest::Client;
use serde_json::{Value, json};

use super::{
    super::client::{Asked, Endpoint},
    database::AUTHORS,
};
use crate::failure::Failure;

/// Whose home timeline is read.
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
    pub(super) fn asks_driftline(self, token: Arc<str>, min_bytes: usize) -> Asked {
        Asked {
            target: ours,
            endpoint: Endpoint::PublicSince,
            token: Some(token),
            min_bytes,
        }
    }

    /// The same of the bare handler.
    pub(super) fn asks_bare(self, min_bytes: usize) -> Asked {
        Asked {
            target: match self {
                Self::Few => bare_few,
                Self::Many => bare_many,
            },
            endpoint: Endpoint::PublicSince,
            token: None,
            min_bytes,
        }
    }
}

fn ours(_: Endpoint, id: i64) -> String {
    format!("/api/v1/timelines/home?max_id={id}&limit=20")
}

fn bare_few(_: Endpoint, id: i64) -> String {
    format!("/few?max_id={id}")
}

fn bare_many(_: Endpoint, id: i64) -> String {
    format!("/many?max_id={id}")
}

/// Makes the accounts of all readers in a store, with whom they follow.
pub(super) fn add_all(target: Target) -> Result<(), Failure> {
    let passphrase = Passphrase::choose(&PASSPHRASE.to_owned().into())
        .map_err(|error| Failure::new(error.to_string()))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let hash = runtime.block_on(PassphraseHasher::new(CHEAP, 1).hash(passphrase));
    let hash = hash.map_err(|_| Failure::new("no passphrase is hashed"))?;
    let store = Store::open(target)?;
    let now_ms = driftline_runtime::now_ms();
    for reader in Reader::ALL {
        let name = reader.name();
        let new = NewAccount {
            name: AccountName::new(name).map_err(|error| Failure::new(error.to_string()))?,
            mail: MailAddress::new(format!("{name}@mail.example"))
                .map_err(|error| Failure::new(error.to_string()))?,
            passphrase: hash.clone(),
            role: Role::Member,
            awaits_approval: false,
            reason: String::new(),
        };
        let created = store.write_blocking(local_ids::root(), move |tx| {
            let created = local_account::create(tx, &new, now_ms)?;
            Ok::<_, StoreError>(created.map(|account| account.id))
        })?;
        let id = created.map_err(|error| Failure::new(error.to_string()))?;
        let activated = store.write_blocking(local_account::root(id), move |tx: &mut Tx<'_>| {
            local_account::change_state(tx, id, AccountState::Active)
        })?;
        activated.map_err(|error| Failure::new(error.to_string()))?;
        let (id, follows) = (i64::try_from(id.raw())?, reader.follows());
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

/// Logs a reader in.
pub(super) async fn log_in(server: SocketAddr, reader: Reader) -> Result<Arc<str>, Failure> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let body = json!({ "who": reader.name(), "passphrase": PASSPHRASE, "device": "bench" });
    let url = format!("http://{}/api/driftline/v1/log-in", server);
    let request = Client::builder().no_proxy().build()?.post(url);
    let request = request.header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await?;
    let answer: Value = serde_json::from_slice(&answer.bytes().await?)?;
    match answer["token"].as_str() {
        Some(token) => Ok(token.into()),
        None => Err(Failure::new(format!("no log-in: {answer}"))),
    }
}

const PASSPHRASE: &str = "correct horse battery";
const CHEAP: HashCost = HashCost {
    memory_kib: 64,
    passes: 1,
    lanes: 1,
};
