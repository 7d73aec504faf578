use std::fmt::{self, Write as _};

use super::tree::Tree;

/// The largest number of nested operators. Operands with the same connective are on one level.
pub const MAX_DEPTH: usize = 32;

/// The largest number of terms. An empty proposition counts as one.
pub const MAX_TERMS: usize = 1000;

/// The largest size of the text form, in bytes.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

/// The largest size of the JSON form, in bytes. Every predicate within the other limits fits.
pub const MAX_JSON_BYTES: usize = 256 * 1024;

/// The limit that a predicate exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// Operators are nested too deeply.
    #[error("more than {MAX_DEPTH} operators are nested")]
    TooDeep,
    /// There are too many terms.
    #[error("there are more than {MAX_TERMS} terms")]
    TooManyTerms,
    /// The text form is too long.
    #[error("the text is longer than {MAX_TEXT_BYTES} bytes")]
    TooLong,
}

/// Checks all limits of a tree.
///
/// # Errors
///
/// The [`LimitError`] of the first limit that the tree exceeds.
pub(super) fn check(tree: &Tree) -> Result<(), LimitError> {
    let propositions = tree.propositions();
    let terms = propositions.iter().map(|p| p.terms().len().max(1));
    if terms.sum::<usize>() > MAX_TERMS {
        return Err(LimitError::TooManyTerms);
    }
    if depth(tree) > MAX_DEPTH {
        return Err(LimitError::TooDeep);
    }
    let mut budget = ByteBudget(MAX_TEXT_BYTES);
    write!(budget, "{tree}").map_err(|_| LimitError::TooLong)
}

/// The number of nested operators. A proposition with several terms is a conjunction.
fn depth(tree: &Tree) -> usize {
    match tree {
        Tree::Atom(proposition) => usize::from(proposition.terms().len() > 1),
        Tree::Not(operand) => 1 + depth(operand),
        _ => {
            let operands = tree.operands();
            let depths = operands.into_iter().map(depth);
            1 + depths.max().unwrap_or(0)
        }
    }
}

/// Accepts as many bytes as are left.
struct ByteBudget(usize);

impl fmt::Write for ByteBudget {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(fmt::Error)?;
        Ok(())
    }
}
