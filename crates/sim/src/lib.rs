//! A simulated upstream that speaks Mastodon's API under a seed and knows the
//! truth about every post it ever showed.
//!
//! Everything outside [`http`] is pure: time is an argument, randomness comes
//! from the seed. [`World`] publishes and answers, [`Faults`] spoils answers,
//! [`Upstream`] is both for virtual time, and [`http::SimServer`] puts the
//! same two behind a loopback socket.

pub mod baseline;
mod config;
mod faults;
mod faults_config;
mod growth;
pub mod http;
mod lateness;
mod layout;
mod presets;
mod publisher;
pub mod quirks;
mod quota;
mod record;
pub mod refresh_policies;
mod rng;
pub mod seeds;
mod span;
mod status;
mod streams_config;
mod throttles;
mod truth;
mod upstream;
mod wire;
pub mod workload;
mod world;

pub use config::{BatchAbility, Batches, Bursts, DatedTomorrow, Lane, WorldConfig};
pub use faults::{Decision, Fault, Faults};
pub use faults_config::{
    FaultKind, FaultsConfig, Hiding, Mishap, Outage, PoisonAnswer, Revocation,
};
pub use growth::Growth;
pub use lateness::Lateness;
pub use layout::IdLayout;
pub use quota::{
    Counted, Endpoint, PostsCap, QUARTER_HOUR_MS, QuotaCut, RequestKind, ThrottleRule, Windows,
};
pub use rng::hash_text as content_hash;
pub use span::SpanMs;
pub use status::{SimAuthor, Status};
pub use streams_config::StreamsConfig;
pub use truth::{TruePost, Truth};
pub use upstream::{Traffic, Upstream};
pub use world::{Found, Happening, World, WorldEvent};
