named_enum! {
    /// The permissions of a user for the server. Each role includes those before it.
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
