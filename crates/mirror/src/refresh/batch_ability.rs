//! Whether an upstream has a look-up of several posts, and for how long that is assumed.

/// Whether an upstream has a look-up of several posts, as far as this process knows.
///
/// A yes is assumed until the look-up answers 404 or 410. A no is assumed for a day: servers are
/// updated, and a failing front end may have answered for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BatchAbility {
    known: Option<bool>,
    /// When to check again after a no, or while it is unknown, Unix ms.
    recheck_at_ms: i64,
    /// The last wait while it is unknown, ms.
    waited_ms: i64,
}

impl BatchAbility {
    /// From the store, which does not say how old it is: a no is checked again soon.
    pub(super) fn remembered(has_it: bool, now_ms: i64) -> Self {
        Self {
            known: Some(has_it),
            recheck_at_ms: now_ms.saturating_add(REMEMBERED_MS),
            waited_ms: 0,
        }
    }

    /// From an answer of the upstream.
    pub(super) fn shown(has_it: bool, now_ms: i64) -> Self {
        Self {
            known: Some(has_it),
            recheck_at_ms: now_ms.saturating_add(SHOWN_MS),
            waited_ms: 0,
        }
    }

    /// Whether neither this process nor the store knows.
    pub(super) fn is_unknown(self) -> bool {
        self.known.is_none()
    }

    /// Whether to request several posts at once.
    pub(super) fn has_it(self) -> bool {
        self.known == Some(true)
    }

    /// Whether to check the upstream now.
    pub(super) fn is_check_due(self, now_ms: i64) -> bool {
        match self.known {
            Some(true) => false,
            Some(false) | None => now_ms >= self.recheck_at_ms,
        }
    }

    /// After a check without result: a no stays for now, and an unknown ability is checked again after
    /// waits that double.
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
    fn a_no_is_checked_again_after_a_day() {
        let ability = BatchAbility::shown(false, 1_000);
        assert!(!ability.has_it() && !ability.is_check_due(1_000));
        assert!(!ability.is_check_due(1_000 + SHOWN_MS - 1));
        assert!(ability.is_check_due(1_000 + SHOWN_MS));
        let still = ability.still(1_000 + SHOWN_MS);
        assert!(!still.is_check_due(1_000 + SHOWN_MS));
        assert!(!still.has_it(), "until it is shown");
        assert!(BatchAbility::shown(true, 0).has_it());
    }

    #[test]
    fn a_no_from_the_store_is_checked_soon() {
        let ability = BatchAbility::remembered(false, 1_000);
        assert!(!ability.is_check_due(1_000));
        assert!(ability.is_check_due(1_000 + REMEMBERED_MS));
    }

    #[test]
    fn a_yes_is_assumed_and_an_unknown_ability_is_checked() {
        assert!(!BatchAbility::remembered(true, 0).is_check_due(i64::MAX));
        assert!(BatchAbility::default().is_check_due(0));
        assert!(BatchAbility::default().is_unknown());
    }

    #[test]
    fn an_unknown_ability_is_checked_ever_more_rarely() {
        let mut ability = BatchAbility::default();
        let (mut now_ms, mut asked) = (0, 0);
        while now_ms < 24 * 3_600_000 {
            if ability.is_check_due(now_ms) {
                ability = ability.still(now_ms);
                assert!(ability.is_unknown() && !ability.has_it());
                asked += 1;
            }
            now_ms += 1_000;
        }
        assert!((24..40).contains(&asked), "{asked} times in a day");
    }
}
