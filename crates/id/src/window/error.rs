use alloc::string::String;

/// A record that does not let a new window begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BeginError {
    /// The recorded window reaches further ahead of the clock than allowed. The clock is wrong, or
    /// was wrong when the record was written.
    #[error(
        "times up to Unix us {until_us} may have been used, and the clock is {behind_ms} ms \
         behind that; set the clock right, wait until then, or use another node"
    )]
    ClockBehind {
        /// The distance from the clock to the recorded end, in ms.
        behind_ms: u64,
        /// The recorded end, in Unix µs.
        until_us: i64,
    },
    /// The record belongs to another layout.
    #[error(
        "the record is of the layout '{recorded}', not '{wanted}'; \
         use the recorded layout, or another location"
    )]
    ForeignLayout {
        /// The layout in the record.
        recorded: String,
        /// The requested layout.
        wanted: String,
    },
    /// The record belongs to another node.
    #[error("the record is of the node {recorded}, not {wanted}; put it back where it belongs")]
    ForeignNode {
        /// The node in the record.
        recorded: u64,
        /// The requested node.
        wanted: u64,
    },
}

/// Text that is not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The text is truncated, or its checksum is wrong.
    #[error("the record is damaged: its checksum is wrong; {REMEDY}")]
    Torn,
    /// The text has another version.
    #[error("the record is of another version of this library; {REMEDY}")]
    Version,
    /// A line is missing or invalid.
    #[error("the record's line '{name}' is missing or wrong; {REMEDY}")]
    Line {
        /// The line's name.
        name: &'static str,
    },
}

const REMEDY: &str = "find out which times the node has used, or use another node";
