//! Whether an upstream looks several posts up at once, and how long that is believed.

/// What this process knows of an upstream's look-up of several posts.
///
/// That there is one is believed until it answers 404 or 410. That there is none is believed for a
/// day: servers are updated, and a front end that was down for a moment may have answered for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchAbility {
    known: Option<bool>,
    /// When a no is looked into again, Unix ms.
    again_ms: i64,
}

impl BatchAbility {
    /// What the store remembers. How old that is it does not say: a no is looked into soon.
    pub(super) fn remembered(known: Option<bool>, now_ms: i64) -> Self {
        Self {
            known,
            again_ms: now_ms.saturating_add(REMEMBERED_MS),
        }
    }

    /// What the upstream has just shown.
    pub(super) fn shown(has_it: bool, now_ms: i64) -> Self {
        Self {
            known: Some(has_it),
            again_ms: now_ms.saturating_add(SHOWN_MS),
        }
    }

    /// Whether nothing is known, not even by the store.
    pub(super) fn is_unknown(self) -> bool {
        self.known.is_none()
    }

    /// Whether several posts may be asked for at once.
    pub(super) fn has_it(self) -> bool {
        self.known == Some(true)
    }

    /// Whether the upstream is to be asked.
    pub(super) fn is_to_be_asked(self, now_ms: i64) -> bool {
        match self.known {
            None => true,
            Some(true) => false,
            Some(false) => now_ms >= self.again_ms,
        }
    }

    /// The upstream was asked, and its answer told nothing: a no stays for now.
    #[must_use]
    pub(super) fn still(self, now_ms: i64) -> Self {
        Self::remembered(self.known, now_ms)
    }
}

const SHOWN_MS: i64 = 24 * 3_600_000;
const REMEMBERED_MS: i64 = 3_600_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_no_is_looked_into_again_after_a_day() {
        let ability = BatchAbility::shown(false, 1_000);
        assert!(!ability.has_it() && !ability.is_to_be_asked(1_000));
        assert!(!ability.is_to_be_asked(1_000 + SHOWN_MS - 1));
        assert!(ability.is_to_be_asked(1_000 + SHOWN_MS));
        let still = ability.still(1_000 + SHOWN_MS);
        assert!(!still.is_to_be_asked(1_000 + SHOWN_MS));
        assert!(!still.has_it(), "until it is shown");
        assert!(BatchAbility::shown(true, 0).has_it());
    }

    #[test]
    fn a_no_from_the_store_is_looked_into_soon() {
        let ability = BatchAbility::remembered(Some(false), 1_000);
        assert!(!ability.is_to_be_asked(1_000));
        assert!(ability.is_to_be_asked(1_000 + REMEMBERED_MS));
    }

    #[test]
    fn a_yes_is_believed_and_what_is_unknown_is_asked() {
        assert!(!BatchAbility::remembered(Some(true), 0).is_to_be_asked(i64::MAX));
        assert!(BatchAbility::remembered(None, 0).is_to_be_asked(0));
        assert!(BatchAbility::default().is_unknown());
    }
}
