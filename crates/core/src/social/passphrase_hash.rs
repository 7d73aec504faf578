use std::fmt;

use serde::{Deserialize, Serialize};

/// A passphrase in stored form: the Argon2id hash of the normalised text and the salt.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassphraseHash {
    /// The hash.
    pub hash: Vec<u8>,
    /// Its own 16 random bytes.
    pub salt: [u8; 16],
    /// The cost parameters.
    pub cost: HashCost,
    /// The version of the normalisation ([`super::Passphrase::NORMALIZATION`]).
    pub normalization: i64,
}

/// The parameters of Argon2id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HashCost {
    /// The memory in KiB (m).
    pub memory_kib: u32,
    /// The number of passes over the memory (t).
    pub passes: u32,
    /// The number of lanes (p).
    pub lanes: u32,
}

impl HashCost {
    /// The first recommendation of OWASP: 19 MiB, two passes, one lane.
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
