use super::{
    condition::{Condition, ConditionError},
    limits::{self, LimitError, MAX_DEPTH, MAX_TERMS, MAX_TEXT_BYTES},
    names::{Acct, Tag},
    parse_error::{ParseError, ParseProblem},
    printer::{KEYWORDS, is_colon, is_plain, is_quote},
    proposition::{Proposition, Term},
    tree::{Connective, Tree},
    word::{Word, WordMatch},
};
use crate::names::acct::AcctKey;

/// The completion of names that a text leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameContext<'a> {
    /// The origin or host of this server, which an account without a host belongs to.
    pub origin: &'a str,
    /// The account that `me` stands for, with or without its host.
    pub viewer: Option<&'a str>,
}

impl NameContext<'_> {
    /// A context that completes no names.
    pub(super) const NONE: NameContext<'static> = NameContext {
        origin: "",
        viewer: None,
    };

    /// Completes the name of an account.
    pub(super) fn acct(&self, text: &str) -> Result<Acct, ConditionError> {
        let name = match text {
            "me" => self.viewer.ok_or(ConditionError::Viewer)?,
            _ => text,
        };
        let key = AcctKey::new(name, self.origin);
        let acct = key.and_then(|key| Acct::new(key.as_str()));
        acct.ok_or(ConditionError::Value)
    }
}

/// Reads the text form of a tree that is within the limits.
pub(super) fn parse(text: &str, names: &NameContext<'_>) -> Result<Tree, ParseError> {
    let mut parser = Parser {
        text,
        names,
        at: 0,
        nesting: 0,
        deepest_nesting: 0,
        deepest: 0,
        terms: 0,
        operator: None,
    };
    parser.tree().map_err(|failure| {
        let before = text.get(..failure.at).unwrap_or(text);
        ParseError {
            column: before.chars().count() + 1,
            problem: failure.problem,
        }
    })
}

/// A parser by recursive descent.
struct Parser<'t> {
    text: &'t str,
    names: &'t NameContext<'t>,
    /// The place of the next character, in bytes, as all places.
    at: usize,
    /// The number of open parentheses and of `-` before them.
    nesting: usize,
    /// The largest nesting so far, and its place.
    deepest_nesting: usize,
    deepest: usize,
    /// The number of terms so far.
    terms: usize,
    /// The last operator, while it lacks its right operand.
    operator: Option<PendingOperator>,
}

#[derive(Clone, Copy)]
struct PendingOperator {
    at: usize,
    name: &'static str,
}

/// A problem and its place in bytes.
struct Failure {
    at: usize,
    problem: ParseProblem,
}

impl Failure {
    fn new(at: usize, problem: impl Into<ParseProblem>) -> Self {
        let problem = problem.into();
        Self { at, problem }
    }
}

impl<'t> Parser<'t> {
    fn tree(&mut self) -> Result<Tree, Failure> {
        if self.text.len() > MAX_TEXT_BYTES {
            let end = self.text.floor_char_boundary(MAX_TEXT_BYTES);
            return Err(Failure::new(end, LimitError::TooLong));
        }
        self.skip_space();
        if self.peek().is_none() {
            return Err(Failure::new(0, ParseProblem::Empty));
        }
        let tree = self.chain(Connective::Or)?;
        if let Some(closing) = self.peek() {
            return Err(Failure::new(self.at, ParseProblem::Unopened { closing }));
        }
        limits::check(&tree).map_err(|error| {
            let is_nested = error == LimitError::TooDeep;
            Failure::new(if is_nested { self.deepest } else { 0 }, error)
        })?;
        Ok(tree)
    }

    /// Reads operands with a connective, or with a tighter one, between them.
    fn chain(&mut self, connective: Connective) -> Result<Tree, Failure> {
        let mut tree = self.operand(connective)?;
        while self.takes(connective) {
            tree = connective.join(tree, self.operand(connective)?);
        }
        Ok(tree)
    }

    fn operand(&mut self, connective: Connective) -> Result<Tree, Failure> {
        match connective {
            Connective::Or => self.chain(Connective::Xor),
            Connective::Xor => self.chain(Connective::And),
            Connective::And => self.unary(),
        }
    }

