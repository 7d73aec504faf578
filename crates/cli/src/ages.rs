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
    let defaults = AgeTable::default();
    let mut bands: Vec<Written<'_>> = Vec::new();
    for (age, HumanMs(every_ms)) in given.into_iter().flatten() {
        let name = || origins.name(&["refresh", "ages", age]);
        let below_ms =
            parse_ms(age).map_err(|error| CliError::usage(format!("{}: {error}", name())))?;
        let wrong = |what: &str| Err(CliError::usage(format!("{}: {what}", name())));
        if below_ms == 0 {
            return wrong("the age is zero; write one that posts have, such as 18m");
        }
        if *every_ms == 0 {
            return wrong("the interval is zero; write the time between two refreshes, such as 3m");
        }
        if let Some(other) = bands.iter().find(|band| band.of.below_ms == below_ms) {
            return wrong(&format!(
                "{:?} is the same age; leave one of them out",
                other.age()
            ));
        }
        let of = AgeBand {
            below_ms,
            every_ms: *every_ms,
        };
        bands.push(Written { key: Some(age), of });
    }
    let is_default = |band: &Written<'_>| {
        defaults
            .bands()
            .iter()
            .any(|of| of.below_ms == band.below())
    };
    if given.is_none() || (!bands.is_empty() && bands.iter().all(is_default)) {
        for of in defaults.bands() {
            if !bands.iter().any(|band| band.below() == of.below_ms) {
                bands.push(Written { key: None, of: *of });
            }
        }
    }
    bands.sort_by_key(Written::below);
    let of_all = bands.iter().map(|band| band.of).collect();
    AgeTable::new(of_all, skew_ms).map_err(|error| {
        CliError::usage(match error {
            AgeTableError::Empty => format!(
                "{} is empty; leave it out for the default ages",
                origins.name(&["refresh", "ages"])
            ),
            AgeTableError::Band { at } => {
                format!("{}: the age or its interval is zero", bands[at].name(origins))
            }
            AgeTableError::Shrinks { at } => {
                let (younger, older) = (&bands[at - 1], &bands[at]);
                let culprit = if older.key.is_some() { older } else { younger };
                let hint = if younger.key.is_none() || older.key.is_none() {
                    " (ages that are left out keep their defaults)"
                } else {
                    ""
                };
                format!(
                    "{}: posts below {:?} would be refreshed every {}, and older ones, below {:?}, every {}; intervals must grow with age{hint}",
                    culprit.name(origins),
                    younger.age(),
                    show_ms(younger.of.every_ms),
                    older.age(),
                    show_ms(older.of.every_ms),
                )
            }
        })
    })
}

/// A band, and its age as written in the configuration, if it is there.
struct Written<'a> {
    key: Option<&'a str>,
    of: AgeBand,
}

impl Written<'_> {
    const fn below(&self) -> i64 {
        self.of.below_ms
    }

    fn age(&self) -> String {
        self.key
            .map_or_else(|| show_ms(self.of.below_ms), str::to_owned)
    }

    fn name(&self, origins: &Origins) -> String {
        origins.name(&["refresh", "ages", &self.age()])
    }
}
