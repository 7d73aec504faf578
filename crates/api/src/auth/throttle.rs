//! How often a log-in may be tried. Pure: the time comes as an argument, by a clock that never steps.
//!
//! Tries of one key (an address, an account) are free at first; then each waits twice as long as the one
//! before, up to a bound, so that nobody is locked out. A try counts as failed until it has succeeded, so
//! that tries at the same time count too. Refused tries count for nothing.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
};

use crate::transport::ApiError;

/// How many tries are free, and how long later ones wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleRule {
    /// Tries without a wait.
    pub free: u32,
    /// The wait after the first that is not free, ms.
    pub first_ms: i64,
    /// The longest wait, ms.
    pub max_wait_ms: i64,
    /// Failures are forgotten after that long without a try, ms.
    pub forgotten_after_ms: i64,
}

impl ThrottleRule {
    /// Of an account, by those who are not known to be its owner: one try every 10 s, for which they wait in
    /// line.
    pub const ACCOUNT: Self = Self {
        free: 5,
        first_ms: 10_000,
        max_wait_ms: 10_000,
        forgotten_after_ms: 3_600_000,
    };
    /// Of a browser in which the account has logged in before.
    pub const DEVICE: Self = Self {
        free: 5,
        first_ms: 1_000,
        max_wait_ms: 60_000,
        forgotten_after_ms: 3_600_000,
    };
    /// Of an address, which tries many accounts.
    pub const ADDRESS: Self = Self {
        free: 20,
        first_ms: 1_000,
        max_wait_ms: 15 * 60_000,
        forgotten_after_ms: 6 * 3_600_000,
    };
    /// Of an address that registers apps, asks for mail or signs up.
    pub const REGISTRATION: Self = Self {
        free: 30,
        first_ms: 2_000,
        max_wait_ms: 15 * 60_000,
        forgotten_after_ms: 3_600_000,
    };
    /// Of an address that has mails sent, to whomever.
    pub const MAIL_SENDER: Self = Self {
        free: 30,
        first_ms: 60_000,
        max_wait_ms: 3_600_000,
        forgotten_after_ms: 6 * 3_600_000,
    };
    /// Of a mail address that something is sent to, whatever and by whomever.
    pub const MAIL: Self = Self {
        free: 2,
        first_ms: 60_000,
        max_wait_ms: 24 * 3_600_000,
        forgotten_after_ms: 48 * 3_600_000,
    };

    fn wait_ms(&self, failures: u32) -> i64 {
        match failures.checked_sub(self.free) {
            None | Some(0) => 0,
            Some(over) => {
                let doubled = self.first_ms.saturating_mul(1 << (over - 1).min(40));
                doubled.min(self.max_wait_ms)
            }
        }
    }
}

/// The tries of each key.
#[derive(Debug)]
pub struct Throttle<K> {
    rule: ThrottleRule,
    tries: HashMap<K, Tries>,
}

#[derive(Clone, Copy, Debug)]
struct Tries {
    failures: u32,
    last_ms: i64,
    next_ms: i64,
}

/// A try that came too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooEarly {
    /// How long to wait, ms.
    pub wait_ms: i64,
}

impl<K: Eq + Hash + Clone> Throttle<K> {
    /// Without tries so far.
    pub fn new(rule: ThrottleRule) -> Self {
        Self {
            rule,
            tries: HashMap::new(),
        }
    }

    /// Counts a try as failed, unless it comes too early.
    ///
    /// # Errors
    /// [`TooEarly`] with the wait.
    pub fn begin(&mut self, key: &K, now_ms: i64) -> Result<(), TooEarly> {
        let rule = self.rule;
        let known = self.tries.get(key).copied();
        let known = known.filter(|tries| now_ms - tries.last_ms < rule.forgotten_after_ms);
        let failures = known.map_or(0, |tries| {
            if tries.next_ms > now_ms {
                u32::MAX
            } else {
                tries.failures
            }
        });
        if let (u32::MAX, Some(tries)) = (failures, known) {
            let wait_ms = tries.next_ms - now_ms;
            return Err(TooEarly { wait_ms });
        }
        if self.tries.len() >= MAX_KEYS && known.is_none() {
            self.make_room(now_ms);
        }
        let failures = failures.saturating_add(1);
        let tries = Tries {
            failures,
            last_ms: now_ms,
            next_ms: now_ms + rule.wait_ms(failures),
        };
        self.tries.insert(key.clone(), tries);
        Ok(())
    }

    /// How long a try of that key has to wait, ms.
    pub fn wait_ms(&self, key: &K, now_ms: i64) -> i64 {
        let known = self.tries.get(key);
        let known = known.filter(|tries| now_ms - tries.last_ms < self.rule.forgotten_after_ms);
        known.map_or(0, |tries| (tries.next_ms - now_ms).max(0))
    }

