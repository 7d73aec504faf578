named_enum! {
    /// What somebody may do for the server, each role what those before it may, too.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Role: "snake_case" {
        /// Uses it.
        #[default]
        Member,
        /// Freezes and silences accounts, and approves new ones.
        Moderator,
        /// Gives roles, and does what the operator's commands do for accounts.
        Admin,
    }
}
