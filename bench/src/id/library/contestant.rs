//! A generator, and how it is measured.

use super::timing::Extent;
use crate::{failure::Failure, id::versions, rounds::Spread};

/// A condition under which IDs are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// Nothing but the generator's own cost, by its one owner.
    Exclusive,
    /// The same, in the form that threads can share.
    Shared,
    /// The same, while two threads share it.
    SharedByTwo,
    /// Twitter's layout, whose sequence caps a node.
    Twitter,
    /// The same, while two threads share it.
    TwitterByTwo,
    /// Batches of a thousand IDs, with nothing to hold them back.
    Batch,
}

impl Column {
    /// Every column.
    pub(super) const ALL: [Self; 6] = [
        Self::Exclusive,
        Self::Shared,
        Self::SharedByTwo,
        Self::Twitter,
        Self::TwitterByTwo,
        Self::Batch,
    ];

    /// Its name in tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Exclusive => "exclusive",
            Self::Shared => "shared",
            Self::SharedByTwo => "shared, 2 threads",
            Self::Twitter => "Twitter",
            Self::TwitterByTwo => "Twitter, 2 threads",
            Self::Batch => "batch of 1000",
        }
    }

    /// Whether the layout holds every generator back, so that the best can only be equal.
    pub(super) const fn is_capped(self) -> bool {
        matches!(self, Self::Twitter | Self::TwitterByTwo)
    }
}

/// A generator in one of its forms.
pub(super) struct Contestant {
    pub(super) name: &'static str,
    /// Of the peer; none for Driftline's own.
    pub(super) package: Option<&'static str>,
    /// What stands in for the layout's cap.
    pub(super) unthrottled_by: &'static str,
    /// Whether its time follows the system's corrections, and what if that steps back.
    pub(super) clock: &'static str,
    /// Whether its IDs keep what a layout promises, so that it counts as a peer to beat.
    pub(super) counts: bool,
    runs: Vec<Run>,
}

struct Run {
    column: Column,
    measure: Box<dyn Fn(Extent) -> Result<f64, Failure>>,
    figures: Vec<f64>,
}

impl Contestant {
    /// One of Driftline's own.
    pub(super) fn ours(name: &'static str) -> Self {
        Self {
            name,
            package: None,
            unthrottled_by: "sequence of 22 bits",
            clock: "yes: the system's time, published every ms; a step back is refused or waited out",
            counts: true,
            runs: Vec::new(),
        }
    }

    /// A peer's.
    pub(super) fn peer(
        name: &'static str,
        package: &'static str,
        unthrottled_by: &'static str,
        clock: &'static str,
    ) -> Self {
        Self {
            package: Some(package),
            unthrottled_by,
            clock,
            ..Self::ours(name)
        }
    }

    /// Takes it out of the comparison: it is shown, and not a peer to beat.
    pub(super) fn shown_only(mut self) -> Self {
        self.counts = false;
        self
    }

    /// Measures a column so.
    pub(super) fn runs(
        mut self,
        column: Column,
        measure: impl Fn(Extent) -> Result<f64, Failure> + 'static,
    ) -> Self {
        self.runs.push(Run {
            column,
            measure: Box::new(measure),
            figures: Vec::new(),
        });
        self
    }

    /// One round of every column that it has, and what is to be done before each.
    pub(super) fn measure(&mut self, extent: Extent, before: impl Fn()) -> Result<(), Failure> {
        for run in &mut self.runs {
            before();
            let figure = (run.measure)(extent).map_err(|failure| {
                let column = run.column.name();
                Failure::new(format!("{}, {column}: {failure}", self.name))
            })?;
            run.figures.push(figure);
        }
        Ok(())
    }

    /// The figures of a column, a round each.
    pub(super) fn figures(&self, column: Column) -> Option<&[f64]> {
        let run = self.runs.iter().find(|run| run.column == column);
        run.map(|run| run.figures.as_slice())
    }

    /// The figures of a column.
    pub(super) fn spread(&self, column: Column) -> Option<Spread> {
        let figures = self.figures(column)?.iter().copied();
        let digits = if column.is_capped() { 1 } else { 2 };
        Some(Spread::of(figures, digits))
    }

    /// The version that was built.
    pub(super) fn version(&self) -> &'static str {
        versions::of(self.package.unwrap_or(OUR_PACKAGE))
    }
}

const OUR_PACKAGE: &str = "driftline-id";
