/// Counts of one tick that become IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) first: u64,
    pub(crate) length: u64,
}
