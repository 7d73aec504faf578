//! The USNs under which entries left the readers who do not own their source.
//!
//! One sequence of USNs counts the changes of all entries, including those that such a reader never
//! sees. So the reader's replica must not learn of each end of an entry. Two columns store the last
//! USN under which an entry that a kind of reader was shown left that reader: it ended, or its post
//! was narrowed. Later changes of the entry do not move them, since they concern others. An entry
//! that comes back keeps them. They are null if the reader was never shown the entry.

use driftline_core::{
    names::audience::{Audience, Reader},
    post::Visibility,
};

/// The column of `entry` for a reader; `None` for the owner, whom each change concerns.
pub(crate) fn column(reader: Reader) -> Option<&'static str> {
    match reader {
        Reader::Owner => None,
        Reader::Member => Some("left_members_usn"),
        Reader::World => Some("left_world_usn"),
    }
}

/// The assignments of both columns in an update of `entry` that may end entries or narrow them.
/// `r.usn` is the new USN. The arguments are expressions for the new values of `entry.gone` and
/// `entry.visibility`.
pub(crate) fn assignments(gone: &str, visibility: &str) -> String {
    let of_reader = |reader| {
        let column = column(reader)?;
        // The widest audience: a source may get it later.
        let shown = narrowest_shown(reader);
        Some(format!(
            "{column} = case when not entry.gone and entry.visibility <= {shown}
                 and ({gone} or {visibility} > {shown}) then r.usn else entry.{column} end"
        ))
    };
    let all: Vec<String> = [Reader::Member, Reader::World]
        .into_iter()
        .filter_map(of_reader)
        .collect();
    all.join(", ")
}

/// The narrowness of the narrowest posts that a reader is shown; -1, which no post has, for none.
fn narrowest_shown(reader: Reader) -> i64 {
    Audience::Public
        .shows(reader)
        .map_or(-1, Visibility::narrowness)
}
