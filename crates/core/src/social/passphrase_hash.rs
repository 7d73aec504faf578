use std::fmt;

use serde::{Deserialize, Serialize};

/// A passphrase as it is stored: the Argon2id hash of the normalised text followed by the salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassphraseHash {
    /// The hash.
    pub hash: Vec<u8>,
    /// 16 random bytes of its own.
    pub salt: [u8; 16],
    /// What it costs.
    pub cost: HashCost,
    /// How the text was normalised ([`super::Passphrase::NORMALIZATION`]).
    pub normalization: i64,
}

/// The parameters of Argon2id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashCost {
    /// KiB of memory (m).
    pub memory_kib: u32,
    /// Passes over it (t).
    pub passes: u32,
    /// Lanes (p).
    pub lanes: u32,
}

impl HashCost {
    /// What OWASP recommends first: 19 MiB, two passes, one lane.
    pub const DEFAULT: HashCost = HashCost {
        memory_kib: 19_456,
        passes: 2,
        lanes: 1,
    };
}

impl fmt::Debug for PassphraseHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassphraseHash")
            .field("cost", &self.cost)
            .field("normalization", &self.normalization)
            .finish_non_exhaustive()
    }
}
