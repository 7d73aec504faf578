//! `[defaults]` of the configuration, and the flags of a source above it.

use clap::Args;
use driftline_core::timeline::{Backfill, Overlap, Settings, Streaming};
use serde::{Deserialize, Deserializer};

use crate::{
    duration::{HumanMs, ms_or},
    parse,
};

/// The settings of a source, as far as they are given: in `[defaults]`, or as flags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SourceSettings {
    /// The time between two polls [default: 3s].
    #[arg(long, value_name = "DURATION")]
    every: Option<HumanMs>,
    /// How far below the newest post a poll begins: adaptive or a duration
    /// [default: adaptive].
    #[arg(long, value_parser = parse::overlap)]
    #[serde(deserialize_with = "overlap")]
    overlap: Option<Overlap>,
    /// Posts fetched for each post stored that polls and later looks may take together, once it
    /// is proven that less than every look is enough [default: 2.5].
    #[arg(long, value_name = "NUMBER", value_parser = parse::fetches)]
    #[serde(deserialize_with = "fetches")]
    fetches: Option<u32>,
    /// The history to begin with: none, all, a number of posts or a duration
    /// [default: 1d].
    #[arg(long, value_parser = parse::backfill)]
    #[serde(deserialize_with = "backfill")]
    backfill: Option<Backfill>,
    /// Fill gaps only when asked to.
    #[arg(long = "no-fill", num_args = 0, default_missing_value = "false")]
    fill_gaps: Option<bool>,
    /// How the server's stream is followed: auto, sse, websocket or off
    /// [default: auto].
    #[arg(long, value_parser = parse::streaming)]
    #[serde(deserialize_with = "stream")]
    stream: Option<Streaming>,
    /// How far the time between two polls may grow while a stream shows what they would
    /// [default: 15s].
    #[arg(long, value_name = "DURATION")]
    streamed_every: Option<HumanMs>,
    /// The second look's least age.
    #[arg(long, value_name = "DURATION", hide = true)]
    second_look: Option<HumanMs>,
    /// The least time between two requests.
    #[arg(long, value_name = "DURATION", hide = true)]
    spacing: Option<HumanMs>,
}

impl SourceSettings {
    /// These settings; `others` where none is given.
    pub fn or(&self, others: Settings) -> Settings {
        Settings {
            every_ms: ms_or(self.every, others.every_ms),
            streamed_every_ms: ms_or(self.streamed_every, others.streamed_every_ms),
            spacing_ms: ms_or(self.spacing, others.spacing_ms),
            overlap: self.overlap.unwrap_or(others.overlap),
            fetches_percent: self.fetches.unwrap_or(others.fetches_percent),
            backfill: self.backfill.unwrap_or(others.backfill),
            second_look_ms: ms_or(self.second_look, others.second_look_ms),
            fill_gaps: self.fill_gaps.unwrap_or(others.fill_gaps),
            stream: self.stream.unwrap_or(others.stream),
            ..others
        }
    }
}

fn overlap<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Overlap>, D::Error> {
    parse::written(from, parse::overlap).map(Some)
}

fn fetches<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    parse::written(from, parse::fetches).map(Some)
}

fn stream<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Streaming>, D::Error> {
    parse::written(from, parse::streaming).map(Some)
}

fn backfill<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Backfill>, D::Error> {
    parse::written(from, parse::backfill).map(Some)
}
