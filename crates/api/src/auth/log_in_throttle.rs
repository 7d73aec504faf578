//! How often a log-in may be tried, by its network address, the name that it tries, and the browser.
//!
//! After some free tries a name has one try every 10 s, for which all of its tries wait in line
//! ([`WaitingLines`]). A browser in which the account has logged in before has a count of its own, which
//! nobody else can use up.

use std::{net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot::{self, Sender},
    time::{sleep, timeout},
};

use super::{Joined, KnownDevice, Throttle, ThrottleRule, TooEarly, WaitingLines};

/// How often log-ins are tried.
#[derive(Debug)]
pub(crate) struct LogInThrottle {
    addresses: Mutex<Throttle<IpAddr>>,
    /// By what was typed, a name or a mail address: one count for both would tell whose address it is.
    accounts: Mutex<Throttle<String>>,
    devices: Mutex<Throttle<String>>,
    lines: Mutex<WaitingLines<Sender<()>>>,
    /// A clock that never steps, ms.
    clock: fn() -> i64,
    /// How long tries of a name wait for each other, ms.
    turn_ms: i64,
    /// How long a try waits in line.
    patience: Duration,
}

impl LogInThrottle {
    /// By that clock.
    pub(crate) fn new(clock: fn() -> i64) -> Self {
        Self::with_waits(clock, ThrottleRule::ACCOUNT.max_wait_ms, PATIENCE)
    }

    /// The same with other waits: between tries of a name, and in line.
    pub(crate) fn with_waits(clock: fn() -> i64, turn_ms: i64, patience: Duration) -> Self {
        let account = ThrottleRule {
            first_ms: turn_ms,
            max_wait_ms: turn_ms,
            ..ThrottleRule::ACCOUNT
        };
        Self {
            addresses: Mutex::new(Throttle::new(ThrottleRule::ADDRESS)),
            accounts: Mutex::new(Throttle::new(account)),
            devices: Mutex::new(Throttle::new(ThrottleRule::DEVICE)),
            lines: Mutex::default(),
            clock,
            turn_ms,
            patience,
        }
    }

    /// Counts a try, once it is its turn. `device` is a browser of that account.
    ///
    /// # Errors
    /// [`TooEarly`] if its address or its device has to wait, or its turn has not come in time.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        account: &str,
        address: IpAddr,
        device: Option<&KnownDevice>,
    ) -> Result<(), TooEarly> {
        let now_ms = (self.clock)();
        if let Some(device) = device {
            return self.devices.lock().begin(&device.id, now_ms);
        }
        // An address that has to wait must not make the account wait.
        self.addresses.lock().begin(&address, now_ms)?;
        let turn = self.turn(account, address).await;
        if turn.is_err() {
            self.addresses.lock().take_back(&address);
        }
        turn
    }

    /// Takes back what was counted. The failures of an address stay, or an attacker with an account would be
    /// free of them.
    pub(crate) fn succeeded(&self, account: &str, address: IpAddr, device: Option<&KnownDevice>) {
        if let Some(device) = device {
            return self.devices.lock().succeeded(&device.id);
        }
        self.accounts.lock().succeeded(&account.to_owned());
        self.addresses.lock().take_back(&address);
    }

    async fn turn(self: &Arc<Self>, account: &str, address: IpAddr) -> Result<(), TooEarly> {
        let early = TooEarly {
            wait_ms: self.turn_ms,
        };
        let (sender, receiver) = oneshot::channel();
        {
            let mut lines = self.lines.lock();
            let key = account.to_owned();
            // Nobody goes before those who wait.
            if lines.has_ended(account, Sender::is_closed)
                && self.accounts.lock().begin(&key, (self.clock)()).is_ok()
            {
                return Ok(());
            }
            let joined = lines.join(account, (address, sender), random(), Sender::is_closed);
            match joined {
                Joined::First => drop(tokio::spawn(Arc::clone(self).draw_turns(key))),
                Joined::Behind => {}
                Joined::Twice => return Err(early),
            }
        }
        match timeout(self.patience, receiver).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(early),
        }
    }

    /// Gives turns until nobody waits.
    async fn draw_turns(self: Arc<Self>, account: String) {
        loop {
            let wait_ms = self.accounts.lock().wait_ms(&account, (self.clock)());
            sleep(Duration::from_millis(wait_ms.unsigned_abs())).await;
            let mut lines = self.lines.lock();
            if lines.has_ended(&account, Sender::is_closed) {
                return;
            }
            let mut accounts = self.accounts.lock();
            if accounts.begin(&account, (self.clock)()).is_err() {
                continue;
            }
            if let Some(turn) = lines.draw(&account, random(), Sender::is_closed) {
                // Whoever has left in this moment loses the turn.
                let _ = turn.send(());
            }
        }
    }
}

