//! Sign-ups that nobody verified in time go, with what they hold of a person: a mail address and a hash.

use std::time::Duration;

use driftline_runtime::now_ms;
use driftline_store::{Store, StoreError, Tx, local_ids, social::pending_account};
use tokio::sync::watch;

/// Removes void sign-ups at once and then every hour, until the stop.
pub async fn keep_swept(store: Store, mut stop: watch::Receiver<bool>) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        // Others tell of a store that is out.
        if let Err(error) = sweep(&store).await {
            tracing::debug!(%error, "void sign-ups were not removed; it is tried again in an hour");
        }
    }
}

/// Removes them in short transactions.
async fn sweep(store: &Store) -> Result<(), StoreError> {
    let now_ms = now_ms();
    let remove = move |tx: &mut Tx<'_>| pending_account::remove_void(tx, now_ms);
    while store.write(local_ids::root(), remove).await? == pending_account::CHUNK {}
    Ok(())
}

const EVERY: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use driftline_core::social::{AccountName, MailAddress, VerificationDigest};
    use driftline_store::{Target, social::pending_account::NewPending, testing::passphrase_hash};

    use super::*;

    fn pending(name: &str) -> NewPending {
        NewPending {
            name: AccountName::new(name).unwrap(),
            mail: MailAddress::new(format!("{name}@mail.example")).unwrap(),
            passphrase: passphrase_hash(1),
            reason: String::new(),
            locale: "en".to_owned(),
            continue_to: None,
            state: VerificationDigest([1; 32]),
        }
    }

    #[tokio::test]
    async fn void_sign_ups_go_although_nobody_signs_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let void_ms = now_ms() - VerificationDigest::LASTS_MS;
        // In this order: a sign-up removes void ones, too.
        for (name, at_ms) in [("void", void_ms), ("fresh", void_ms - 1)] {
            let add = move |tx: &mut Tx<'_>| {
                let added = pending_account::add(tx, &pending(name), at_ms)?;
                Ok::<_, StoreError>(added.unwrap())
            };
            store.write(local_ids::root(), add).await.unwrap();
        }
        let fresh_ms = now_ms();
        let renew = move |tx: &mut Tx<'_>| {
            let name = AccountName::new("fresh").unwrap();
            let mut renewed = pending("fresh");
            renewed.reason = "again".to_owned();
            let (found, hash) = pending_account::by_name(tx, &name, void_ms)?.unwrap();
            pending_account::correct(tx, found.id, &hash, &renewed, fresh_ms)
        };
        assert!(store.write(local_ids::root(), renew).await.unwrap());
        let (stop, stopped) = watch::channel(false);
        let sweeping = tokio::spawn(keep_swept(store.clone(), stopped));
        let names = async || {
            let list = |tx: &mut Tx<'_>| pending_account::list(tx, 0);
            let listed = store.read(list).await.unwrap();
            let names = listed.iter().map(|pending| pending.name.to_string());
            names.collect::<Vec<_>>()
        };
        tokio::time::timeout(Duration::from_secs(180), async {
            while names().await != ["fresh"] {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the void one goes");
        stop.send_replace(true);
        sweeping.await.unwrap();
        store.close().await;
    }
}
