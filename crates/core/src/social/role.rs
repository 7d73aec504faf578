use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// What somebody may do for the server, each role what those before it may, too.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Role {
    /// Uses it.
    #[default]
    Member,
    /// Freezes and silences accounts, and approves new ones.
    Moderator,
    /// Gives roles, and does what the operator's commands do for accounts.
    Admin,
}

impl Role {
    /// Its name in commands and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
