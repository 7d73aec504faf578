use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

/// The permissions of a user for the server. Each role includes those before it.
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
    /// Uses the server.
    #[default]
    Member,
    /// Freezes and silences accounts, and approves new ones.
    Moderator,
    /// Assigns roles, and performs the account actions of the operator's commands.
    Admin,
}

impl Role {
    /// Its name in commands and in the store.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
