//! `id of-time` and `id since`: the arithmetic of IDs and times.

use clap::Args;
use driftline_core::{
    timeline::{IdScheme, since_id},
    upstream_id::{IdOrder, UpstreamId},
};
use driftline_id::{Layout, TextForm};
use driftline_runtime::now_ms;
use serde_json::{Value, json};

use crate::{
    config::IdSection,
    duration::HumanMs,
    error::CliError,
    options::id_options::IdOptions,
    output, parse,
    shown::{self, ago_or_time_ms},
};

/// The layout of the IDs.
#[derive(Debug, Clone, Args)]
struct LayoutOptions {
    /// The layout of the IDs [default: twitter, or the configured one].
    #[arg(long, value_name = "NAME", value_parser = parse::layout)]
    layout: Option<Layout>,
    /// The layout's time zero, if not the default, in Unix ms.
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    epoch_ms: Option<i64>,
}

/// Prints the smallest and the largest ID that can have been made in a ms.
#[derive(Debug, Args)]
pub struct OfTime {
    /// The time: 2026-03-01T12:00:00Z, a day, how long ago, or Unix ms.
    time: String,
    #[command(flatten)]
    layout: LayoutOptions,
}

/// Prints the `since_id` to poll with, so that IDs which are ordered only roughly are not missed.
///
/// Of a time, it is the largest ID below those of the time minus the overlap. Of the newest ID that
/// was read, it is `clamp(ID of (retrieved - overlap) - 1, ID of (newest - overlap) - 1, newest)`: the
/// newest ID itself once it is older than the overlap.
#[derive(Debug, Args)]
pub struct Since {
    /// The newest ID that was read, or a time.
    from: String,
    #[command(flatten)]
    layout: LayoutOptions,
    /// How far IDs may be out of order.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    overlap: HumanMs,
    /// When the newest ID was asked for, by the server's clock [default: now].
    #[arg(long, value_name = "TIME")]
    retrieved: Option<String>,
}

impl LayoutOptions {
    fn choose(&self, config: &IdSection) -> Result<Layout, CliError> {
        let options = IdOptions {
            layout: self.layout,
            epoch_ms: self.epoch_ms,
            ..IdOptions::default()
        };
        Ok(options.or(config)?.layout())
    }
}

impl OfTime {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the layout has no IDs of that time.
    pub fn run(&self, config: &IdSection, json: bool) -> Result<(), CliError> {
        let layout = self.layout.choose(config)?;
        let time_ms = moment(&self.time, now_ms())?;
        let smallest = layout
            .checked_smallest_at(time_ms)
            .map_err(CliError::usage)?;
        let largest = layout
            .checked_largest_at(time_ms)
            .map_err(CliError::usage)?;
        let (smallest, largest) = (layout.print(smallest), layout.print(largest));
        let reply: Value = json!({
            "layout": layout.name(),
            "time_ms": time_ms,
            "time": shown::time(time_ms),
            "smallest": smallest,
            "largest": largest,
        });
        output::reply(json, &reply, |_| vec![smallest, largest])
    }
}

impl Since {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the text is neither an ID of the layout nor a time.
    pub fn run(&self, config: &IdSection, json: bool) -> Result<(), CliError> {
        let layout = self.layout.choose(config)?;
        let now_ms = now_ms();
        let retrieved = self.retrieved.as_deref();
        let retrieved_ms = retrieved.map_or(Ok(now_ms), |text| moment(text, now_ms))?;
        let since = since(layout, &self.from, retrieved_ms, self.overlap.0, now_ms)?;
        let reply = json!({ "layout": layout.name(), "since_id": since });
        output::reply(json, &reply, |_| vec![since])
    }
}

fn since(
    layout: Layout,
    from: &str,
    retrieved_ms: i64,
    overlap_ms: i64,
    now_ms: i64,
) -> Result<String, CliError> {
    let Ok(newest) = layout.parse_any(from) else {
        let time_ms = ago_or_time_ms(from, now_ms).map_err(|error| {
            let layout = layout.name();
            CliError::usage(format!("not an ID of {layout} either: {error}"))
        })?;
        let first = layout.smallest_at(time_ms.saturating_sub(overlap_ms));
        return Ok(layout.print(first.saturating_sub(1)));
    };
    let order = match layout.text_form() {
        TextForm::Decimal => IdOrder::Numeric,
        _ => IdOrder::Text,
    };
    let scheme = IdScheme {
        order,
        layout: Some(layout),
    };
    let key = scheme.key(&UpstreamId::new(layout.print(newest)));
    let key = key.map_err(CliError::usage)?;
    let since = since_id(&scheme, &key, retrieved_ms, overlap_ms);
    let since = since.ok_or_else(|| {
        CliError::usage(format!(
            "{from:?} has no time in the layout {}",
            layout.name()
        ))
    })?;
    Ok(scheme.id(&since).as_str().to_owned())
}

/// A time, or Unix ms.
fn moment(text: &str, now_ms: i64) -> Result<i64, CliError> {
    match text.parse() {
        Ok(unix_ms) => Ok(unix_ms),
        Err(_) => ago_or_time_ms(text, now_ms).map_err(CliError::usage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_MS: i64 = 1_288_834_974_657;

    #[test]
    fn the_newest_id_stays_once_it_is_older_than_the_overlap() {
        let newest_ms = EPOCH_MS + 5_000;
        let newest = (5_000_u64 << 22 | 77).to_string();
        let since = |retrieved_ms| since(Layout::TWITTER, &newest, retrieved_ms, 1_000, 0).unwrap();
        let below = |ms: u64| ((ms << 22) - 1).to_string();
        assert_eq!(since(newest_ms + 1_001), newest);
        assert_eq!(since(newest_ms + 400), below(4_400));
        // A clock that is behind takes it no further than the overlap below the newest.
        assert_eq!(since(newest_ms - 60_000), below(4_000));
    }

    #[test]
    fn of_a_time_it_is_the_id_before_the_first_of_the_overlap() {
        let time = "2010-11-04T01:43:00Z";
        let time_ms = moment(time, 0).unwrap();
        let expected = (((time_ms - 1_000 - EPOCH_MS) as u64) << 22) - 1;
        let since = since(Layout::TWITTER, time, 0, 1_000, 0).unwrap();
        assert_eq!(since, expected.to_string());
        let refused = super::since(Layout::TWITTER, "yesterday", 0, 0, 0).unwrap_err();
        assert!(refused.to_string().contains("invalid time"), "{refused}");
    }

    #[test]
    fn texts_that_sort_as_ids_do_are_kept() {
        let newest = Layout::TID.print(Layout::TID.smallest_at(1_700_000_000_000) | 5);
        let kept = since(Layout::TID, &newest, 1_700_000_009_000, 1_000, 0).unwrap();
        assert_eq!(kept, newest);
    }
}
