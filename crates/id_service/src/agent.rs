//! The user agents of clients, and counters of their IDs.

use std::collections::HashMap;

use driftline_runtime::metrics::ID_ISSUED;
use metrics::Counter;
use parking_lot::RwLock;

/// Whether a user agent is valid by the rule of the service of 2010: a letter, then letters, digits
/// and hyphens, all ASCII.
pub fn is_agent(agent: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    agent.first().is_some_and(u8::is_ascii_alphabetic) && agent.iter().all(is_allowed)
}

/// Counts IDs by user agent. The first [`MAX_AGENTS`] are counted by name, all others together:
/// clients choose their names, and memory for a name is never freed.
#[derive(Debug, Default)]
pub(super) struct Agents {
    counters: RwLock<HashMap<Box<[u8]>, Counter>>,
}

impl Agents {
    /// The counter of a valid agent: see [`is_agent`].
    pub(super) fn counter(&self, agent: &[u8]) -> Counter {
        if let Some(counter) = self.counters.read().get(agent) {
            return counter.clone();
        }
        let mut counters = self.counters.write();
        let name = if counters.len() < MAX_AGENTS && agent.len() <= MAX_NAME {
            agent
        } else {
            OTHERS
        };
        counters
            .entry(name.into())
            .or_insert_with(|| ID_ISSUED.with([String::from_utf8_lossy(name).into_owned()]))
            .clone()
    }
}

/// The most user agents that are counted by name.
pub const MAX_AGENTS: usize = 100;
const MAX_NAME: usize = 64;
/// Not a valid agent, since it has an underscore.
const OTHERS: &[u8] = b"_others";
