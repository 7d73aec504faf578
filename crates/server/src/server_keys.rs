//! The keys that all processes of a store share: one file, copied to each, seals what the store keeps,
//! the keys of native tokens among it.

use std::{fs, path::PathBuf, time::Duration};

use driftline_api::auth::{NativeTokens, TokenKeys, TokenKeysError};
use driftline_mirror::{SealingError, SealingKey};
use driftline_runtime::now_ms;
use driftline_store::{
    Store, StoreError, local_ids, nonce,
    server_keys::{self, ServerKeys},
};
use tokio::sync::watch;

/// Why a process cannot use the keys. Never holds one.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeysError {
    /// The key is another one than the store's.
    #[error(
        "the key in {0} is not the one that this store's tokens are sealed with: put that one there, from a backup or from the data folder of another process on this store; if it is lost, `driftline credential forget-key` lets the next start bring another"
    )]
    OtherKey(PathBuf),
    /// There is no key, and the store has one.
    #[error(
        "{0} is missing, and this store's tokens are sealed with it: put it back, from a backup or from the data folder of another process on this store; if it is lost, `driftline credential forget-key` lets the next start make another"
    )]
    NoKey(PathBuf),
    /// The key cannot be used.
    #[error(transparent)]
    Sealing(#[from] SealingError),
    /// What the store holds are no keys of tokens.
    #[error("the keys of native tokens in the store cannot be used: {0}")]
    TokenKeys(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system has no random numbers.
    #[error("a key cannot be made: {0}")]
    Random(getrandom::Error),
}

/// The name of the key's file in the data folder.
pub const KEY_FILE: &str = "credentials.key";

/// Checks that a key is the store's, if processes of it have agreed on one.
///
/// # Errors
/// [`ServerKeysError`] if it is not.
pub async fn check(store: &Store, key: &SealingKey) -> Result<(), ServerKeysError> {
    let found = store
        .read(|tx| Ok::<_, StoreError>((nonce(tx)?, server_keys::load(tx)?)))
        .await?;
    match found {
        (_, None) => Ok(()),
        (nonce, Some(recorded)) => is_same(key, &nonce, &recorded),
    }
}

/// The keys of native tokens, which all processes of the store have. The first of them makes them.
///
/// # Errors
/// [`ServerKeysError`] if this process has another key than the others.
pub async fn open(
    store: &Store,
    key: &SealingKey,
    now_ms: i64,
) -> Result<TokenKeys, ServerKeysError> {
    let (nonce, recorded) = store
        .read(|tx| Ok::<_, StoreError>((nonce(tx)?, server_keys::load(tx)?)))
        .await?;
    let recorded = match recorded {
        Some(recorded) => recorded,
        None => {
            key.make()?;
            let keys = TokenKeys::new(random()?, random()?, now_ms);
            let own = ServerKeys {
                fingerprint: key.fingerprint(&nonce)?,
                sealed_token_keys: key.seal(&keys.text(), PURPOSE)?,
            };
            store
                .write(local_ids::root(), move |tx| server_keys::record(tx, &own))
                .await?
        }
    };
    is_same(key, &nonce, &recorded)?;
    rotated(store, key, recorded, now_ms).await
}

/// Takes over the keys that other processes made, and makes a new one at its time, until the stop.
pub async fn keep_fresh(
    store: Store,
    key: SealingKey,
    tokens: NativeTokens,
    mut stop: watch::Receiver<bool>,
) {
    let mut ticks = tokio::time::interval(RELOAD);
    loop {
        tokio::select! {
            _ = stop.wait_for(|stopped| *stopped) => return,
            _ = ticks.tick() => {}
        }
        match reloaded(&store, &key).await {
            Ok(keys) => tokens.replace_keys(keys),
            Err(error) => tracing::warn!(%error, "the keys of native tokens stay as they are"),
        }
    }
}

async fn reloaded(store: &Store, key: &SealingKey) -> Result<TokenKeys, ServerKeysError> {
    let recorded = store.read(server_keys::load).await?;
    let recorded = recorded.ok_or_else(|| no_token_keys(&TokenKeysError))?;
    rotated(store, key, recorded, now_ms()).await
}

/// The recorded keys, with a new one if the newest is old.
async fn rotated(
    store: &Store,
    key: &SealingKey,
    recorded: ServerKeys,
    now_ms: i64,
) -> Result<TokenKeys, ServerKeysError> {
    let keys = unsealed(key, &recorded)?;
    if now_ms - keys.newest_at_ms() < MAX_KEY_AGE_MS {
        return Ok(keys);
    }
    let keys = keys.rotated(random()?, random()?, now_ms);
    let sealed = key.seal(&keys.text(), PURPOSE)?;
    let (is_ours, now) = store
        .write(local_ids::root(), move |tx| {
            let is_ours = server_keys::replace_token_keys(tx, &recorded, &sealed)?;
            Ok::<_, StoreError>((is_ours, server_keys::load(tx)?))
        })
        .await?;
    match now {
        Some(others) if !is_ours => unsealed(key, &others),
        _ => Ok(keys),
    }
}

fn is_same(key: &SealingKey, nonce: &str, recorded: &ServerKeys) -> Result<(), ServerKeysError> {
    let file = key.file().to_owned();
    if matches!(fs::exists(&file), Ok(false)) {
        return Err(ServerKeysError::NoKey(file));
    }
    match key.fingerprint(nonce)? == recorded.fingerprint {
        true => Ok(()),
        false => Err(ServerKeysError::OtherKey(file)),
    }
}

fn unsealed(key: &SealingKey, recorded: &ServerKeys) -> Result<TokenKeys, ServerKeysError> {
    use secrecy::ExposeSecret as _;
    let text = key
        .unseal(&recorded.sealed_token_keys, PURPOSE)
        .map_err(|error| no_token_keys(&error))?;
    TokenKeys::parse(text.expose_secret()).map_err(|error| no_token_keys(&error))
}

fn no_token_keys(error: &impl std::fmt::Display) -> ServerKeysError {
    ServerKeysError::TokenKeys(error.to_string())
}

fn random<const N: usize>() -> Result<[u8; N], ServerKeysError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(ServerKeysError::Random)?;
    Ok(bytes)
}

