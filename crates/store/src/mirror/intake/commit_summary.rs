/// How much a commit has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommitSummary {
    /// Entries that the source had not had.
    pub new: u64,
    /// Entries whose post was edited.
    pub edited: u64,
    /// Entries whose post had been deleted and has returned.
    pub revived: u64,
    /// Entries whose post the source did not list any more and lists again.
    pub restored: u64,
    /// Entries whose post the source lists no more, which is not known to be deleted.
    pub left: u64,
    /// Entries whose post is now known to be deleted.
    pub deleted: u64,
    /// Stored posts that the page should list and does not, to be looked up.
    pub absent: u64,
    /// Stored posts that the page showed with other counts.
    pub recounted: u64,
    /// The last USN of the source's library.
    pub update_count: i64,
}

impl CommitSummary {
    /// Adds what a later commit of the same source has changed.
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
