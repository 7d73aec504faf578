use std::fmt;

/// A rule broken somewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    path: String,
    line: usize,
    text: String,
}

impl Offence {
    /// `text` says what is wrong and what to do; lines count from 1.
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Offence {
        Offence {
            path: path.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}
