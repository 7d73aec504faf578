/// How IDs are taken and shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// How many nodes hold rows, each with snapshots of its own. Writer `w` writes to node `w % nodes`.
    pub(crate) nodes: usize,
    pub(crate) clock: Clock,
    pub(crate) visibility: Visibility,
    pub(crate) bound: Bound,
    pub(crate) given_up: GivenUp,
}

/// When a reservation is given up whose lease is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    AtOnce,
    /// Once the writer's root was locked and fenced: a late transaction of the writer is refused.
    WhenFenced,
    /// Once the root was locked: the writer reserves while it holds that, and writes in the same
    /// transaction.
    WhenRowIsFree,
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
