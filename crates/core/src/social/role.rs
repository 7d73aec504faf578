named_enum! {
    /// What somebody may do for the server, each role what those before it may, too.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Role: "snake_case" {
        /// Uses the server.
        #[default]
        Member,
        /// Freezes and silences accounts, and approves new ones.
        Moderator,
        /// Assigns roles, and performs the account actions of the operator's commands.
        Admin,
    }
}
