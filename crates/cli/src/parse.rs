//! Parsers for the settings of the command line and the configuration.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use driftline_core::{
    api::Api,
    names::audience::Audience,
    social::Role,
    timeline::{Backfill, Overlap, Rung, Streaming},
    upstream_id::IdOrder,
};
use driftline_id::Layout;
use serde::{Deserialize as _, Deserializer, de::Error as _};
use serde_json::Value;

use crate::duration::parse_ms;

/// A value in a configuration, a number without quotes too, read as the command line reads it.
///
/// # Errors
/// The parser's, or if it is neither a text nor a number.
pub fn written<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let text = match Value::deserialize(from) {
        Ok(Value::String(text)) => text,
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => return Err(D::Error::custom("write a text or a number")),
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

/// Who may read a source, as an argument.
pub fn audience() -> impl TypedValueParser<Value = Audience> {
    let names = [
        PossibleValue::new("public")
            .help("everyone its public posts, accounts of this server its unlisted ones"),
        PossibleValue::new("members").help("accounts of this server its public and unlisted posts"),
        PossibleValue::new("private").help("nobody else"),
    ];
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Audience>())
}

/// A role, as an argument.
pub fn role() -> impl TypedValueParser<Value = Role> {
    let names = [
        PossibleValue::new("member").help("Uses the server"),
        PossibleValue::new("moderator").help("Freezes, silences and approves accounts, too"),
        PossibleValue::new("admin").help("Gives roles, too"),
    ];
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Role>())
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
    match text.parse::<f64>() {
        Ok(number) if (1.0..=100.0).contains(&number) => Ok((number * 100.0).round() as u32),
        _ => Err(format!(
            "invalid number of fetches a post {text:?}: expected 1 to 100, such as 2.5"
        )),
    }
}

/// The ID of something that is logged in to an account.
pub fn log_in_id(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| "expected a number; `driftline account tokens NAME` shows the IDs".to_owned())
}

/// `on` or `off`.
///
/// # Errors
/// A message that names the accepted values.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("invalid value {text:?}: expected on or off")),
    }
}

/// `none`, `all`, a number of posts or a duration.
///
/// # Errors
/// A message that names the accepted values.
pub fn backfill(text: &str) -> Result<Backfill, String> {
    match (text, text.parse()) {
        ("none", _) => Ok(Backfill::None),
        ("all", _) => Ok(Backfill::All),
        (_, Ok(posts)) => Ok(Backfill::Count(posts)),
        _ => parse_ms(text).map(Backfill::Duration).map_err(|_| {
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
            let above_zero = |text| parse_ms(text).ok().filter(|ms| *ms > 0);
            Some(Rung {
                age_ms: above_zero(age)?,
                period_ms: above_zero(period)?,
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
    let names: Vec<&str> = Layout::ALL.iter().map(Layout::name).collect();
    let names = names.join(", ");
    Layout::named(text).ok_or_else(|| format!("unknown layout {text:?}: expected one of {names}"))
}
