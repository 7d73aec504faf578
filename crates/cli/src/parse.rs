//! Parsers for the settings of the command line and the configuration.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use driftline_core::api::Api;
use driftline_core::{
    timeline::{Backfill, Overlap, Rung, Streaming},
    upstream_id::IdOrder,
};
use driftline_id::Layout;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::duration::parse_ms;

/// A value in a configuration, a number without quotes too, read as the command line reads it.
///
/// # Errors
/// The parser's, or if it is neither a text nor a number.
pub fn written<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Whole(u64),
        Number(f64),
        Flag(bool),
        Text(String),
    }
    let text = match Written::deserialize(from) {
        Ok(Written::Whole(number)) => number.to_string(),
        Ok(Written::Number(number)) => number.to_string(),
        Ok(Written::Flag(flag)) => flag.to_string(),
        Ok(Written::Text(text)) => text,
        Err(_) => return Err(D::Error::custom("write a text or a number")),
    };
    parse(&text).map_err(D::Error::custom)
}

/// The name of an API, as an argument.
pub fn api() -> impl TypedValueParser<Value = Api> {
    let names = [
        PossibleValue::new("mastodon").help("Mastodon's, which many servers speak"),
        PossibleValue::new("x").help("X's version 2"),
        PossibleValue::new("twitter").help("Twitter's version 1.1"),
    ];
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Api>())
}

/// `adaptive` or a duration.
///
/// # Errors
/// A message that names the accepted values.
pub fn overlap(text: &str) -> Result<Overlap, String> {
    match text {
        "adaptive" => Ok(Overlap::Adaptive),
        _ => parse_ms(text).map(Overlap::Fixed).map_err(|_| {
            format!("invalid overlap {text:?}: expected adaptive or a duration such as 1s")
        }),
    }
}

/// Posts fetched for each post stored, in percent: 2.5 are 250.
///
/// # Errors
/// A message that names the accepted values.
pub fn fetches(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if (1.0..=100.0).contains(&number) => Ok((number * 100.0).round() as u32),
        _ => Err(format!(
            "invalid number of fetches a post {text:?}: expected 1 to 100, such as 2.5"
        )),
    }
}

/// `none`, `all`, a number of posts or a duration.
///
/// # Errors
/// A message that names the accepted values.
pub fn backfill(text: &str) -> Result<Backfill, String> {
    let number = || text.parse().ok().map(Backfill::Count);
    match text {
        "none" => Ok(Backfill::None),
        "all" => Ok(Backfill::All),
        _ => number()
            .or_else(|| parse_ms(text).ok().map(Backfill::Duration))
            .ok_or_else(|| {
                format!(
                    "invalid backfill {text:?}: expected none, all, a number of posts, or a duration such as 1d"
                )
            }),
    }
}

/// `AGE/PERIOD`.
///
/// # Errors
/// A message that names the accepted values.
pub fn rung(text: &str) -> Result<Rung, String> {
    text.split_once('/')
        .and_then(|(age, period)| {
            Some(Rung {
                age_ms: parse_ms(age).ok()?,
                period_ms: parse_ms(period).ok()?,
            })
        })
        .ok_or_else(|| format!("invalid rung {text:?}: expected AGE/PERIOD, such as 10m/5m"))
}

/// The name of a way to follow a stream.
///
/// # Errors
/// A message that names the accepted values.
pub fn streaming(text: &str) -> Result<Streaming, String> {
    text.parse().map_err(|_| {
        format!("invalid streaming mode {text:?}: expected auto, sse, websocket or off")
    })
}

/// The name of an order of IDs.
///
/// # Errors
/// A message that names the accepted values.
pub fn id_order(text: &str) -> Result<IdOrder, String> {
    text.parse().map_err(|_| {
        let names: Vec<&str> = IdOrder::ALL.iter().map(|order| order.name()).collect();
        format!(
            "invalid order of IDs {text:?}: expected one of {}",
            names.join(", ")
        )
    })
}

/// The name of a layout of IDs, or `none`.
///
/// # Errors
/// A message that names the accepted values.
pub fn id_layout(text: &str) -> Result<String, String> {
    if text == "none" {
        return Ok(text.to_owned());
    }
    layout(text)
        .map(|layout| layout.name().to_owned())
        .map_err(|refused| format!("{refused}, or none"))
}

/// The name of a layout of IDs.
///
/// # Errors
/// A message that names the accepted values.
pub fn layout(text: &str) -> Result<Layout, String> {
    Layout::named(text).ok_or_else(|| {
        let names: Vec<&str> = Layout::ALL.iter().map(Layout::name).collect();
        format!(
            "unknown layout {text:?}: expected one of {}",
            names.join(", ")
        )
    })
}