    /// Takes a connective if it comes next. That of a conjunction has no characters.
    fn takes(&mut self, connective: Connective) -> bool {
        self.skip_space();
        let name = match connective {
            Connective::Or => "OR",
            Connective::Xor => "XOR",
            Connective::And => {
                let is_end = self.peek().is_none_or(|c| matches!(c, ')' | '）' | '}'));
                return !is_end && self.keyword().is_none();
            }
        };
        let is_next = self.keyword() == Some(name);
        if is_next {
            self.operator = Some(PendingOperator { at: self.at, name });
            self.at += name.len();
        }
        is_next
    }

    fn unary(&mut self) -> Result<Tree, Failure> {
        self.skip_space();
        let start = self.at;
        match self.peek() {
            Some('-') => self.negation(),
            Some('(' | '（') => self.group(),
            Some('{') => self.braces(),
            next => {
                let keyword = self.keyword();
                let keyword = keyword.map(|name| PendingOperator { at: start, name });
                let is_end = next.is_none_or(|c| matches!(c, ')' | '）' | '}'));
                match (self.operator.or(keyword), next) {
                    (Some(operator), _) if is_end || keyword.is_some() => {
                        let PendingOperator { at, name: operator } = operator;
                        Err(Failure::new(at, ParseProblem::MissingTerm { operator }))
                    }
                    (_, Some(closing)) if is_end => {
                        Err(Failure::new(start, ParseProblem::Unopened { closing }))
                    }
                    _ => Ok(Tree::atom(self.term()?)),
                }
            }
        }
    }

    fn negation(&mut self) -> Result<Tree, Failure> {
        let at = self.at;
        self.enter()?;
        self.operator = Some(PendingOperator { at, name: "-" });
        if self.peek().is_some_and(char::is_whitespace) {
            let operator = "-";
            return Err(Failure::new(at, ParseProblem::MissingTerm { operator }));
        }
        let operand = self.unary()?;
        self.nesting -= 1;
        Ok(operand.negated())
    }

    fn group(&mut self) -> Result<Tree, Failure> {
        let open = self.at;
        self.enter()?;
        self.operator = None;
        self.skip_space();
        match self.peek() {
            None => return Err(Failure::new(open, ParseProblem::UnclosedParenthesis)),
            Some(')' | '）') => return Err(Failure::new(open, ParseProblem::EmptyParentheses)),
            Some(_) => {}
        }
        let tree = self.chain(Connective::Or)?;
        match self.peek() {
            Some(')' | '）') => self.advance(),
            Some(closing) => {
                return Err(Failure::new(self.at, ParseProblem::Unopened { closing }));
            }
            None => return Err(Failure::new(open, ParseProblem::UnclosedParenthesis)),
        }
        self.nesting -= 1;
        Ok(tree)
    }

