/// How IDs are taken and shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// How many nodes hold rows, each with snapshots of its own. Writer `w` writes to node `w % nodes`.
    pub(crate) nodes: usize,
    pub(crate) clock: Clock,
    pub(crate) visibility: Visibility,
    pub(crate) bound: Bound,
    /// Whether a reservation is given up only after its writer's root has been locked and fenced.
    pub(crate) fenced: bool,
}

/// How long a writer keeps others from taking IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// To its commit.
    HeldToCommit,
    /// Only while it takes an ID, of which nothing is recorded: a sequence.
    FreeOnceTaken,
    /// Only while it takes an ID and records that in a commit of its own.
    Reserved,
}

/// When readers of a node may see a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    AtCommit,
    /// Some time after it has returned to the writer.
    NodeByNode,
}

/// Up to which ID readers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    None,
    /// The ID below all reserved ones, read before the rows.
    SettledFirst,
    /// The same, read after them.
    SettledLast,
}
