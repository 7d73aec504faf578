//! HTML whose elements are well nested, made of any text.

use std::{cell::RefCell, mem};

use html5ever::{
    LocalName,
    tendril::StrTendril,
    tokenizer::{
        BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
        states::RawKind,
    },
};

use super::rules::{
    ATTRIBUTES, ELEMENTS, MAX_OPEN, REL, TARGET, attribute, write_attribute, write_text,
};

/// HTML that shows what `html` shows, as far as Mastodon lets it through: only known elements and
/// attributes, each element closed, and none where a parser would move it. Time and length are linear
/// in the length of `html`. `None` if that, or one of its tags, is too long.
pub(super) fn balanced(html: &str) -> Option<String> {
    if html.len() > MAX_HTML_BYTES {
        return None;
    }
    let tokenizer = Tokenizer::new(Balancer::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    let (mut rest, mut waiting, mut tokens) = (html, 0, 0);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(CHUNK_BYTES));
        input.push_back(StrTendril::from_slice(chunk));
        // It stops for nothing but scripts, and none is run.
        let _ = tokenizer.feed(&input);
        rest = after;
        let after = tokenizer.sink.0.borrow().tokens;
        // The time for a tag is quadratic in the number of its attributes.
        waiting = if after == tokens {
            waiting + chunk.len()
        } else {
            0
        };
        if waiting > MAX_TAG_BYTES {
            return None;
        }
        tokens = after;
    }
    tokenizer.end();
    Some(tokenizer.sink.0.into_inner().end())
}

#[derive(Default)]
struct Balancer(RefCell<Balance>);

#[derive(Default)]
struct Balance {
    out: String,
    open: Vec<Open>,
    /// The element whose text is left out, until it ends.
    dropped: Option<LocalName>,
    /// Whether a block that is not kept ends what came before.
    is_apart: bool,
    /// Where the last `pre` begins: a line end there is not shown.
    pre_begin: Option<usize>,
    tokens: usize,
}

/// An element that is not closed yet.
struct Open {
    name: &'static str,
    /// The name of the tag that began it.
    begun_by: LocalName,
}

impl TokenSink for Balancer {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut balance = self.0.borrow_mut();
        if let Token::ParseError(_) = token {
            return TokenSinkResult::Continue;
        }
        balance.tokens += 1;
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => balance.start(&tag),
            Token::TagToken(tag) => {
                balance.end_tag(&tag.name);
                TokenSinkResult::Continue
            }
            Token::CharacterTokens(text) => {
                balance.text(&text);
                TokenSinkResult::Continue
            }
            _ => TokenSinkResult::Continue,
        }
    }
}

