//! Requests about sources.

use driftline_core::{
    api::Api,
    names::audience::Audience,
    social::AccountName,
    timeline::{LastError, Settings},
};
use driftline_mirror::{SourceFault, SourceState, SourceWait, Verdict};
use driftline_store::{SourceId, source::TokenLocation};
use serde::{Deserialize, Serialize};

/// Add a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddSource {
    /// The account whose it is to be; the operator's without one.
    pub owner: Option<AccountName>,
    /// Its name; made from the address and the timeline if not given.
    pub name: Option<String>,
    /// The server's address as the operator typed it.
    pub address: String,
    /// The API that it speaks.
    pub api: Api,
    /// The timeline as the operator typed it.
    pub timeline: String,
    /// The location of the token.
    pub token: Option<TokenLocation>,
    /// The source's settings.
    pub settings: Settings,
    /// Whether its server may be in a private network.
    pub allow_private: bool,
    /// Who else than its owner may read it; `None` if a token is to decide: what is read with one may be
    /// meant for the token's owner alone.
    pub audience: Option<Audience>,
    /// Whether to request its timeline once before, so that a source that cannot be read is refused.
    pub check: bool,
}

/// A source was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedSource {
    /// Its name.
    pub name: String,
    /// Its ID.
    pub id: SourceId,
    /// Why its timeline was not requested, although it was to be.
    pub warning: Option<String>,
    /// Who else than its owner may read it.
    pub audience: Audience,
    /// Whether a token reads it.
    pub has_token: bool,
}

/// List the sources with their states.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListSources;

/// A source with its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRow {
    /// Its ID.
    pub id: SourceId,
    /// Its name.
    pub name: String,
    /// The account whose it is; the operator's without one.
    pub owner: Option<String>,
    /// The upstream's address.
    pub upstream: String,
    /// The timeline there.
    pub timeline: String,
    /// The API that the upstream speaks.
    pub kind: Api,
    /// Whether its server may be in a private network.
    pub allow_private: bool,
    /// Who else than its owner may read it.
    pub audience: Audience,
    /// Whether its posts are kept fresh.
    pub refreshing: bool,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether a first page is stored, so that readers are shown the source.
    pub readable: bool,
    /// Its last USN.
    pub update_count: i64,
    /// The configured time between two polls, ms.
    pub every_ms: i64,
    /// Its state.
    pub state: SourceState,
    /// The state in words.
    pub state_text: String,
    /// Items of its pages that no post could be read from.
    pub unreadable: u64,
    /// Whether it is complete up to its last poll, or what is in the way first.
    pub verdict: Verdict,
    /// Its fault while it fails.
    pub fault: Option<SourceFault>,
    /// The wait that its server has asked for, if it is not over.
    pub wait: Option<SourceWait>,
    /// The current error of its requests, or the last one.
    pub last_error: Option<LastError>,
}

/// Stop reading a source, or read it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PauseSource {
    /// Its name.
    pub name: String,
    /// Whether it is to be paused; else it is resumed.
    pub paused: bool,
}

/// A source is paused, or is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PausedSource {
    /// Its name.
    pub name: String,
    /// Whether it is paused now.
    pub paused: bool,
    /// Whether it was otherwise before.
    pub changed: bool,
}

/// Count what goes with a source if it is removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlanRemoval {
    /// Its name.
    pub name: String,
}

/// What goes with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceContents {
    /// The number of its entries.
    pub entries: u64,
    /// The number of their posts that no other source has.
    pub posts: u64,
    /// The number of its gaps: ranges that are not proven complete.
    pub gaps: u64,
    /// The number of its posts that are known by their IDs alone.
    pub lookups: u64,
    /// The number of its items that no post could be read from.
    pub unreadable: u64,
}

/// Remove a source.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RemoveSource {
    /// Its name.
    pub name: String,
    /// Whether the posts that no other source has stay.
    pub keep_posts: bool,
}

/// A source was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedSource {
    /// Its name.
    pub name: String,
    /// Whether the posts that no other source has stay.
    pub keep_posts: bool,
    /// What went with it; the posts, unless they stay.
    #[serde(flatten)]
    pub contents: SourceContents,
}

/// Report on a source's completeness.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VerifySource {
    /// Its name.
    pub name: String,
}

/// List the items of a source that no post could be read from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListUnreadable {
    /// The source's name.
    pub name: String,
}

/// An item of a source that no post could be read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadableItem {
    /// Its ID in the timeline; `None` if it shows none.
    pub id: Option<String>,
    /// The ID of the item listed before it, if it shows none itself.
    pub above: Option<String>,
    /// The ID of the item listed after it, likewise.
    pub below: Option<String>,
    /// Why it cannot be read.
    pub reason: String,
    /// The version of the program that could not read it.
    pub program: String,
    /// When it was first requested.
    pub first_seen_at_ms: i64,
    /// When it was last requested.
    pub last_seen_at_ms: i64,
    /// How many bytes of it are kept.
    pub size: u64,
    /// The item as it came last; what is not UTF-8 in it is replaced. Where a source has many bytes
    /// of such items, only the beginning.
    pub text: String,
    /// The same as bytes, hexadecimal, if they are not UTF-8.
    pub hex: Option<String>,
}

/// Fill an open gap.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FillGap {
    /// The source's name.
    pub name: String,
    /// The gap's lowest ID, as a report shows it.
    pub gap: String,
}

/// An open gap will be filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestedFill {
    /// The source's name.
    pub name: String,
    /// The gap's lowest ID.
    pub gap: String,
    /// Always true.
    pub wanted: bool,
}

/// Show what a source's operator decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShowSettings {
    /// The source's name.
    pub name: String,
}

/// Change what a source's operator decided; who reads it goes on with that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSource {
    /// The source's name.
    pub name: String,
    /// Its new name; `None` leaves it as it is.
    pub rename: Option<String>,
    /// All of its settings.
    pub settings: Settings,
    /// The location of another token; `None` leaves it as it is.
    pub token: Option<TokenLocation>,
    /// Whether its server may be in a private network; `None` leaves it as it is.
    pub allow_private: Option<bool>,
    /// Who else than its owner may read it; `None` leaves it as it is.
    pub audience: Option<Audience>,
    /// Whether its posts are kept fresh; `None` leaves it as it is.
    pub refreshing: Option<bool>,
    /// Whether to request the timeline once before another token is kept, so that one that cannot
    /// be used is refused.
    pub check: bool,
}

/// A source's settings were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSource {
    /// The source's name now.
    pub name: String,
    /// Whether anything is different.
    pub changed: bool,
    /// Why the new token was not tried, although it was to be.
    pub warning: Option<String>,
    /// Whether the source has a token now, and the world may read its public posts.
    pub shows_the_world: bool,
}
