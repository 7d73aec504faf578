use super::{
    condition::{OPERATORS, expected_value},
    limits::{LimitError, MAX_DEPTH, MAX_TERMS},
};

/// A problem in the text form, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// The column of the problem, in characters from 1.
    pub column: usize,
    /// The problem.
    pub problem: ParseProblem,
}

/// A problem in the text form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProblem {
    /// The text has no terms.
    #[error("the text is empty")]
    Empty,
    /// A quotation does not end.
    #[error("the closing quote is missing")]
    UnclosedQuote,
    /// A parenthesis is not closed.
    #[error("the closing parenthesis is missing")]
    UnclosedParenthesis,
    /// A brace is not closed.
    #[error("the closing brace is missing")]
    UnclosedBrace,
    /// A closing parenthesis or brace has no opening one.
    #[error("nothing opens this `{closing}`")]
    Unopened {
        /// The parenthesis or brace.
        closing: char,
    },
    /// A pair of parentheses contains nothing.
    #[error("the parentheses are empty")]
    EmptyParentheses,
    /// An operator lacks a term next to it.
    #[error("`{operator}` needs a term next to it")]
    MissingTerm {
        /// The operator.
        operator: &'static str,
    },
    /// A quotation, or the value of an operator, is empty.
    #[error("the word is empty")]
    EmptyWord,
    /// An operator has no value.
    #[error("`{name}:` needs a value")]
    MissingValue {
        /// The name of the operator.
        name: String,
    },
    /// An operator does not accept its value.
    #[error("`{name}:` does not accept {value:?}")]
    InvalidValue {
        /// The name of the operator.
        name: String,
        /// The value.
        value: String,
    },
    /// There is no operator with this name.
    #[error("unknown operator `{name}:`")]
    UnknownOperator {
        /// The name.
        name: String,
    },
    /// Mastodon has this operator, but Driftline does not.
    #[error("the operator `{name}:` is not supported")]
    UnsupportedOperator {
        /// The name.
        name: String,
    },
    /// The value is `me`, but there is no viewer.
    #[error("`me` needs a logged-in account")]
    NoViewer,
    /// An operator is inside braces.
    #[error("braces contain terms only")]
    OperatorInBraces,
    /// Two terms inside braces are of the same kind.
    #[error("the braces already contain a term of this kind")]
    RepeatedTerm,
    /// The predicate exceeds a limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl ParseProblem {
    /// Returns a sentence that tells how to solve the problem.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Empty => "Write a word, or {} to match every post.",
            Self::UnclosedQuote => {
                "Add a quote at the end of the phrase; write \\\" for a quote in it."
            }
            Self::UnclosedParenthesis => {
                "Add `)`, or write the parenthesis in quotes to search for it."
            }
            Self::UnclosedBrace => "Add `}`, or write the brace in quotes to search for it.",
            Self::Unopened { .. } => "Remove it, or write it in quotes to search for it.",
            Self::EmptyParentheses => "Write a term between them, or remove them.",
            Self::MissingTerm { operator: "-" } => {
                "Write the term directly after `-`, or write \"-\" in quotes to search for it."
            }
            Self::MissingTerm { .. } => {
                "Write a term on both sides, or write the operator in quotes to search for it."
            }
            Self::EmptyWord => "Write at least one character.",
            Self::MissingValue { name } | Self::InvalidValue { name, .. } => {
                return format!("Write {}.", expected_value(name));
            }
            Self::UnknownOperator { name } => {
                let known = OPERATORS.join(", ");
                return format!(
                    "Write the word in quotes to search for it, as in \"{name}:…\". The operators are {known}."
                );
            }
            Self::UnsupportedOperator { .. } => {
                "Use `source:`, `author:` or `visibility:` to choose the posts that are searched."
            }
            Self::NoViewer => "Log in, or write the account's name with its host.",
            Self::OperatorInBraces => "Use parentheses around `-`, OR, XOR and other groups.",
            Self::RepeatedTerm => "Use parentheses in place of braces.",
            Self::Limit(LimitError::TooDeep) => {
                return format!("Nest at most {MAX_DEPTH} operators.");
            }
            Self::Limit(LimitError::TooManyTerms) => {
                return format!("Use at most {MAX_TERMS} terms.");
            }
            Self::Limit(LimitError::TooLong) => "Shorten the text.",
        };
        hint.to_owned()
    }
}
