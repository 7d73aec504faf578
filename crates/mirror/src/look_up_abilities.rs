use std::{collections::HashMap, sync::Arc};

use driftline_core::{clock::is_ahead, post::PostKind};
use driftline_runtime::now_ms;
use driftline_store::{
    CredentialKey, Store, StoreError, credential,
    look_up_ability::{self, LookUpAbility},
};
use parking_lot::Mutex;

/// Whether look-ups with a credential find live posts of a kind, as far as this process knows; it is
/// kept in the store. Clones are handles to the same.
///
/// What was seen counts for a day, because servers and their settings change, and that nothing was
/// found for an hour, because the controls may have been deleted.
#[derive(Debug, Clone, Default)]
pub struct LookUpAbilities(Arc<Mutex<HashMap<(CredentialKey, PostKind), LookUpAbility>>>);

impl LookUpAbilities {
    /// Whether look-ups find live posts of the kind; `None` while that is unknown.
    pub(crate) async fn finds(
        &self,
        store: &Store,
        credential: CredentialKey,
        kind: PostKind,
    ) -> Result<Option<bool>, StoreError> {
        let now = now_ms();
        let known = self.0.lock().get(&(credential, kind)).copied();
        if let Some(known) = known.filter(|known| age_share(known, now) < 1.0) {
            return Ok(Some(known.finds));
        }
        let stored = store
            .read(move |tx| look_up_ability::of_credential(tx, credential))
            .await?;
        let mut found = stored.into_iter();
        let found = found.find(|of| of.kind == kind && age_share(of, now) < 1.0);
        if let Some(found) = found {
            self.0.lock().insert((credential, kind), found);
        }
        Ok(found.map(|found| found.finds))
    }

    /// Keeps what a look-up has shown.
    pub(crate) async fn learn(
        &self,
        store: &Store,
        credential: CredentialKey,
        kind: PostKind,
        finds: bool,
    ) -> Result<(), StoreError> {
        let ability = LookUpAbility {
            credential,
            kind,
            finds,
            at_ms: now_ms(),
        };
        let known = self.0.lock().get(&(credential, kind)).copied();
        if known.is_some_and(|known| known.finds == finds && age_share(&known, ability.at_ms) < 0.5)
        {
            return Ok(());
        }
        store
            .write(credential::root(credential), move |tx| {
                look_up_ability::learn(tx, &ability)
            })
            .await?;
        self.0.lock().insert((credential, kind), ability);
        Ok(())
    }
}

/// How much of its time has passed: all of it if a clock that was ahead dated it.
fn age_share(ability: &LookUpAbility, now_ms: i64) -> f64 {
    let valid_ms = if ability.finds {
        PROVEN_MS
    } else {
        DISPROVEN_MS
    };
    match is_ahead(ability.at_ms, now_ms) {
        true => 1.0,
        false => now_ms.saturating_sub(ability.at_ms) as f64 / valid_ms as f64,
    }
}

const PROVEN_MS: i64 = 86_400_000;
const DISPROVEN_MS: i64 = 3_600_000;
