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
    let mut by_age: BTreeMap<i64, Written<'_>> = BTreeMap::new();
    for (age, &HumanMs(every_ms)) in given.into_iter().flatten() {
        let wrong = |what: &str| {
            let name = origins.name(&["refresh", "ages", age]);
            CliError::usage(format!("{name}: {what}"))
        };
        let below_ms = parse_ms(age).map_err(|error| wrong(&error))?;
        let of = AgeBand { below_ms, every_ms };
        if let Some(other) = by_age.insert(below_ms, Written { key: Some(age), of }) {
            let other = other.age();
            return Err(wrong(&format!(
                "{other:?} is the same age; leave one of them out"
            )));
        }
    }
    let defaults = AgeTable::default();
    let is_default = |age: &i64| defaults.bands().iter().any(|of| of.below_ms == *age);
    if given.is_none() || (!by_age.is_empty() && by_age.keys().all(is_default)) {
        for &of in defaults.bands() {
            by_age
                .entry(of.below_ms)
                .or_insert(Written { key: None, of });
        }
    }
    let bands: Vec<Written<'_>> = by_age.into_values().collect();
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
