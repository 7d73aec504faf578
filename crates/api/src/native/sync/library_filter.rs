use driftline_core::predicate::{Matcher, NeededFacts, PostFacts, Predicate, Usage};
use driftline_mastodon::StatedFacts;
use driftline_store::{AccountId, timeline::TimelinePost};

use super::ACCOUNT;
use crate::transport::{ApiError, ApiResult};

/// The filter of a replica of a source's library. It reads nothing but the post as the source shows it: the rest of what
/// predicates may ask changes without a USN.
pub(super) struct LibraryFilter {
    matcher: Matcher,
    needed: NeededFacts,
    /// Its JSON form.
    json: String,
}

impl LibraryFilter {
    /// The filter of a library, if it has one.
    ///
    /// # Errors
    /// [`ApiError::Unprocessable`] if the library is the account's own, or the filter has a term that a filter must not have.
    pub(super) fn of_library(
        library: &str,
        predicate: Option<&Predicate>,
    ) -> ApiResult<Option<Self>> {
        let Some(predicate) = predicate else {
            return Ok(None);
        };
        if library == ACCOUNT {
            return Err(ApiError::Unprocessable(
                "filter: only libraries of sources have filters".to_owned(),
            ));
        }
        predicate
            .validate(Usage::Sync)
            .map_err(|error| ApiError::Unprocessable(format!("filter: {error}")))?;
        Ok(Some(Self {
            matcher: Matcher::new(predicate),
            needed: predicate.needed_facts(),
            json: serde_json::to_string(predicate).map_err(|_| ApiError::Internal)?,
        }))
    }

    /// Its JSON form, by which filters differ.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    /// True if a post of the source of the server at `origin` matches. Nicknames are not searched.
    pub(super) fn matches(&self, post: &TimelinePost, origin: &str) -> bool {
        let stated = StatedFacts::read_needed(&post.raw, origin, self.needed);
        let others = PostFacts {
            author_id: post.account.map(AccountId::raw),
            visibility: post.visibility,
            created_at_ms: post.created_at_ms,
            ..PostFacts::bare(post.id.raw(), "")
        };
        stated.is_match(&self.matcher, others)
    }
}

#[cfg(test)]
mod tests {
    use driftline_core::predicate::NameContext;

    use super::*;

    fn filter(library: &str, text: &str) -> ApiResult<Option<LibraryFilter>> {
        let names = NameContext {
            origin: "https://a.example",
            viewer: None,
        };
        let predicate = Predicate::parse(text, &names).expect(text);
        LibraryFilter::of_library(library, Some(&predicate))
    }

    #[test]
    fn a_term_that_changes_without_a_usn_is_refused_by_name() {
        for term in [
            "favourites:>3",
            "is:followed",
            "source:home",
            "via:a.example",
        ] {
            let refused = filter("source:3", &format!("cat {term}"));
            let Err(ApiError::Unprocessable(why)) = refused else {
                panic!("{term}");
            };
            assert!(why.contains(term), "{why}");
        }
        assert!(filter(ACCOUNT, "cat").is_err());
        let cat = filter("source:3", "cat -is:reply");
        assert!(matches!(cat, Ok(Some(_))));
    }

    #[test]
    fn other_filters_have_other_texts() {
        let json = |text: &str| {
            let filter = filter("source:3", text);
            filter.ok().flatten().expect("a filter").json().to_owned()
        };
        assert_eq!(json("cat"), json(" cat "));
        assert_ne!(json("cat"), json("=cat"));
    }
}
