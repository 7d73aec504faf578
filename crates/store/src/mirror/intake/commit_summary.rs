/// The changes of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitSummary {
    /// The number of entries that are new in the source.
    pub new: u64,
    /// The number of entries whose posts were edited.
    pub edited: u64,
    /// The number of entries whose posts had been deleted and have returned.
    pub revived: u64,
    /// The number of entries whose posts the source had stopped to list and lists again.
    pub restored: u64,
    /// The number of entries whose posts the source does not list any more, but that are not known
    /// to be deleted.
    pub left: u64,
    /// The number of entries whose posts are now known to be deleted.
    pub deleted: u64,
    /// The number of stored posts that are missing from the page and will be looked up.
    pub absent: u64,
    /// The number of stored posts that the page showed with other counts.
    pub recounted: u64,
    /// The last USN of the source's library.
    pub update_count: i64,
}

impl CommitSummary {
    /// True if it may have changed posts about which the libraries of other sources must be notified.
    pub fn has_notes(&self) -> bool {
        self.edited + self.revived + self.restored + self.recounted > 0
    }

    /// Adds the changes of a later commit of the same source.
    pub fn add(&mut self, later: &Self) {
        let Self {
            new,
            edited,
            revived,
            restored,
            left,
            deleted,
            absent,
            recounted,
            update_count,
        } = *later;
        self.new += new;
        self.edited += edited;
        self.revived += revived;
        self.restored += restored;
        self.left += left;
        self.deleted += deleted;
        self.absent += absent;
        self.recounted += recounted;
        self.update_count = self.update_count.max(update_count);
    }
}
