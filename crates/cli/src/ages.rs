//! `[refresh.ages]`: how often posts are refreshed, by their age.

use std::collections::BTreeMap;

use driftline_core::refresh::{AgeBand, AgeTable, AgeTableError};

use crate::{
    duration::{HumanMs, parse_ms, show_ms},
    error::CliError,
    origins::Origins,
};

/// The effective table. Ages of the default table override their own interval and keep the others;
/// with any other age among them, the given ages are the whole table.
///
/// # Errors
/// [`CliError::Usage`] if the ages are invalid.
pub fn table(
    given: Option<&BTreeMap<String, HumanMs>>,
    skew_ms: i64,
    origins: &Origins,
) -> Result<AgeTable, CliError> {
    let mut bands: Vec<Written<'_>> = Vec::new();
    for (age, HumanMs(every_ms)) in given.into_iter().flatten() {
        let wrong = |what: &str| {
            let name = origins.name(&["refresh", "ages", age]);
            CliError::usage(format!("{name}: {what}"))
        };
        let below_ms = parse_ms(age).map_err(|error| wrong(&error))?;
        if let Some(other) = bands.iter().find(|band| band.of.below_ms == below_ms) {
            let other = other.age();
            return Err(wrong(&format!(
                "{other:?} is the same age; leave one of them out"
            )));
        }
        let of = AgeBand {
            below_ms,
            every_ms: *every_ms,
        };
        bands.push(Written { key: Some(age), of });
    }
    let defaults = AgeTable::default();
    let default_ages = defaults.bands().iter().map(|of| of.below_ms);
    let is_default = |band: &Written<'_>| default_ages.clone().any(|age| age == band.of.below_ms);
    if given.is_none() || (!bands.is_empty() && bands.iter().all(is_default)) {
        let is_left_out = |of: &&AgeBand| !bands.iter().any(|band| band.of.below_ms == of.below_ms);
        let left_out: Vec<_> = defaults.bands().iter().filter(is_left_out).collect();
        bands.extend(left_out.into_iter().map(|&of| Written { key: None, of }));
    }
    bands.sort_by_key(|band| band.of.below_ms);
    let of_all = bands.iter().map(|band| band.of).collect();
    AgeTable::new(of_all, skew_ms).map_err(|error| wrong(error, &bands, origins))
}

/// Why a table is invalid, in the words of the configuration.
fn wrong(error: AgeTableError, bands: &[Written<'_>], origins: &Origins) -> CliError {
    let name = |band: &Written<'_>| origins.name(&["refresh", "ages", &band.age()]);
    CliError::usage(match error {
        AgeTableError::Empty => format!(
            "{} is empty; leave it out for the default ages",
            origins.name(&["refresh", "ages"])
        ),
        AgeTableError::Band { at } => {
            let what = match bands[at].of.below_ms {
                0 => "the age is zero; write one that posts have, such as 18m",
                _ => "the interval is zero; write the time between two refreshes, such as 3m",
            };
            format!("{}: {what}", name(&bands[at]))
        }
        AgeTableError::Shrinks { at } => {
            let (younger, older) = (&bands[at - 1], &bands[at]);
            let culprit = if older.key.is_some() { older } else { younger };
            let hint = match (younger.key, older.key) {
                (Some(_), Some(_)) => "",
                _ => " (ages that are left out keep their defaults)",
            };
            let (culprit, young_age, old_age) = (name(culprit), younger.age(), older.age());
            let (often, rarely) = (show_ms(younger.of.every_ms), show_ms(older.of.every_ms));
            format!(
                "{culprit}: posts below {young_age:?} would be refreshed every {often}, and older ones, below {old_age:?}, every {rarely}; intervals must grow with age{hint}"
            )
        }
    })
}

/// A band, and its age as written in the configuration, if it is there.
struct Written<'a> {
    key: Option<&'a str>,
    of: AgeBand,
}

impl Written<'_> {
    fn age(&self) -> String {
        self.key
            .map_or_else(|| show_ms(self.of.below_ms), str::to_owned)
    }
}
