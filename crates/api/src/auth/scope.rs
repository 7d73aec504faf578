//! Mastodon's scopes, and two of Driftline's own: what a token may do.

use std::fmt;

/// Declares the scopes: each with its name, and the wider scopes of which each includes it.
macro_rules! scopes {
    ($($variant:ident $name:literal in [$($wider:ident),*],)*) => {
        /// What a token may be allowed to do, by Mastodon's names. What Mastodon does not have begins with `driftline:`,
        /// and no wider scope includes it: an app that asks for `write` does not mean it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Scope {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Scope {
            /// Every scope, the wide ones before those that they include.
            pub const ALL: &'static [Scope] = &[$(Scope::$variant),*];

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The scopes that include it.
            const fn wider(self) -> &'static [Scope] {
                match self { $(Self::$variant => &[$(Scope::$wider),*],)* }
            }
        }

        /// Types that name a scope, for extractors.
        pub(crate) mod needs {
            $(
                #[doc = concat!("Needs `", $name, "`.")]
                #[allow(dead_code, reason = "routes name them one by one")]
                pub(crate) enum $variant {}
                impl super::RouteScope for $variant {
                    const SCOPE: Option<super::Scope> = Some(super::Scope::$variant);
                }
            )*

            /// Needs a token, whatever its scopes.
            pub(crate) enum NoScope {}
            impl super::RouteScope for NoScope {
                const SCOPE: Option<super::Scope> = None;
            }
        }
    };
}

scopes! {
    Read "read" in [],
    Write "write" in [],
    Follow "follow" in [],
    Push "push" in [],
    Profile "profile" in [],
    AdminRead "admin:read" in [],
    AdminWrite "admin:write" in [],
    ReadAccounts "read:accounts" in [Read],
    ReadBlocks "read:blocks" in [Read, Follow],
    ReadBookmarks "read:bookmarks" in [Read],
    ReadFavourites "read:favourites" in [Read],
    ReadFilters "read:filters" in [Read],
    ReadFollows "read:follows" in [Read, Follow],
    ReadLists "read:lists" in [Read],
    ReadMutes "read:mutes" in [Read, Follow],
    ReadNotifications "read:notifications" in [Read],
    ReadSearch "read:search" in [Read],
    ReadStatuses "read:statuses" in [Read],
    WriteAccounts "write:accounts" in [Write],
    WriteBlocks "write:blocks" in [Write, Follow],
    WriteBookmarks "write:bookmarks" in [Write],
    WriteConversations "write:conversations" in [Write],
    WriteFavourites "write:favourites" in [Write],
    WriteFilters "write:filters" in [Write],
    WriteFollows "write:follows" in [Write, Follow],
    WriteLists "write:lists" in [Write],
    WriteMedia "write:media" in [Write],
    WriteMutes "write:mutes" in [Write, Follow],
    WriteNotifications "write:notifications" in [Write],
    WriteReports "write:reports" in [Write],
    WriteStatuses "write:statuses" in [Write],
    AdminReadAccounts "admin:read:accounts" in [AdminRead],
    AdminReadReports "admin:read:reports" in [AdminRead],
    AdminReadDomainAllows "admin:read:domain_allows" in [AdminRead],
    AdminReadDomainBlocks "admin:read:domain_blocks" in [AdminRead],
    AdminReadIpBlocks "admin:read:ip_blocks" in [AdminRead],
    AdminReadEmailDomainBlocks "admin:read:email_domain_blocks" in [AdminRead],
    AdminReadCanonicalEmailBlocks "admin:read:canonical_email_blocks" in [AdminRead],
    AdminWriteAccounts "admin:write:accounts" in [AdminWrite],
    AdminWriteReports "admin:write:reports" in [AdminWrite],
    AdminWriteDomainAllows "admin:write:domain_allows" in [AdminWrite],
    AdminWriteDomainBlocks "admin:write:domain_blocks" in [AdminWrite],
    AdminWriteIpBlocks "admin:write:ip_blocks" in [AdminWrite],
    AdminWriteEmailDomainBlocks "admin:write:email_domain_blocks" in [AdminWrite],
    AdminWriteCanonicalEmailBlocks "admin:write:canonical_email_blocks" in [AdminWrite],
    Sources "driftline:sources" in [],
    Publish "driftline:publish" in [],
}

/// A scope as a type: what a route's extractor needs.
pub(crate) trait RouteScope {
    /// The scope; `None` if any token will do.
    const SCOPE: Option<Scope>;
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ScopeSet(u64);

/// A name that is no scope's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The requested scope is invalid, unknown, or malformed.")]
pub struct UnknownScope;

impl ScopeSet {
    /// What an app has that asks for nothing: `read`, as on Mastodon.
    pub const DEFAULT: Self = Self(1 << Scope::Read as u64);

    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.iter().copied().collect()
    }

