//! Settings as people write them.

use driftline_core::{
    timeline::{Backfill, Overlap, Rung, Streaming},
    upstream_id::IdOrder,
};
use driftline_id::Layout;

use crate::duration::parse_ms;

/// `adaptive` or a duration.
///
/// # Errors
/// A sentence that says what can be written.
pub fn overlap(text: &str) -> Result<Overlap, String> {
    match text {
        "adaptive" => Ok(Overlap::Adaptive),
        _ => parse_ms(text).map(Overlap::Fixed).map_err(|_| {
            format!("{text:?} is no overlap; write adaptive, or a duration such as 1s")
        }),
    }
}

/// Posts fetched for each post stored, in percent: 2.5 are 250.
///
/// # Errors
/// A sentence that says what can be written.
pub fn fetches(text: &str) -> Result<u32, String> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if (1.0..=100.0).contains(&number) => Ok((number * 100.0).round() as u32),
        _ => Err(format!(
            "{text:?} is no number of fetches a post; write one from 1 to 100, such as 2.5"
        )),
    }
}

/// `none`, `all`, a number of posts or a duration.
///
/// # Errors
/// A sentence that says what can be written.
pub fn backfill(text: &str) -> Result<Backfill, String> {
    let number = || text.parse().ok().map(Backfill::Count);
    match text {
        "none" => Ok(Backfill::None),
        "all" => Ok(Backfill::All),
        _ => number()
            .or_else(|| parse_ms(text).ok().map(Backfill::Duration))
            .ok_or_else(|| {
                format!(
                    "{text:?} is no backfill; write none, all, a number of posts, or a duration such as 1d"
                )
            }),
    }
}

/// `AGE/PERIOD`.
///
/// # Errors
/// A sentence that says what can be written.
pub fn rung(text: &str) -> Result<Rung, String> {
    text.split_once('/')
        .and_then(|(age, period)| {
            Some(Rung {
                age_ms: parse_ms(age).ok()?,
                period_ms: parse_ms(period).ok()?,
            })
        })
        .ok_or_else(|| format!("{text:?} is no rung; write AGE/PERIOD, such as 10m/5m"))
}

/// The name of a way to follow a stream.
///
/// # Errors
/// A sentence that says what can be written.
pub fn streaming(text: &str) -> Result<Streaming, String> {
    Streaming::named(text).ok_or_else(|| {
        format!("{text:?} is no way to follow a stream; write auto, sse, websocket or off")
    })
}

/// The name of an order of IDs.
///
/// # Errors
/// A sentence that says what can be written.
pub fn id_order(text: &str) -> Result<IdOrder, String> {
    IdOrder::named(text).ok_or_else(|| {
        let names: Vec<&str> = IdOrder::ALL.iter().map(|order| order.name()).collect();
        format!("{text:?} is no order of IDs; write {}", names.join(", "))
    })
}

/// The name of a layout of IDs, or `none`.
///
/// # Errors
/// A sentence that says what can be written.
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
/// A sentence that says what can be written.
pub fn layout(text: &str) -> Result<Layout, String> {
    Layout::named(text).ok_or_else(|| {
        let names: Vec<&str> = Layout::ALL.iter().map(Layout::name).collect();
        format!("{text:?} is no layout; write {}", names.join(", "))
    })
}
