use std::fmt;

/// The `Link` header of a page of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The address of the next older page.
    pub next: String,
    /// The address of the next newer page.
    pub prev: String,
}

/// Writes the older page first, as toot expects.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { next, prev } = self;
        write!(f, "<{next}>; rel=\"next\", <{prev}>; rel=\"prev\"")
    }
}
