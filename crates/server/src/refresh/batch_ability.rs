//! Whether an upstream looks several posts up at once, and how long that is believed.

/// What this process knows of an upstream's look-up of several posts.
///
/// That there is one is believed until it answers 404 or 410. That there is none is believed for a
/// day: servers are updated, and a front end that was down for a moment may have answered for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchAbility {
    known: Option<bool>,
    /// When what is not known, or a no, is looked into, Unix ms.
    recheck_at_ms: i64,
    /// How long the last wait for that was where nothing was known, ms.
    waited_ms: i64,
}

impl BatchAbility {
    /// What the store remembers. How old that is it does not say: a no is looked into soon.
    pub(super) fn remembered(has_it: bool, now_ms: i64) -> Self {
        Self {
            known: Some(has_it),
            recheck_at_ms: now_ms.saturating_add(REMEMBERED_MS),
            waited_ms: 0,
        }
    }

    /// What the upstream has just shown.
    pub(super) fn shown(has_it: bool, now_ms: i64) -> Self {
        Self {
            known: Some(has_it),
            recheck_at_ms: now_ms.saturating_add(SHOWN_MS),
            waited_ms: 0,
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
            Some(true) => false,
            Some(false) | None => now_ms >= self.recheck_at_ms,
        }
    }

    /// The upstream was asked, and its answer told nothing: a no stays for now, and what is not
    /// known is asked again after waits that double.
    #[must_use]
    pub(super) fn still(self, now_ms: i64) -> Self {
        if let Some(known) = self.known {
            return Self::remembered(known, now_ms);
        }
        let wait_ms = self.waited_ms.saturating_mul(2);
        let waited_ms = wait_ms.clamp(UNKNOWN_MS, REMEMBERED_MS);
        Self {
            known: None,
            recheck_at_ms: now_ms.saturating_add(waited_ms),
            waited_ms,
        }
    }
}

const SHOWN_MS: i64 = 24 * 3_600_000;
const REMEMBERED_MS: i64 = 3_600_000;
const UNKNOWN_MS: i64 = 5_000;

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
        let ability = BatchAbility::remembered(false, 1_000);
        assert!(!ability.is_to_be_asked(1_000));
        assert!(ability.is_to_be_asked(1_000 + REMEMBERED_MS));
    }

    #[test]
    fn a_yes_is_believed_and_what_is_unknown_is_asked() {
        assert!(!BatchAbility::remembered(true, 0).is_to_be_asked(i64::MAX));
        assert!(BatchAbility::default().is_to_be_asked(0));
        assert!(BatchAbility::default().is_unknown());
    }

    #[test]
    fn what_stays_unknown_is_asked_more_and_more_rarely() {
        let mut ability = BatchAbility::default();
        let (mut now_ms, mut asked) = (0, 0);
        while now_ms < 24 * 3_600_000 {
            if ability.is_to_be_asked(now_ms) {
                ability = ability.still(now_ms);
                assert!(ability.is_unknown() && !ability.has_it());
                asked += 1;
            }
            now_ms += 1_000;
        }
        assert!((24..40).contains(&asked), "{asked} times in a day");
    }
}
