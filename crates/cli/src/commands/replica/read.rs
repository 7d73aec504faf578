//! `replica read`: the read marker of a timeline.

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser as _};
use driftline_core::{
    social::MarkedTimeline,
    sync::{MarkerValue, ObjectKey, ObjectValue},
};
use driftline_replica::Replica;

use super::bookmark::edit;
use crate::error::CliError;

/// Sets the read marker of a timeline. The next sync sends it; of two devices the one that has read more wins.
#[derive(Debug, Args)]
pub struct Read {
    /// The timeline: home or notifications.
    #[arg(value_parser = PossibleValuesParser::new(["home", "notifications"]).try_map(|name| name.parse::<MarkedTimeline>()))]
    timeline: MarkedTimeline,
    /// The ID of the last entry that was read.
    #[arg(value_parser = clap::value_parser!(u64).range(..=MAX_PLACE))]
    place: u64,
}

impl Read {
    /// Runs it.
    ///
    /// # Errors
    /// [`CliError`] as the process ends.
    pub async fn run(self, replica: &Replica, json: bool) -> Result<(), CliError> {
        let value = ObjectValue::Marker(MarkerValue::at(self.place)).json();
        edit(replica, ObjectKey::marker(self.timeline), Some(value), json).await
    }
}

/// The largest place: it is stored in 63 bits.
const MAX_PLACE: u64 = u64::MAX >> 1;
