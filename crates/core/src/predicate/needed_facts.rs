use super::{
    Predicate,
    condition::{Condition, PostTrait},
};

/// The kinds of facts about posts that a predicate compares. The others need not be read, except for the trait of
/// boosts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NeededFacts {
    /// The author's name, and the trait of bots.
    pub author: bool,
    /// The entries, and the author's nickname.
    pub entries: bool,
    /// The attachments.
    pub attachments: bool,
    /// The hashtags and the mentioned accounts.
    pub names: bool,
    /// The other traits that the post states, its language and its counts.
    pub others: bool,
}

impl NeededFacts {
    /// All facts.
    pub const ALL: Self = Self {
        author: true,
        entries: true,
        attachments: true,
        names: true,
        others: true,
    };
}

impl Predicate {
    /// Returns the kinds of facts that the predicate compares.
    pub fn needed_facts(&self) -> NeededFacts {
        let mut needed = NeededFacts::default();
        for proposition in self.tree.propositions() {
            needed.author |= proposition.id_mask.is_some() || proposition.belonging.is_some();
            needed.entries |= proposition.match_word.is_some();
            match &proposition.condition {
                Some(Condition::Has(_)) => needed.attachments = true,
                Some(Condition::Is(PostTrait::Bot)) => needed.author = true,
                Some(Condition::Tag(_) | Condition::Mentions(_)) => needed.names = true,
                Some(Condition::Is(_) | Condition::Language(_) | Condition::Count { .. }) => {
                    needed.others = true;
                }
                // These facts are not part of what a server shows of the post.
                Some(
                    Condition::Via(_)
                    | Condition::Source(_)
                    | Condition::Visibility(_)
                    | Condition::After(_)
                    | Condition::Before(_)
                    | Condition::During(_)
                    | Condition::Id(_),
                )
                | None => {}
            }
        }
        needed
    }
}