    /// Takes a character that nests what follows.
    fn enter(&mut self) -> Result<(), Failure> {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(Failure::new(self.at, LimitError::TooDeep));
        }
        if self.nesting > self.deepest_nesting {
            self.deepest_nesting = self.nesting;
            self.deepest = self.at;
        }
        self.advance();
        Ok(())
    }

    /// Reads a proposition with any number of terms.
    fn braces(&mut self) -> Result<Tree, Failure> {
        let open = self.at;
        self.advance();
        let mut proposition = Proposition::default();
        loop {
            self.skip_space();
            let start = self.at;
            match self.peek() {
                None => return Err(Failure::new(open, ParseProblem::UnclosedBrace)),
                Some('}') => break,
                Some('-' | '(' | '（' | ')' | '）' | '{') => {
                    return Err(Failure::new(start, ParseProblem::OperatorInBraces));
                }
                Some(_) if self.keyword().is_some() => {
                    return Err(Failure::new(start, ParseProblem::OperatorInBraces));
                }
                Some(_) => {}
            }
            let term = self.term()?;
            if !proposition.add(term) {
                return Err(Failure::new(start, ParseProblem::RepeatedTerm));
            }
        }
        self.advance();
        if proposition == Proposition::default() {
            self.count_term(open)?;
        }
        Ok(Tree::Atom(proposition))
    }

    fn term(&mut self) -> Result<Term, Failure> {
        let start = self.at;
        self.count_term(start)?;
        let rest = &self.text[start..];
        if rest.starts_with('=') && self.has_value(1) {
            self.at += 1;
            return self.word(WordMatch::Literal, start);
        }
        if let Some(after) = rest.strip_prefix(['#', '＃'])
            && after.starts_with(|c| is_plain(c) && !matches!(c, '#' | '＃'))
            && let Some(tag) = Tag::new(self.plain())
        {
            return Ok(Term::Condition(Condition::Tag(tag)));
        }
        if let Some(name) = self.operator_name()? {
            return self.operator_term(&name, start);
        }
        self.word(WordMatch::Folded, start)
    }

    fn word(&mut self, matching: WordMatch, start: usize) -> Result<Term, Failure> {
        let text = self.value()?;
        let word = Word::new(&text, matching);
        let word = word.map_err(|_| Failure::new(start, ParseProblem::EmptyWord))?;
        Ok(Term::Word(word))
    }

    /// Takes the name of an operator and its colon, if they come next. A text with a colon that is
    /// clearly no operator, such as a URL, is a word.
    fn operator_name(&mut self) -> Result<Option<String>, Failure> {
        let rest = &self.text[self.at..];
        let after_name = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let name = rest[..rest.len() - after_name.len()].to_ascii_lowercase();
        let (false, Some(after)) = (name.is_empty(), after_name.strip_prefix(is_colon)) else {
            return Ok(None);
        };
        let (start, colon) = (self.at, rest.len() - after.len());
        let problem = match Term::read(&name, "", self.names) {
            Err(ConditionError::Name) => {
                let is_word = after.starts_with("//") || !self.has_value(colon);
                match &*name {
                    _ if is_word => return Ok(None),
                    "in" => ParseProblem::UnsupportedOperator { name },
                    _ => ParseProblem::UnknownOperator { name },
                }
            }
            _ if !self.has_value(colon) => ParseProblem::MissingValue { name },
            _ => {
                self.at += colon;
                return Ok(Some(name));
            }
        };
        Err(Failure::new(start, problem))
    }

    fn operator_term(&mut self, name: &str, start: usize) -> Result<Term, Failure> {
        let value = self.value()?;
        Term::read(name, &value, self.names).map_err(|error| {
            let name = name.to_owned();
            let problem = match error {
                ConditionError::Name => ParseProblem::UnknownOperator { name },
                ConditionError::Viewer => ParseProblem::NoViewer,
                ConditionError::Value if value.is_empty() => ParseProblem::MissingValue { name },
                ConditionError::Value => ParseProblem::InvalidValue { name, value },
            };
            Failure::new(start, problem)
        })
    }

    fn count_term(&mut self, at: usize) -> Result<(), Failure> {
        self.terms += 1;
        self.operator = None;
        match self.terms > MAX_TERMS {
            true => Err(Failure::new(at, LimitError::TooManyTerms)),
            false => Ok(()),
        }
    }

    /// Reads a quotation, or the characters up to one that ends a word.
    fn value(&mut self) -> Result<String, Failure> {
        match self.peek() {
            Some(quote) if is_quote(quote) => self.quotation(),
            _ => Ok(self.plain().to_owned()),
        }
    }

    /// Reads a quotation. A backslash makes the next character a part of it.
    fn quotation(&mut self) -> Result<String, Failure> {
        let open = self.at;
        let mut chars = self.text[open..].char_indices();
        let quote = chars.next().map(|(_, quote)| quote);
        let is_ascii = quote == Some('"');
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            if is_quote(c) && is_ascii == (c == '"') {
                self.at = open + at + c.len_utf8();
                return Ok(text);
            }
            match c {
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                _ => text.push(c),
            }
        }
        Err(Failure::new(open, ParseProblem::UnclosedQuote))
    }

    fn plain(&mut self) -> &'t str {
        let rest: &'t str = &self.text[self.at..];
        let end = rest.find(|c| !is_plain(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// Returns true if a value begins at a distance, in bytes.
    fn has_value(&self, distance: usize) -> bool {
        let next = self.text[self.at + distance..].chars().next();
        next.is_some_and(|c| is_plain(c) || is_quote(c))
    }

    fn keyword(&self) -> Option<&'static str> {
        let rest = &self.text[self.at..];
        KEYWORDS.into_iter().find(|word| {
            rest.strip_prefix(word)
                .is_some_and(|after| !after.starts_with(is_plain))
        })
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn advance(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }
}
