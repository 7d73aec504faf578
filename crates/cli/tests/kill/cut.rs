//! A server of a distributed database whose address nothing reaches and answers for a while.

use std::process::Command;

/// An address of this machine's loopback network that one of the servers listens at.
pub(crate) struct Address(String);

impl Address {
    /// What `DRIFTLINE_CUT` names.
    pub(crate) fn of_environment() -> Option<Self> {
        std::env::var("DRIFTLINE_CUT").ok().map(Self)
    }

    /// Loses all that is sent to it and by it until the answer is dropped, without a word to either side
    /// of what is connected; who connects newly is refused.
    pub(crate) fn cut_off(&self) -> Cut<'_> {
        self.route("add");
        Cut(self)
    }

    fn route(&self, action: &str) {
        let only_this = format!("{}/32", self.0);
        let routed = Command::new("ip")
            .args(["route", action, "blackhole", &only_this, "table", "local"])
            .status();
        assert!(routed.unwrap().success(), "{only_this}: {action} failed");
    }
}

/// An address that is cut off.
pub(crate) struct Cut<'a>(&'a Address);

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        self.0.route("del");
    }
}
