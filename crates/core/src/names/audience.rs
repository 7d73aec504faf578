//! The readers of a source, and the posts that they may see.

use crate::post::Visibility;

named_enum! {
    /// The readers of a source, in addition to its owner.
    #[derive(PartialOrd, Ord)]
    pub enum Audience: "lowercase" {
        /// The owner only.
        Private,
        /// Every account of this server.
        Members,
        /// Everyone.
        Public,
    }
}

/// The relation of a reader to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reader {
    /// Its owner.
    Owner,
    /// An account of this server that does not own it.
    Member,
    /// Anyone else.
    World,
}

impl Audience {
    /// The audience with this name. An unknown name maps to the narrowest audience, so that no
    /// hidden source is shown.
    pub fn named_or_narrowest(name: &str) -> Self {
        name.parse().unwrap_or(Self::Private)
    }

    /// The most hidden visibility that a reader may see in a source of this audience; the reader
    /// also sees all less hidden posts. `None` if the source itself is hidden from the reader.
    pub fn shows(self, reader: Reader) -> Option<Visibility> {
        match (reader, self) {
            (Reader::Owner, _) => Some(Visibility::Direct),
            (Reader::Member, Self::Members | Self::Public) => Some(Visibility::Unlisted),
            (Reader::World, Self::Public) => Some(Visibility::Public),
            (Reader::Member | Reader::World, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_audience_never_shows_less() {
        let order = [Audience::Private, Audience::Members, Audience::Public];
        for reader in [Reader::Owner, Reader::Member, Reader::World] {
            let shown = order.map(|audience| audience.shows(reader).map(Visibility::narrowness));
            assert!(shown.is_sorted(), "{reader:?}: {shown:?}");
        }
        for audience in order {
            let readers = [Reader::World, Reader::Member, Reader::Owner];
            let shown = readers.map(|reader| audience.shows(reader).map(Visibility::narrowness));
            assert!(shown.is_sorted(), "{audience:?}: {shown:?}");
        }
        assert_eq!(Audience::Private.shows(Reader::Member), None);
        assert_eq!(Audience::Members.shows(Reader::World), None);
        assert_eq!(Audience::named_or_narrowest("everyone"), Audience::Private);
    }
}
