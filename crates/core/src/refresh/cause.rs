use serde::{Deserialize, Serialize};

/// The reason for a post's due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The age table.
    Age,
    /// The expected change is worth a refresh.
    #[serde(rename = "worth")]
    Value,
    /// The post is young, and has been refreshed rarely or never.
    Probe,
    /// The longest wait of any post.
    Bound,
}
