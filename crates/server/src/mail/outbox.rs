use std::{error::Error as _, fmt, io, iter::successors, time::Duration};

use driftline_runtime::{FaultLog, Weight, now_ms, show_ms};
use lettre::{
    AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
    transport::smtp::Error as SmtpError,
};
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::sleep};

/// Takes mails to an SMTP server, again and again if it may take them later.
#[derive(Debug)]
pub(super) struct Outbox {
    server: AsyncSmtpTransport<Tokio1Executor>,
    waiting: Semaphore,
    faults: Mutex<FaultLog>,
    /// Of mails that the server refuses for good: one may be to an address that is not there.
    refusals: Mutex<FaultLog>,
}

impl Outbox {
    pub(super) fn new(server: AsyncSmtpTransport<Tokio1Executor>) -> Self {
        Self {
            server,
            waiting: Semaphore::new(MAX_WAITING),
            faults: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Connects and logs in, and logs what is wrong.
    pub(super) async fn check(&self) {
        match self.server.test_connection().await {
            Ok(_) => self.works(),
            Err(error) => self.failed(&Fault::of(&error)),
        }
    }

    /// Ends when the mail is sent, is refused, or has waited too long.
    pub(super) async fn deliver(&self, mail: Message) {
        // Mails that wait are kept in memory.
        let Ok(_place) = self.waiting.try_acquire() else {
            return tracing::debug!("a mail is not sent: too many wait already");
        };
        for wait in RETRIES.map(Some).into_iter().chain([None]) {
            let fault = match self.server.send(mail.clone()).await {
                Ok(_) => {
                    self.refusals.lock().succeeded(now_ms());
                    return self.works();
                }
                Err(error) => Fault::of(&error),
            };
            if let Fault::Refused(status) = fault {
                self.works();
                if self.refusals.lock().failed(Weight::Passing, now_ms()) {
                    tracing::warn!(
                        "the SMTP server refuses mails ({status}); if it refuses all of them, check mail.from"
                    );
                }
                return;
            }
            self.failed(&fault);
            match wait.filter(|_| fault.may_pass()) {
                Some(wait) => sleep(wait).await,
                None => return,
            }
        }
    }

    fn failed(&self, fault: &Fault) {
        if self.faults.lock().failed(Weight::Lasting, now_ms()) {
            tracing::warn!("no mail is sent: {fault}");
        }
    }

    fn works(&self) {
        if let Some(lasted_ms) = self.faults.lock().succeeded(now_ms()) {
            tracing::warn!("mail is sent again, after {}", show_ms(lasted_ms));
        }
    }
}

/// Why a mail is not sent. It holds nothing that a server said, which may quote addresses.
#[derive(Debug)]
enum Fault {
    /// The server takes no log-in.
    LogIn(u16),
    /// The server refuses this mail, for good.
    Refused(u16),
    /// The server may take it later.
    Later(u16),
    /// There is no secure connection.
    Tls,
    /// It offers nothing that we need.
    Unfit,
    /// There is no connection.
    Away,
}

impl Fault {
    fn of(error: &SmtpError) -> Self {
        match error.status().map(u16::from) {
            Some(status @ (454 | 530 | 534 | 535 | 538)) => Self::LogIn(status),
            Some(status) if error.is_permanent() => Self::Refused(status),
            Some(status) => Self::Later(status),
            None if error.is_tls() || is_of_tls(error) => Self::Tls,
            None if error.is_client() => Self::Unfit,
            None => Self::Away,
        }
    }

    /// Whether the same mail may be taken later, with the same configuration.
    fn may_pass(&self) -> bool {
        match self {
            Self::LogIn(status) => *status == 454,
            Self::Refused(_) | Self::Unfit => false,
            Self::Later(_) | Self::Tls | Self::Away => true,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogIn(status) => write!(
                f,
                "the SMTP server refuses the log-in ({status}); check the user in mail.smtp, and its passphrase"
            ),
            Self::Refused(status) => write!(f, "the SMTP server refuses it ({status})"),
            Self::Later(status) => {
                write!(f, "the SMTP server takes none at the moment ({status})")
            }
            Self::Tls => f.write_str(
                "no secure connection to the SMTP server; its certificate must be valid for the host in mail.smtp",
            ),
            Self::Unfit => f.write_str(
                "the SMTP server offers neither STARTTLS nor a log-in that mail.smtp needs; check its scheme and port",
            ),
            Self::Away => f.write_str(
                "the SMTP server cannot be reached; check mail.smtp, and whether the server runs",
            ),
        }
    }
}

/// Whether a connection failed in what TLS said, which its errors tell of in that way.
fn is_of_tls(error: &SmtpError) -> bool {
    let mut causes = successors(error.source(), |&cause| cause.source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::InvalidData)
    })
}

/// How long a mail waits after each try: some hours in all.
const RETRIES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(1_800),
    Duration::from_secs(3_600),
    Duration::from_secs(7_200),
];
/// Of some kilobytes each.
const MAX_WAITING: usize = 1_000;
