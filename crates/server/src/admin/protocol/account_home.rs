use driftline_core::social::AccountName;
use serde::{Deserialize, Serialize};

/// Change which sources an account has in its home timeline, or only list them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ChangeAccountHome {
    /// Its name.
    pub name: AccountName,
    /// Names of sources to take in.
    pub add: Vec<String>,
    /// Names of sources to leave out.
    pub remove: Vec<String>,
}

/// The sources that an account has in its home timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountHome {
    /// Its name.
    pub name: AccountName,
    /// The sources that are not private to an account, by name.
    pub sources: Vec<HomeSource>,
    /// The number of those that are private to an account.
    #[serde(default)]
    pub private_sources: u64,
}

/// A source in a home timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeSource {
    /// Its name.
    pub name: String,
    /// Whether the account may read it; otherwise its home timeline has nothing of it.
    pub is_readable: bool,
}