    /// Forgets the failures of a key, since a try has succeeded.
    pub fn succeeded(&mut self, key: &K) {
        self.tries.remove(key);
    }

    /// Takes back one try of a key, which has succeeded; failures before it stay.
    pub fn take_back(&mut self, key: &K) {
        if let Some(tries) = self.tries.get_mut(key) {
            tries.failures = tries.failures.saturating_sub(1);
            tries.next_ms = tries.last_ms;
        }
    }

    /// Drops what is forgotten anyway; then, of the rest, the half with the fewest failures.
    fn make_room(&mut self, now_ms: i64) {
        let forgotten_after_ms = self.rule.forgotten_after_ms;
        self.tries
            .retain(|_, tries| now_ms - tries.last_ms < forgotten_after_ms);
        if self.tries.len() < MAX_KEYS {
            return;
        }
        let mut all: Vec<(u32, i64)> = self
            .tries
            .values()
            .map(|tries| (tries.failures, tries.last_ms))
            .collect();
        let middle = all.len() / 2;
        let (_, middle, _) = all.select_nth_unstable(middle);
        let middle = *middle;
        self.tries
            .retain(|_, tries| (tries.failures, tries.last_ms) > middle);
    }
}

impl From<TooEarly> for ApiError {
    fn from(early: TooEarly) -> Self {
        Self::TooManyRequests {
            retry_after_s: seconds(early),
        }
    }
}

/// How long to wait, in whole seconds.
pub(crate) fn seconds(early: TooEarly) -> i64 {
    early.wait_ms.div_euclid(1000) + 1
}

/// An address as it is throttled: of IPv6 the network, since one client has as many addresses as it likes.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => IpAddr::V4(four),
            None => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() & !0 << 64)),
        },
    }
}

const MAX_KEYS: usize = 10_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: ThrottleRule = ThrottleRule::DEVICE;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut throttle = Throttle::new(RULE);
        let mut now_ms = 0;
        let mut waits = Vec::new();
        for _ in 0..15 {
            if let Err(early) = throttle.begin(&1, now_ms) {
                assert_eq!(throttle.wait_ms(&1, now_ms), early.wait_ms);
                waits.push(early.wait_ms);
                now_ms += early.wait_ms;
                assert_eq!(throttle.begin(&1, now_ms), Ok(()));
            }
        }
        assert_eq!(
            waits,
            [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000]
        );
        assert_eq!(throttle.begin(&2, now_ms), Ok(()), "another key");
        throttle.succeeded(&1);
        assert_eq!(throttle.begin(&1, now_ms), Ok(()));
    }

    #[test]
    fn tries_at_the_same_time_count() {
        let mut throttle = Throttle::new(RULE);
        let allowed = (0..100).filter(|_| throttle.begin(&1, 5).is_ok()).count();
        assert_eq!(allowed as u32, RULE.free + 1);
    }

    #[test]
    fn a_success_takes_back_its_own_try_only() {
        let mut throttle = Throttle::new(RULE);
        for _ in 0..=RULE.free {
            throttle.begin(&1, 0).unwrap();
        }
        throttle.take_back(&1);
        throttle.begin(&1, 0).unwrap();
        assert!(throttle.begin(&1, 0).is_err());
    }

    #[test]
    fn many_keys_take_bounded_room_and_leave_the_worst_ones_in() {
        let mut throttle = Throttle::new(RULE);
        for _ in 0..=RULE.free {
            throttle.begin(&u64::MAX, 0).unwrap();
        }
        for key in 0..50_000 {
            throttle.begin(&key, 0).unwrap();
            assert!(throttle.tries.len() <= MAX_KEYS);
        }
        assert!(throttle.begin(&u64::MAX, 0).is_err());
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let network = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1:2"));
        assert_ne!(network("2001:db8:0:1::1"), network("2001:db8::1"));
        assert_eq!(network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_ne!(network("192.0.2.1"), network("192.0.2.2"));
    }

    proptest! {
        #[test]
        fn nobody_waits_longer_than_the_bound(gaps in prop::collection::vec(0_i64..200_000, 1..200)) {
            let mut throttle = Throttle::new(RULE);
            let mut now_ms = 0;
            for gap in gaps {
                now_ms += gap;
                if let Err(early) = throttle.begin(&1, now_ms) {
                    prop_assert!(early.wait_ms > 0 && early.wait_ms <= RULE.max_wait_ms);
                    prop_assert!(throttle.begin(&1, now_ms + early.wait_ms).is_ok());
                    now_ms += early.wait_ms;
                }
            }
        }
    }
}
