//! `[defaults]` of the configuration, and the flags of a source above it.

use clap::Args;
use driftline_core::timeline::{Backfill, Overlap, Settings, Streaming};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::{
    duration::{HumanMs, ms_or, show_ms},
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

    /// The options that were given and differ from these settings, as they are typed.
    pub fn that_differ_from(&self, others: &Settings) -> Vec<String> {
        let mut options = Vec::new();
        let mut add = |option: &str, differs: bool, value: String| {
            if differs {
                options.push(format!("--{option} {value}").trim_end().to_owned());
            }
        };
        for (option, given, other_ms) in [
            ("every", self.every, others.every_ms),
            (
                "streamed-every",
                self.streamed_every,
                others.streamed_every_ms,
            ),
            ("second-look", self.second_look, others.second_look_ms),
            ("spacing", self.spacing, others.spacing_ms),
        ] {
            if let Some(HumanMs(ms)) = given {
                add(option, ms != other_ms, typed(ms));
            }
        }
        if let Some(given) = self.overlap {
            let value = match given {
                Overlap::Adaptive => "adaptive".to_owned(),
                Overlap::Fixed(ms) => typed(ms),
            };
            add("overlap", given != others.overlap, value);
        }
        if let Some(percent) = self.fetches {
            let value = (f64::from(percent) / 100.0).to_string();
            add("fetches", percent != others.fetches_percent, value);
        }
        if let Some(given) = self.backfill {
            let value = match given {
                Backfill::None => "none".to_owned(),
                Backfill::All => "all".to_owned(),
                Backfill::Count(posts) => posts.to_string(),
                Backfill::Duration(ms) => typed(ms),
            };
            add("backfill", given != others.backfill, value);
        }
        if let Some(given) = self.fill_gaps {
            add("no-fill", given != others.fill_gaps, String::new());
        }
        if let Some(given) = self.stream {
            add("stream", given != others.stream, given.name().to_owned());
        }
        options
    }
}

/// The keys of `[defaults]` with the values of these settings as they are written there.
pub fn written(of: &Settings) -> Vec<(&'static str, Value)> {
    let time = |ms| json!(typed(ms));
    vec![
        ("defaults.every", time(of.every_ms)),
        (
            "defaults.overlap",
            match of.overlap {
                Overlap::Adaptive => json!("adaptive"),
                Overlap::Fixed(ms) => time(ms),
            },
        ),
        (
            "defaults.fetches",
            json!(f64::from(of.fetches_percent) / 100.0),
        ),
        (
            "defaults.backfill",
            match of.backfill {
                Backfill::None => json!("none"),
                Backfill::All => json!("all"),
                Backfill::Count(posts) => json!(posts),
                Backfill::Duration(ms) => time(ms),
            },
        ),
        ("defaults.fill_gaps", json!(of.fill_gaps)),
        ("defaults.stream", json!(of.stream.name())),
        ("defaults.streamed_every", time(of.streamed_every_ms)),
        ("defaults.second_look", time(of.second_look_ms)),
        ("defaults.spacing", time(of.spacing_ms)),
    ]
}

/// A duration as one word of a command line.
fn typed(ms: i64) -> String {
    match ms {
        0 => "0s".to_owned(),
        _ => show_ms(ms).replace(' ', ""),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_differ_are_typed_as_they_are_read() {
        let stored = Settings::default();
        assert_eq!(SourceSettings::default().that_differ_from(&stored), [""; 0]);
        let given = SourceSettings {
            every: Some(HumanMs(90_500)),
            overlap: Some(Overlap::Fixed(86_400_000)),
            fetches: Some(125),
            backfill: Some(Backfill::Count(7)),
            fill_gaps: Some(false),
            stream: Some(Streaming::WebSocket),
            streamed_every: Some(HumanMs(0)),
            second_look: Some(HumanMs(stored.second_look_ms)),
            spacing: None,
        };
        let options = given.that_differ_from(&stored);
        assert_eq!(
            options,
            [
                "--every 1m30s500ms",
                "--streamed-every 0s",
                "--overlap 1day",
                "--fetches 1.25",
                "--backfill 7",
                "--no-fill",
                "--stream websocket",
            ]
        );
        for (option, ms) in [(0, 90_500), (1, 0), (2, 86_400_000)] {
            let value = options[option].rsplit(' ').next().unwrap_or_default();
            assert_eq!(crate::duration::parse_ms(value), Ok(ms), "{value}");
        }
        assert_eq!(given.that_differ_from(&given.or(stored)), [""; 0]);
    }
}