    /// Parses names with white space between them; [`ScopeSet::DEFAULT`] if there are none.
    ///
    /// # Errors
    /// [`UnknownScope`] if one is unknown.
    pub fn parse(text: &str) -> Result<Self, UnknownScope> {
        let mut set = Self::default();
        for name in text.split_ascii_whitespace() {
            let known = Scope::ALL.iter().find(|scope| scope.name() == name);
            set = set.with(*known.ok_or(UnknownScope)?);
        }
        Ok(if set.0 == 0 { Self::DEFAULT } else { set })
    }

    /// The same with one more.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | 1 << scope as u64)
    }

    /// Whether a token with these may do what needs `scope`.
    pub fn covers(self, scope: Scope) -> bool {
        self.names(scope) || scope.wider().iter().any(|wider| self.names(*wider))
    }

    /// Whether these cover each of the others: `read` covers `read:statuses`, and the other way round not.
    pub fn covers_all(self, others: Self) -> bool {
        others.iter().all(|scope| self.covers(scope))
    }

    /// Those that are named, in one order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        let all = Scope::ALL.iter().copied();
        all.filter(move |scope| self.names(*scope))
    }

    const fn names(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u64) != 0
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::default(), Self::with)
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, scope) in self.iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            write!(f, "{space}{}", scope.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeSet({self})")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_set() -> impl Strategy<Value = ScopeSet> {
        let scopes = prop::collection::vec(prop::sample::select(Scope::ALL), 1..8);
        scopes.prop_map(|scopes| scopes.into_iter().collect())
    }

    proptest! {
        #[test]
        fn what_is_printed_is_parsed_again(set in any_set()) {
            prop_assert_eq!(ScopeSet::parse(&set.to_string()), Ok(set));
        }

        #[test]
        fn order_and_repetition_mean_nothing(set in any_set()) {
            let mut names: Vec<&str> = set.iter().map(Scope::name).collect();
            names.reverse();
            let text = format!(" {}  {}\t", names.join("  "), names[0]);
            prop_assert_eq!(ScopeSet::parse(&text), Ok(set));
        }

        #[test]
        fn covering_is_reflexive_and_transitive(a in any_set(), b in any_set(), c in any_set()) {
            prop_assert!(a.covers_all(a));
            if a.covers_all(b) && b.covers_all(c) {
                prop_assert!(a.covers_all(c));
            }
        }

        #[test]
        fn more_scopes_cover_no_less(a in any_set(), b in any_set()) {
            let both: ScopeSet = a.iter().chain(b.iter()).collect();
            prop_assert!(both.covers_all(a) && both.covers_all(b));
            for scope in Scope::ALL {
                prop_assert_eq!(both.covers(*scope), a.covers(*scope) || b.covers(*scope));
            }
        }

        #[test]
        fn a_part_of_a_scope_never_covers_the_whole(set in any_set()) {
            for scope in Scope::ALL.iter().filter(|scope| scope.wider().is_empty()) {
                prop_assert_eq!(set.covers(*scope), set.iter().any(|named| named == *scope));
            }
        }

        #[test]
        fn other_texts_are_no_scopes(name in "[a-z:_]{1,12}") {
            let is_known = Scope::ALL.iter().any(|scope| scope.name() == name);
            prop_assert_eq!(ScopeSet::parse(&name).is_ok(), is_known);
        }
    }

    #[test]
    fn names_tell_which_scope_is_wider() {
        for scope in Scope::ALL {
            if let Some((wider, _)) = scope.name().rsplit_once(':')
                && !["admin", "driftline"].contains(&wider)
            {
                assert!(ScopeSet::parse(wider).unwrap().covers(*scope), "{scope:?}");
            }
        }
        let read = ScopeSet::parse("").unwrap();
        assert_eq!(read, ScopeSet::DEFAULT);
        assert!(read.covers(Scope::ReadStatuses) && !read.covers(Scope::WriteStatuses));
        assert!(!read.covers(Scope::AdminRead) && !read.covers(Scope::Push));
        let write = ScopeSet::parse("write follow").unwrap();
        for own in [Scope::Sources, Scope::Publish] {
            assert!(!write.covers(own), "apps that write do not ask for {own:?}");
        }
        let sources = ScopeSet::parse("driftline:sources").unwrap();
        assert!(!sources.covers(Scope::Publish));
        let follow = ScopeSet::parse("follow").unwrap();
        for (scope, is_covered) in [
            (Scope::ReadFollows, true),
            (Scope::WriteFollows, true),
            (Scope::WriteMutes, true),
            (Scope::ReadBlocks, true),
            (Scope::ReadStatuses, false),
            (Scope::WriteLists, false),
            (Scope::Read, false),
        ] {
            assert_eq!(follow.covers(scope), is_covered, "{scope:?}");
        }
        assert!(ScopeSet::parse("read:nothing").is_err());
        assert!(ScopeSet::parse("READ").is_err());
        assert_eq!(Scope::ALL.len(), 47, "a set has 64 places");
    }
}
