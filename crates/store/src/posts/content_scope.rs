//! The scopes of content: the people to whom an upstream's answers were shown.

use driftline_core::names::audience::Audience;

use crate::viewer::{Owner, Viewer};

/// The people to whom an upstream showed content: servers may show a post differently to each token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContentScope(i64);

impl ContentScope {
    /// Anybody: the content came without a token, or its owner has published what the token shows.
    pub(crate) const WORLD: ContentScope = ContentScope(0);
    /// Every account of this server.
    pub(crate) const MEMBERS: ContentScope = ContentScope(-1);
    const OPERATOR: ContentScope = ContentScope(-2);

    /// One owner, for content that was read with a token of theirs.
    pub(crate) fn owner(owner: Owner) -> ContentScope {
        match owner {
            Owner::Operator => Self::OPERATOR,
            Owner::Account(_) => ContentScope(owner.id()),
        }
    }

    /// The scope of the content that a source shows.
    pub(crate) fn of_source(owner: Owner, audience: Audience, is_with_token: bool) -> ContentScope {
        match audience {
            _ if !is_with_token => Self::WORLD,
            Audience::Public => Self::WORLD,
            Audience::Members => Self::MEMBERS,
            Audience::Private => Self::owner(owner),
        }
    }

    /// The people who may read it.
    pub(crate) fn audience(self) -> Audience {
        match self {
            Self::WORLD => Audience::Public,
            Self::MEMBERS => Audience::Members,
            ContentScope(_) => Audience::Private,
        }
    }

    /// Reads the value of a column.
    pub(crate) fn from_sql(id: i64) -> ContentScope {
        ContentScope(id)
    }

    /// The value of a column.
    pub(crate) fn sql(self) -> i64 {
        self.0
    }
}

/// The scopes of content that a viewer may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadableScopes {
    /// The viewer's own scope; `None` if the viewer has no account.
    own: Option<ContentScope>,
}

impl ReadableScopes {
    /// The scopes of a viewer.
    pub(crate) fn of(viewer: Viewer) -> ReadableScopes {
        ReadableScopes {
            own: viewer.owner().map(ContentScope::owner),
        }
    }

    /// The scopes of a source's readers, as far as this one scope tells them. The content is then that which the source
    /// was shown.
    pub(crate) fn of_scope(scope: ContentScope) -> ReadableScopes {
        ReadableScopes {
            own: Some(scope).filter(|scope| *scope != ContentScope::WORLD),
        }
    }

    /// The viewer's own scope, if it has one.
    pub(crate) fn own(self) -> Option<ContentScope> {
        self.own
    }

    /// All of them, as values of a column.
    pub(crate) fn all(self) -> Vec<i64> {
        let of_account = self.own.map(|own| [ContentScope::MEMBERS, own]);
        let all = std::iter::once(ContentScope::WORLD).chain(of_account.into_iter().flatten());
        all.map(ContentScope::sql).collect()
    }

    /// True if content of a scope may be read.
    pub(crate) fn has(self, scope: ContentScope) -> bool {
        scope == ContentScope::WORLD
            || self.own.is_some() && scope == ContentScope::MEMBERS
            || self.own == Some(scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id_types::LocalAccountId;

    #[test]
    fn scopes_are_apart_and_each_is_read_by_its_viewers_alone() {
        let (ann, bob) = (LocalAccountId::new(1 << 50), LocalAccountId::new(2 << 50));
        let of = |owner, audience| ContentScope::of_source(owner, audience, true);
        let scopes = [
            of(Owner::Operator, Audience::Public),
            of(Owner::Account(ann), Audience::Members),
            of(Owner::Operator, Audience::Private),
            of(Owner::Account(ann), Audience::Private),
        ];
        let readable = |viewer| scopes.map(|scope| ReadableScopes::of(viewer).has(scope));
        assert_eq!(readable(Viewer::Anonymous), [true, false, false, false]);
        assert_eq!(readable(Viewer::Operator), [true, true, true, false]);
        assert_eq!(readable(Viewer::Account(ann)), [true, true, false, true]);
        assert_eq!(readable(Viewer::Account(bob)), [true, true, false, false]);
        let without_token = ContentScope::of_source(Owner::Account(ann), Audience::Private, false);
        assert_eq!(without_token, ContentScope::WORLD);
    }
}