/// A random number; the system's fails on no machine that serves.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u64::from_ne_bytes(bytes),
        Err(_) => 0,
    }
}

/// Three turns. Proxies wait for an answer for a minute at least.
const PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use driftline_store::LocalAccountId;
    use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
    use tokio::task::JoinSet;

    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    fn device(id: &str) -> KnownDevice {
        KnownDevice {
            account: LocalAccountId::new(1),
            id: id.to_owned(),
        }
    }

    /// A clock beside Tokio's, which is paused: it is where the test has come to.
    macro_rules! clock {
        () => {{
            static NOW_MS: AtomicI64 = AtomicI64::new(1_000_000);
            tokio::spawn(async {
                loop {
                    sleep(Duration::from_millis(100)).await;
                    NOW_MS.fetch_add(100, SeqCst);
                }
            });
            let clock: fn() -> i64 = || NOW_MS.load(SeqCst);
            clock
        }};
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_has_one_try_every_ten_seconds_whatever_comes_in() {
        let clock = clock!();
        let throttle = Arc::new(LogInThrottle::new(clock));
        let begun_ms = clock();
        let mut attackers = JoinSet::new();
        for number in 0..50 {
            let throttle = Arc::clone(&throttle);
            attackers.spawn(async move {
                // Each has some hundred addresses, and goes on to the next one.
                for turn in 0..20_u32 {
                    let from = address(number * 1_000 + turn);
                    if throttle.begin("ann", from, None).await.is_ok() {
                        return clock();
                    }
                }
                i64::MAX
            });
        }
        let mut tried: Vec<i64> = attackers.join_all().await;
        tried.sort_unstable();
        let (free, waited) = tried.split_at(6);
        assert!(free.iter().all(|at_ms| *at_ms == begun_ms), "{tried:?}");
        let mut before = begun_ms;
        for at_ms in waited.iter().filter(|at_ms| **at_ms < i64::MAX) {
            assert!(at_ms - before >= 10_000, "{tried:?}");
            before = *at_ms;
        }
        assert!(waited[40] < i64::MAX, "turns go on: {tried:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_owners_turn_comes_in_the_midst_of_an_attack() {
        let throttle = Arc::new(LogInThrottle::new(clock!()));
        let attackers: Vec<_> = (0..10_u32)
            .map(|number| {
                let throttle = Arc::clone(&throttle);
                tokio::spawn(async move {
                    for turn in 0.. {
                        let from = address(1_000 + number * 100_000 + turn);
                        let _ = throttle.begin("ann", from, None).await;
                    }
                })
            })
            .collect();
        tokio::task::yield_now().await;
        let mut tries = 1;
        while throttle.begin("ann", address(1), None).await.is_err() {
            tries += 1;
            // 600 draws of one in eleven: to lose all of them is as likely as 1 in 10^24.
            assert!(tries < 200, "the owner's turn does not come");
        }
        attackers.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test(start_paused = true)]
    async fn a_known_browser_has_a_count_of_its_own() {
        let throttle = Arc::new(LogInThrottle::with_waits(clock!(), 10_000, Duration::ZERO));
        for number in 0..20 {
            let _ = throttle.begin("ann", address(number), None).await;
        }
        let (phone, laptop) = (device("phone"), device("laptop"));
        let owners = address(1_000);
        let unknown = throttle.begin("ann", owners, None).await;
        assert_eq!(unknown, Err(TooEarly { wait_ms: 10_000 }));
        for turn in 0..=ThrottleRule::DEVICE.free {
            let known = throttle.begin("ann", owners, Some(&phone)).await;
            assert_eq!(known, Ok(()), "{turn}");
        }
        assert!(throttle.begin("ann", owners, Some(&phone)).await.is_err());
        let other = throttle.begin("ann", owners, Some(&laptop)).await;
        assert_eq!(other, Ok(()), "another browser");
        throttle.succeeded("ann", owners, Some(&laptop));
        let unknown = throttle.begin("ann", owners, None).await;
        assert!(unknown.is_err(), "others wait on");
        throttle.succeeded("ann", owners, Some(&phone));
        let known = throttle.begin("ann", owners, Some(&phone)).await;
        assert_eq!(known, Ok(()));
    }
}