/// What the keys of native tokens are sealed for.
const PURPOSE: &str = "driftline keys of native tokens";

/// How old the key that signs becomes.
const MAX_KEY_AGE_MS: i64 = 90 * 86_400_000;

/// How often the keys are read again: well before a new one signs
/// ([`KEY_SETTLING_MS`](driftline_api::auth::KEY_SETTLING_MS)).
const RELOAD: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use driftline_store::Target;
    use secrecy::ExposeSecret as _;

    use super::*;

    const START_MS: i64 = 1_790_000_000_000;

    fn text(keys: &TokenKeys) -> String {
        keys.text().expose_secret().to_owned()
    }

    #[tokio::test]
    async fn keys_are_sealed_and_renewed_in_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let key = SealingKey::new(folder.path().join(KEY_FILE));
        check(&store, &key).await.unwrap();
        let first = text(&open(&store, &key, START_MS).await.unwrap());
        check(&store, &key).await.unwrap();

        let sealed = store.read(server_keys::load).await.unwrap().unwrap();
        assert!(!sealed.sealed_token_keys.contains(&first));
        let before = open(&store, &key, START_MS + MAX_KEY_AGE_MS - 1);
        assert_eq!(text(&before.await.unwrap()), first);
        let at_ms = START_MS + MAX_KEY_AGE_MS;
        let renewed = text(&open(&store, &key, at_ms).await.unwrap());
        assert!(renewed.ends_with(&first) && renewed.lines().count() == 2);
        let again = open(&store, &key, at_ms).await.unwrap();
        assert_eq!(text(&again), renewed);
        // One that read the keys before takes the others', and makes none.
        let late = rotated(&store, &key, sealed, at_ms).await.unwrap();
        assert_eq!(text(&late), renewed);
        store.close().await;
    }

    #[tokio::test]
    async fn another_key_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(Target::Sqlite { path }).unwrap();
        let [key, other] = ["one", "other"].map(|name| SealingKey::new(folder.path().join(name)));
        open(&store, &key, START_MS).await.unwrap();
        let refused = open(&store, &other, START_MS).await;
        assert!(matches!(refused, Err(ServerKeysError::NoKey(file)) if file == other.file()));
        assert!(!other.file().exists());
        other.make().unwrap();
        let refused = open(&store, &other, START_MS).await;
        assert!(matches!(refused, Err(ServerKeysError::OtherKey(file)) if file == other.file()));
        let refused = check(&store, &other).await;
        assert!(matches!(refused, Err(ServerKeysError::OtherKey(_))));
        store
            .write(local_ids::root(), server_keys::forget)
            .await
            .unwrap();
        open(&store, &other, START_MS).await.unwrap();
        store.close().await;
    }
}
