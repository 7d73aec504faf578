use alloc::string::String;
use core::error::Error;
use core::fmt;

/// A record that does not let a new window begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeginError {
    /// The recorded window lies further ahead of the clock than is allowed: the clock is wrong, or
    /// was wrong when the record was written.
    ClockBehind {
        /// How far behind the recorded end the clock is, in ms.
        behind_ms: u64,
        /// The recorded end, in Unix µs.
        until_us: i64,
    },
    /// The record is of another layout.
    ForeignLayout {
        /// The layout in the record.
        recorded: String,
        /// The layout asked for.
        wanted: String,
    },
    /// The record is of another node.
    ForeignNode {
        /// The node in the record.
        recorded: u64,
        /// The node asked for.
        wanted: u64,
    },
}

/// Text that is not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The text is cut off, or its checksum is wrong.
    Torn,
    /// The text is of another version.
    Version,
    /// A line is missing or wrong.
    Line {
        /// The line's name.
        name: &'static str,
    },
}

impl fmt::Display for BeginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClockBehind {
                behind_ms,
                until_us,
            } => write!(
                f,
                "times up to Unix us {until_us} may have been used, and the clock is {behind_ms} ms \
                 behind that; set the clock right, wait until then, or use another node"
            ),
            Self::ForeignLayout { recorded, wanted } => write!(
                f,
                "the record is of the layout '{recorded}', not '{wanted}'; \
                 use the recorded layout, or another location"
            ),
            Self::ForeignNode { recorded, wanted } => write!(
                f,
                "the record is of the node {recorded}, not {wanted}; put it back where it belongs"
            ),
        }
    }
}

impl Error for BeginError {}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Torn => write!(f, "the record is damaged: its checksum is wrong")?,
            Self::Version => write!(f, "the record is of another version of this library")?,
            Self::Line { name } => write!(f, "the record's line '{name}' is missing or wrong")?,
        }
        write!(
            f,
            "; find out which times the node has used, or use another node"
        )
    }
}

impl Error for RecordError {}