impl Balance {
    fn start(&mut self, tag: &Tag) -> TokenSinkResult<()> {
        if self.dropped.is_some() {
            return TokenSinkResult::Continue;
        }
        let raw = match &*tag.name {
            "script" => Some(RawKind::ScriptData),
            "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
            "title" => Some(RawKind::Rcdata),
            "textarea" => return TokenSinkResult::RawData(RawKind::Rcdata),
            "plaintext" => return TokenSinkResult::Plaintext,
            _ => None,
        };
        if let Some(raw) = raw {
            self.dropped = Some(tag.name.clone());
            return TokenSinkResult::RawData(raw);
        }
        match &*tag.name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.open("p", tag);
                self.open("strong", tag);
            }
            name => match ELEMENTS.iter().find(|known| **known == name) {
                Some(&"br") => {
                    self.is_apart = false;
                    self.out.push_str("<br>");
                }
                Some(known) => self.open(known, tag),
                None if breaks_line(name) => self.is_apart = true,
                None => {}
            },
        }
        TokenSinkResult::Continue
    }

    fn open(&mut self, name: &'static str, tag: &Tag) {
        self.close_what_ends_at(name);
        if self.open.len() >= MAX_OPEN {
            return;
        }
        let is_heading = *tag.name != *name;
        let value = |wanted: &str| {
            let mut found = tag.attrs.iter().filter(|attr| &*attr.name.local == wanted);
            let found = found.next().filter(|_| !is_heading)?;
            attribute(name, wanted, &found.value)
        };
        let values = ATTRIBUTES.map(value);
        // A link to nowhere is the text that it shows.
        if name == "a" && values[0].is_none() {
            return;
        }
        self.break_line();
        self.out.push('<');
        self.out.push_str(name);
        for (name, value) in ATTRIBUTES.iter().zip(values) {
            if let Some(value) = value {
                write_attribute(&mut self.out, name, &value);
            }
        }
        if name == "a" {
            write_attribute(&mut self.out, "target", TARGET);
            write_attribute(&mut self.out, "rel", REL);
        }
        self.out.push('>');
        if name == "pre" {
            self.pre_begin = Some(self.out.len());
        }
        self.open.push(Open {
            name,
            begun_by: tag.name.clone(),
        });
    }

    /// Closes the elements that a parser closes when one of that name begins.
    fn close_what_ends_at(&mut self, name: &str) {
        match name {
            "p" | "pre" | "blockquote" | "ul" | "ol" => self.close_last("p", &[]),
            "li" => {
                self.close_last("p", &[]);
                self.close_last("li", &["ul", "ol", "blockquote", "pre"]);
            }
            "a" => self.close_last("a", &[]),
            "rt" | "rp" => {
                let ends = |open: &Open| matches!(open.name, "rt" | "rp" | "p" | "li");
                while self.open.last().is_some_and(ends) {
                    self.close_to(self.open.len() - 1);
                }
            }
            _ => {}
        }
    }

    /// Closes the last element of that name, and those in it, unless it is outside of one of `within`.
    fn close_last(&mut self, name: &str, within: &[&str]) {
        let is_end = |open: &Open| open.name == name || within.contains(&open.name);
        let last = self.open.iter().rposition(is_end);
        if let Some(at) = last.filter(|at| self.open[*at].name == name) {
            self.close_to(at);
        }
    }

    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth
            && let Some(open) = self.open.pop()
        {
            self.out.push_str("</");
            self.out.push_str(open.name);
            self.out.push('>');
        }
    }

    fn end_tag(&mut self, name: &LocalName) {
        if let Some(dropped) = &self.dropped {
            if dropped == name {
                self.dropped = None;
            }
            return;
        }
        let is_begun_by = |open: &Open| open.begun_by == *name;
        if let Some(last) = self.open.iter().rposition(is_begun_by) {
            // A heading has begun two.
            let is_second = self.open[last].name == "strong" && **name != *"strong";
            let before = last.checked_sub(1).filter(|_| is_second);
            self.close_to(before.unwrap_or(last));
        } else if &**name == "br" {
            self.out.push_str("<br>");
        } else if breaks_line(name) {
            self.is_apart = true;
        }
    }

    fn text(&mut self, text: &str) {
        if self.dropped.is_some() {
            return;
        }
        let text = match self.pre_begin == Some(self.out.len()) {
            true => text.trim_start_matches('\n'),
            false => text,
        };
        let text = match self.out.is_empty() {
            // At the beginning a parser takes it for the mark of an encoding.
            true => text.trim_start_matches('\u{feff}'),
            false => text,
        };
        if !text.is_empty() {
            self.break_line();
            write_text(&mut self.out, text);
        }
    }

    /// Keeps apart what blocks kept apart.
    fn break_line(&mut self) {
        if mem::take(&mut self.is_apart) && !self.out.ends_with(['\n', '>']) && !self.out.is_empty()
        {
            self.out.push('\n');
        }
    }

    fn end(mut self) -> String {
        self.close_to(0);
        self.out
    }
}

/// Whether browsers show an element as a block of its own.
fn breaks_line(name: &str) -> bool {
    matches!(
        name,
        "address"
            | "article"
            | "aside"
            | "center"
            | "dd"
            | "details"
            | "dir"
            | "div"
            | "dl"
            | "dt"
            | "fieldset"
            | "figcaption"
            | "figure"
            | "footer"
            | "form"
            | "header"
            | "hr"
            | "main"
            | "nav"
            | "section"
            | "summary"
            | "table"
            | "td"
            | "th"
            | "tr"
    )
}

/// Mastodon takes no larger activities.
const MAX_HTML_BYTES: usize = 1024 * 1024;
/// The longest tag or comment, but for a chunk.
const MAX_TAG_BYTES: usize = 8 * 1024;
const CHUNK_BYTES: usize = 4 * 1024;
