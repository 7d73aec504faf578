//! `[refresh]` of the configuration.

use std::{collections::BTreeMap, time::Duration};

use clap::ValueEnum;
use driftline_core::refresh::{AgeTable, RefreshPlan, ValueSettings};
use driftline_mirror::{POLLING_SHARE, refresh::RefreshOptions};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, Unexpected},
};

use crate::{
    ages,
    duration::{HumanMs, duration_or, ms_or},
    error::CliError,
    origins::Origins,
};

/// `[refresh]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RefreshSection {
    /// Whether stored posts are not refreshed.
    pub off: bool,
    /// The policy that sets due times.
    pub policy: PolicyName,
    /// How often posts are refreshed, by the age below which they are: `"18m" = "3m"`. Laid over the
    /// default table, or a table of its own: [`ages::table`] has the rule.
    pub ages: Option<BTreeMap<String, HumanMs>>,
    /// How far in the future a creation time may lie and count as now.
    pub skew: Option<HumanMs>,
    /// How long a batch that is not full waits for more.
    pub buffer_ttl: Option<HumanMs>,
    /// How long a claim on a batch lasts.
    pub lease: Option<HumanMs>,
    /// Look-ups of one upstream at a time.
    pub workers: Option<usize>,
    /// The share of each quota that is left to polling.
    pub polling_share: Option<f64>,
    /// The names of the credentials that posts are refreshed with; empty for all.
    pub credentials: Vec<String>,
    /// Whether what a deleted post held is erased with it.
    pub erase_deleted: bool,
    /// Where these come from.
    #[serde(skip)]
    pub origins: Origins,
}

/// The policy that sets due times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum PolicyName {
    /// By age alone.
    #[default]
    Age,
    /// By the value of a refresh.
    Value,
}

impl<'de> Deserialize<'de> for PolicyName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from).unwrap_or_default();
        let wrong = |_| D::Error::invalid_value(Unexpected::Str(&name), &"\"age\" or \"value\"");
        ValueEnum::from_str(&name, false).map_err(wrong)
    }
}

impl RefreshSection {
    /// How posts are scheduled.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the ages are invalid.
    pub fn plan(&self) -> Result<RefreshPlan, CliError> {
        let skew_ms = ms_or(self.skew, AgeTable::default().skew_ms());
        let table = ages::table(self.ages.as_ref(), skew_ms, &self.origins)?;
        Ok(RefreshPlan {
            ages: table,
            by_value: (self.policy == PolicyName::Value).then(ValueSettings::default),
        })
    }

    /// How posts are refreshed.
    ///
    /// # Errors
    /// [`CliError::Usage`] if a value is invalid.
    pub fn options(&self, holder: String) -> Result<RefreshOptions, CliError> {
        let defaults = RefreshOptions::new(holder);
        let options = RefreshOptions {
            credentials: self.credentials.clone(),
            buffer_ttl: duration_or(self.buffer_ttl, defaults.buffer_ttl),
            lease: duration_or(self.lease, defaults.lease),
            workers: self.workers.unwrap_or(defaults.workers),
            ..defaults
        };
        let why = "must be at least 5s; a look-up has to fit in it";
        self.require(options.lease >= MIN_LEASE, "lease", why)?;
        let why = "must be shorter than refresh.lease; a claim outlives the wait for a full batch";
        self.require(options.buffer_ttl < options.lease, "buffer_ttl", why)?;
        let why = format!(
            "must be between 1 and {MAX_WORKERS}; it is the number of look-ups of one upstream at a time"
        );
        let is_valid = (1..=MAX_WORKERS).contains(&options.workers);
        self.require(is_valid, "workers", &why)?;
        Ok(options)
    }

    /// The share of each quota that refreshing leaves to polling.
    ///
    /// # Errors
    /// [`CliError::Usage`] if it is out of range.
    pub fn polling_share(&self) -> Result<f64, CliError> {
        let share = self.polling_share.unwrap_or(POLLING_SHARE);
        let why =
            "must be between 0.0 and 1.0; it is the part of each quota that polling may always use";
        self.require((0.0..=1.0).contains(&share), "polling_share", why)?;
        Ok(share)
    }

    /// The error of an invalid value says where it comes from.
    fn require(&self, is_valid: bool, key: &str, why: &str) -> Result<(), CliError> {
        if is_valid {
            return Ok(());
        }
        let name = self.origins.name(&["refresh", key]);
        Err(CliError::usage(format!("{name} {why}")))
    }
}

const MIN_LEASE: Duration = Duration::from_secs(5);
const MAX_WORKERS: usize = 64;
