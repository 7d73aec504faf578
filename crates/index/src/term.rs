//! The terms of documents.

/// A term of a document: a number of 31 bits, made from the term's kind and text. Two terms may
/// have one number. That costs a candidate which the exact check rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term {
    number: u32,
    /// True for authors, sources and readers, which name rows of the store. A query may have many of them and a
    /// document has few, so PostgreSQL keeps them in a column of their own.
    names_row: bool,
    /// The row of the author that it names.
    author: Option<i64>,
}

impl Term {
    /// Two adjacent characters of a text in index form.
    pub fn bigram(first: char, second: char) -> Term {
        let mut bytes = [0; 8];
        let length = first.encode_utf8(&mut bytes).len();
        let length = length + second.encode_utf8(&mut bytes[length..]).len();
        Term::new(b'2', &bytes[..length])
    }

    /// Three adjacent letters of a text in index form.
    pub fn trigram(first: char, second: char, third: char) -> Term {
        let text: String = [first, second, third].into_iter().collect();
        Term::new(b'3', text.as_bytes())
    }

    /// The label of a condition that the post meets.
    pub fn label(label: &str) -> Term {
        Term::new(b'l', label.as_bytes())
    }

    /// An author, by the ID of the author's row.
    pub fn author(id: i64) -> Term {
        Term {
            author: Some(id),
            ..Term::new(b'a', &id.to_be_bytes()).naming_row()
        }
    }

    /// The host of an author's instance, in lower case.
    pub fn instance(host: &str) -> Term {
        Term::new(b'i', host.as_bytes())
    }

    /// A source together with a number for the readers who are shown the place.
    pub fn source(source_id: i64, readers: u8) -> Term {
        let mut bytes = [0; 9];
        bytes[..8].copy_from_slice(&source_id.to_be_bytes());
        bytes[8] = readers;
        Term::new(b's', &bytes).naming_row()
    }

    /// The owner of a source of which the place is, who is shown all its places.
    pub fn owned(owner_id: i64) -> Term {
        Term::new(b'o', &owner_id.to_be_bytes()).naming_row()
    }

    /// A source that contains the post or a copy of it, whoever may be shown that.
    pub fn in_source(source_id: i64) -> Term {
        Term::new(b'e', &source_id.to_be_bytes()).naming_row()
    }

    /// The mark of a place in the world's public timeline.
    pub fn world() -> Term {
        Term::new(b'w', b"").naming_row()
    }

    /// The number, which fits into a positive 32-bit integer.
    pub fn number(self) -> u32 {
        self.number
    }

    /// True if the term is an author, a source or a kind of readers.
    pub(crate) fn names_row(self) -> bool {
        self.names_row
    }

    /// The row of the author that it names.
    pub(crate) fn named_author(self) -> Option<i64> {
        self.author
    }

    fn naming_row(self) -> Term {
        Term {
            names_row: true,
            ..self
        }
    }

    /// FNV-1a of 64 bits, folded to 31. The stored index depends on it.
    fn new(kind: u8, text: &[u8]) -> Term {
        let hash = std::iter::once(&kind)
            .chain(text)
            .fold(OFFSET, |hash, byte| {
                (hash ^ u64::from(*byte)).wrapping_mul(PRIME)
            });
        let folded = hash ^ (hash >> 32);
        Term {
            number: (folded & 0x7fff_ffff) as u32,
            names_row: false,
            author: None,
        }
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_terms_are_apart() {
        let all = [
            Term::bigram('a', 'b'),
            Term::trigram('a', 'b', 'c'),
            Term::label("ab"),
            Term::label("abc"),
            Term::instance("ab"),
            Term::author(1),
            Term::in_source(1),
            Term::owned(1),
            Term::source(1, 0),
            Term::source(1, 1),
            Term::world(),
        ];
        let numbers: std::collections::HashSet<u32> =
            all.iter().map(|term| term.number()).collect();
        assert_eq!(numbers.len(), all.len());
    }

    /// The stored index depends on these numbers.
    #[test]
    fn numbers_of_terms_stay_the_same() {
        assert_eq!(Term::bigram('地', '震').number(), 1_309_125_241);
        assert_eq!(Term::source(7, 2).number(), 1_650_611_499);
        assert_eq!(Term::trigram('c', 'a', 't').number(), 280_977_222);
        assert_eq!(Term::label("tag:cats").number(), 1_264_523_095);
    }
}
