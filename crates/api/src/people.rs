//! What people's accounts, tokens and pages need beside the store.

use std::{net::IpAddr, sync::Arc, time::Duration};

use driftline_core::social::MailAddress;
use driftline_runtime::{now_ms, steady_ms};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::{
    auth::{
        CallerCache, LogInThrottle, NativeTokens, PassphraseHasher, Throttle, ThrottleRule,
        TokenKeys, TooEarly, network,
    },
    long_reads::LongReads,
    mastodon::{filters::cache::FilterCache, instance::peers::PeerCache},
    native::sync::open_streams::OpenStreams,
    transport::ApiResult,
};

/// What people's accounts, tokens and pages need beside the store. Clones share it.
#[derive(Clone)]
pub struct People {
    /// Callers that were read lately. Whoever freezes an account or revokes tokens in this process says so
    /// here.
    pub callers: CallerCache,
    /// The turns of readings that may take long.
    pub long_reads: LongReads,
    /// The filters of accounts that read lately.
    pub(crate) filters: FilterCache,
    /// The servers of which viewers were told lately.
    pub(crate) peers: PeerCache,
    /// The streams by which devices wait for changes.
    pub(crate) device_streams: OpenStreams,
    /// Gives and verifies native tokens.
    pub native: NativeTokens,
    /// Hashes passphrases.
    pub hasher: PassphraseHasher,
    /// Who may sign up.
    pub sign_up: SignUp,
    /// Takes mail to people.
    pub mail: Arc<dyn MailPort>,
    /// The time, Unix ms.
    clock: fn() -> i64,
    /// A clock that never steps, ms, by which tries are counted.
    steady_clock: fn() -> i64,
    /// How often log-ins are tried.
    pub(crate) log_ins: Arc<LogInThrottle>,
    /// How often addresses sign up or register apps, and mails are sent.
    throttles: Arc<Throttles>,
}

/// Who may sign up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignUp {
    /// How.
    pub mode: SignUpMode,
    /// Whether accounts are made without a mail that verifies the address: for tests alone.
    pub without_mail: bool,
}

/// How people may sign up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignUpMode {
    /// Not: the operator makes accounts.
    #[default]
    Closed,
    /// Somebody has to approve them.
    Approval,
    /// Whoever has a mail address.
    Open,
}

/// A mail to one person.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The address.
    pub to: String,
    /// What it is about.
    pub subject: String,
    /// Its text, which may hold a secret.
    pub text: String,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mail(…)")
    }
}

/// What takes mail to people. The server wires it.
pub trait MailPort: Send + Sync {
    /// Takes a mail. The request does not wait until it has arrived, and an error is only logged: else its
    /// answer would tell whether an address is known.
    fn send(&self, mail: Mail) -> BoxFuture<'static, ()>;
}

/// Drops every mail.
#[derive(Clone, Copy, Debug)]
pub struct NoMail;

impl MailPort for NoMail {
    fn send(&self, _: Mail) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }
}

/// How often addresses sign up or register apps, and mails are sent.
#[derive(Debug)]
struct Throttles {
    registrations: Mutex<Throttle<IpAddr>>,
    mail_senders: Mutex<Throttle<IpAddr>>,
    mails: Mutex<Throttle<String>>,
}

impl Default for Throttles {
    fn default() -> Self {
        Self {
            registrations: Mutex::new(Throttle::new(ThrottleRule::REGISTRATION)),
            mail_senders: Mutex::new(Throttle::new(ThrottleRule::MAIL_SENDER)),
            mails: Mutex::new(Throttle::new(ThrottleRule::MAIL)),
        }
    }
}

impl People {
    /// With these keys, for the store of that random name; sign-ups are closed.
    pub fn new(keys: TokenKeys, store_nonce: &str) -> Self {
        Self {
            callers: CallerCache::default(),
            long_reads: LongReads::default(),
            filters: FilterCache::default(),
            peers: PeerCache::default(),
            device_streams: OpenStreams::default(),
            native: NativeTokens::new(keys, store_nonce),
            hasher: PassphraseHasher::default(),
            sign_up: SignUp {
                mode: SignUpMode::Closed,
                without_mail: false,
            },
            mail: Arc::new(NoMail),
            clock: now_ms,
            steady_clock: steady_ms,
            log_ins: Arc::new(LogInThrottle::new(steady_ms)),
            throttles: Arc::default(),
        }
    }

    /// The time, Unix ms.
    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// A time that never steps, ms.
    pub(crate) fn steady_ms(&self) -> i64 {
        (self.steady_clock)()
    }

    /// Lets both clocks be that one, which a test sets. No log-in waits for its turn then.
    pub fn use_clock(&mut self, clock: fn() -> i64) {
        (self.clock, self.steady_clock) = (clock, clock);
        let turn_ms = ThrottleRule::ACCOUNT.max_wait_ms;
        let log_ins = LogInThrottle::with_waits(clock, turn_ms, Duration::ZERO);
        self.log_ins = Arc::new(log_ins);
    }

    /// Changes how long tries to log in wait for each other, for a test.
    pub fn use_log_in_turns(&mut self, turn_ms: i64, patience: Duration) {
        let log_ins = LogInThrottle::with_waits(self.steady_clock, turn_ms, patience);
        self.log_ins = Arc::new(log_ins);
    }

    /// Counts what any address may do, but not as often as it likes.
    pub(crate) fn count_registration(&self, address: IpAddr) -> ApiResult<()> {
        self.count(&self.throttles.registrations, address)
    }

    /// Takes one back, which did no harm.
    pub(crate) fn take_back_registration(&self, address: IpAddr) {
        let mut registrations = self.throttles.registrations.lock();
        registrations.take_back(&network(address));
    }

    /// Counts a request that has a mail sent, by where it comes from.
    pub(crate) fn count_mail_sender(&self, address: IpAddr) -> ApiResult<()> {
        self.count(&self.throttles.mail_senders, address)
    }

    fn count(&self, throttle: &Mutex<Throttle<IpAddr>>, address: IpAddr) -> ApiResult<()> {
        if self.sign_up.without_mail {
            return Ok(());
        }
        let counted = throttle.lock().begin(&network(address), self.steady_ms());
        Ok(counted?)
    }

    /// Counts a mail of any kind to an address, which nobody may fill with ours.
    pub(crate) fn count_mail(&self, to: &MailAddress) -> Result<(), TooEarly> {
        let mut mails = self.throttles.mails.lock();
        mails.begin(&to.key(), self.steady_ms())
    }
}

impl std::fmt::Debug for People {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("People")
            .field("sign_up", &self.sign_up)
            .finish_non_exhaustive()
    }
}
