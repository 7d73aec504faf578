use std::fmt::{self, Display as _};

use super::{
    proposition::{IdMask, Proposition, Term},
    tree::{Connective, Tree},
    word::{Word, WordMatch},
};

/// The text form of a tree, which [`Predicate::parse`](super::Predicate::parse) reads.
impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atom(proposition) => proposition.fmt(f),
            Self::Not(operand) => {
                f.write_str("-")?;
                write_operand(f, operand, operand.connective().is_some())
            }
            _ => {
                for (index, operand) in self.operands().into_iter().enumerate() {
                    if index > 0 {
                        f.write_str(self.connective().map_or("", separator))?;
                    }
                    let inner = operand.connective();
                    write_operand(f, operand, inner.is_some() && inner <= self.connective())?;
                }
                Ok(())
            }
        }
    }
}

fn write_operand(
    f: &mut fmt::Formatter<'_>,
    operand: &Tree,
    needs_parentheses: bool,
) -> fmt::Result {
    match needs_parentheses {
        true => write!(f, "({operand})"),
        false => operand.fmt(f),
    }
}

const fn separator(connective: Connective) -> &'static str {
    match connective {
        Connective::And => " ",
        Connective::Xor => " XOR ",
        Connective::Or => " OR ",
    }
}

/// One term, or any number of terms in braces.
impl fmt::Display for Proposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.terms() {
            [term] => term.fmt(f),
            terms => {
                f.write_str("{")?;
                for (index, term) in terms.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(f, "{space}{term}")?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The name of an operator and its value, or a word.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Author(mask) => write!(f, "author:{}", Value(&mask.to_string())),
            Self::Instance(host) => write!(f, "instance:{}", Value(host.as_str())),
            Self::Word(word) => word.fmt(f),
            Self::Condition(condition) => {
                write!(f, "{}:{}", condition.name(), Value(&condition.value()))
            }
        }
    }
}

/// The name, and the ID after `#` if it is known.
impl fmt::Display for IdMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.acct.as_str())?;
        match self.id {
            Some(id) => write!(f, "#{id}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        match self.matching() {
            WordMatch::Literal => write!(f, "={}", Value(text)),
            WordMatch::Whole => write!(f, "word:{}", Value(text)),
            WordMatch::Folded if is_bare_word(text) => f.write_str(text),
            WordMatch::Folded => write_quoted(f, text),
        }
    }
}

/// The value of an operator, in quotes if it needs them.
struct Value<'a>(&'a str);

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.chars().all(is_plain) {
            true => f.write_str(self.0),
            false => write_quoted(f, self.0),
        }
    }
}

fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    write!(f, "\"{escaped}\"")
}

/// Returns true if the parser reads a text without quotes as a word.
fn is_bare_word(text: &str) -> bool {
    let is_operator = text.starts_with(['-', '=', '#', '＃']) || KEYWORDS.contains(&text);
    !is_operator && text.chars().all(|c| is_plain(c) && !is_colon(c))
}

/// Returns true if a character may be part of a word or value without quotes.
pub(super) fn is_plain(c: char) -> bool {
    !c.is_whitespace() && !is_quote(c) && !matches!(c, '(' | ')' | '（' | '）' | '{' | '}')
}

pub(super) const fn is_colon(c: char) -> bool {
    matches!(c, ':' | '：')
}

pub(super) const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '＂' | '“' | '”')
}

/// The words that are operators.
pub(super) const KEYWORDS: [&str; 2] = ["OR", "XOR"];
