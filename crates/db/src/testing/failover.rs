//! A PostgreSQL server whose standby takes over without the last changes.

use std::thread;
use std::time::Duration;

use super::cluster::Cluster;
use super::link::Link;
use super::nodes;
use super::outage::wait_for;

/// A PostgreSQL server and a standby that streams its changes, behind one address. Once the standby is cut off, it lacks all
/// further changes, and it takes over without them.
#[derive(Debug)]
pub struct Failover {
    /// The way to the server that clients use.
    clients: Link,
    /// The way to the primary that the standby streams over. Replay that is merely paused would go on before the promotion.
    stream: Link,
    primary: Cluster,
    standby: Cluster,
}

impl Failover {
    /// Starts both servers.
    ///
    /// # Panics
    /// If PostgreSQL cannot be started. The message has the reason.
    pub fn start() -> Failover {
        // Its files are removed with the server's folder, although it is killed.
        let primary = Cluster::start_with(&["dynamic_shared_memory_type=mmap"])
            .unwrap_or_else(|error| panic!("{error}"));
        let link = || Link::delayed(primary.url(), Duration::ZERO).expect("a link");
        let (clients, stream) = (link(), link());
        let standby =
            Cluster::start_standby(stream.url()).unwrap_or_else(|error| panic!("{error}"));
        Failover {
            clients,
            stream,
            primary,
            standby,
        }
    }

    /// The URL of the server that takes changes.
    pub fn url(&self) -> &str {
        self.clients.url()
    }

    /// Cuts the standby off once it has all changes so far.
    ///
    /// # Panics
    /// If the standby does not get them.
    pub fn cut_off(&self) {
        let end = ask(self.primary.url(), "select pg_current_wal_lsn()::text");
        let has_all = format!("select (pg_last_wal_replay_lsn() >= '{end}'::pg_lsn)::text");
        wait_for("the standby has all changes", || {
            ask(self.standby.url(), &has_all) == "true"
        });
        self.stream.fall_silent();
    }

    /// Kills the primary and promotes the standby, which has the primary's address from then on.
    ///
    /// # Panics
    /// If the standby is not promoted within a minute.
    pub fn take_over(&mut self) {
        self.primary.kill().expect("a server that runs");
        let standby = self.standby.url();
        assert_eq!(ask(standby, "select pg_promote()::text"), "true");
        self.clients.lead_to(standby).expect("an address");
    }
}

/// On a plain thread, because the caller's thread may already drive a runtime.
fn ask(url: &str, query: &str) -> String {
    let asked = thread::scope(|scope| scope.spawn(|| nodes::ask(url, query)).join());
    asked.expect("no panic").expect("an answer")
}
