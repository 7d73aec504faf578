use super::{
    Predicate,
    condition::{Attachment, Condition, PostTrait},
    proposition::Term,
};

named_enum! {
    /// A use of a predicate, which limits the terms that it may have.
    pub enum Usage: "lowercase" {
        /// A search, which knows the viewer and the counts of posts.
        Search,
        /// A saved timeline or a filter, which reads each version of a post once.
        Saved,
        /// A standing search, which reads each post once.
        Standing,
        /// The filter of a synced library, which knows only the parts of a post whose change takes a USN.
        Sync,
    }
}

/// A term that is not possible in a use of a predicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{term}` is not possible {}", self.place())]
pub struct UsageError {
    /// The text form of the first such term.
    pub term: String,
    /// The use.
    pub usage: Usage,
}

impl UsageError {
    const fn place(&self) -> &'static str {
        match self.usage {
            Usage::Search => "in a search",
            Usage::Saved => "in a saved timeline or a filter",
            Usage::Standing => {
                "in a standing search (`find --follow`, `tail --matching`): counts and `is:followed` depend on the moment"
            }
            Usage::Sync => "in a filter of a synced library",
        }
    }
}

impl Predicate {
    /// Checks that each term is possible in a use.
    ///
    /// # Errors
    ///
    /// A [`UsageError`] that names the first term that is not.
    pub fn validate(&self, usage: Usage) -> Result<(), UsageError> {
        let propositions = self.tree.propositions();
        let mut terms = propositions.into_iter().flat_map(|p| p.terms());
        match terms.find(|term| !is_possible(term, usage)) {
            Some(term) => Err(UsageError {
                term: term.to_string(),
                usage,
            }),
            None => Ok(()),
        }
    }
}

fn is_possible(term: &Term, usage: Usage) -> bool {
    let Term::Condition(condition) = term else {
        return true;
    };
    match condition {
        Condition::Count { .. } | Condition::Is(PostTrait::Followed) => usage == Usage::Search,
        Condition::Via(_)
        | Condition::Source(_)
        | Condition::Mentions(_)
        | Condition::Id(_)
        // A preview comes after its post, and accounts become bots, without a new version of the post.
        | Condition::Has(Attachment::Link | Attachment::Embed)
        | Condition::Is(PostTrait::Bot) => usage != Usage::Sync,
        Condition::Has(_)
        | Condition::Is(_)
        | Condition::Language(_)
        | Condition::Tag(_)
        | Condition::Visibility(_)
        | Condition::After(_)
        | Condition::Before(_)
        | Condition::During(_) => true,
    }
}
