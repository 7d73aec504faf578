//! Requests about credentials.

use driftline_core::{answer::FailureKind, api::Api, quota::Unit};
use driftline_store::{CredentialId, source::TokenLocation};
use serde::{Deserialize, Serialize};

/// Add a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddCredential {
    /// Its name; made from the address if not given.
    pub name: Option<String>,
    /// The server's address as the operator typed it.
    pub address: String,
    /// The API that it speaks.
    pub api: Api,
    /// The location of its token; without one only public posts are requested.
    pub token: Option<TokenLocation>,
    /// The most posts that it may read in a calendar month.
    pub monthly_posts: Option<u32>,
}

/// A credential was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedCredential {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub id: CredentialId,
    /// Why its token cannot be read yet.
    pub warning: Option<String>,
}

/// List the credentials with their remaining quotas.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListCredentials;

/// A credential with its remaining quotas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialRow {
    /// Its name.
    pub name: String,
    /// The origin of its server.
    pub instance: Option<String>,
    /// The API that the server speaks.
    pub api: Option<Api>,
    /// The location of its token, in words.
    pub token: String,
    /// The most posts that it may read in a calendar month.
    pub monthly_posts: Option<i64>,
    /// `unreadable`, `resting`, `held back` or `in use`.
    pub state: String,
    /// Why it is not in use.
    pub reason: Option<String>,
    /// Until when it is not in use, if that is known.
    pub until_ms: Option<i64>,
    /// The limits that the upstream reported.
    pub limits: Vec<QuotaLimit>,
}

/// A limit of a credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaLimit {
    /// The requests that share it.
    pub scope: String,
    /// What it counts.
    pub unit: Unit,
    /// How much a whole window holds.
    pub limit: u32,
    /// How much is left.
    pub remaining: u32,
    /// When the window ends.
    pub reset_at_ms: i64,
    /// How much of this window others used.
    pub used_by_others: u32,
}

/// Test a credential: ask its upstream for the account.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TestCredential {
    /// Its name.
    pub name: String,
}

/// The result of a credential's test. What does not apply is left out of its JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedCredential {
    /// Its name.
    pub name: String,
    /// Whether the upstream accepts it.
    pub good: bool,
    /// Its account in words, if it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The kind of the failure, if it is not good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureKind>,
    /// Why it is not good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Remove a credential.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveCredential {
    /// Its name.
    pub name: String,
}

/// Forget which key stored tokens are sealed with, as it is lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ForgetKey;

/// The key is forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgottenKey {
    /// Whether any was known.
    pub was_known: bool,
}

/// A credential was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedCredential {
    /// Its name.
    pub name: String,
}
