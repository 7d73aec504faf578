//! The items of a list, each as it came: one that cannot be read costs none of the others.

use driftline_core::{
    answer::{Failure, FailureKind, Listed, Unreadable},
    post::Post,
    upstream_id::UpstreamId,
};
use driftline_mastodon::{StatusError, end_of_string};
use serde::de::IgnoredAny;

use crate::{body, excerpt, failure};

/// What a page of a timeline lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Items {
    /// Its posts, in its order.
    pub listed: Vec<Listed>,
    /// The positions of items that are no posts, or cannot be read, in order.
    pub passed: Vec<UpstreamId>,
    /// Items that cannot be read.
    pub unreadable: Vec<Unreadable>,
}

/// The position of an item, and its post if it is one.
pub(crate) type Item = (UpstreamId, Option<Post>);

/// Splits a list into its items without reading them: neither depth nor a value that is no JSON in
/// one of them matters.
///
/// # Errors
/// A [`Failure`] without an address if its end is missing, or its items cannot be told apart.
pub(crate) fn split(list: &[u8]) -> Result<Vec<&[u8]>, Failure> {
    split_balanced(list).ok_or_else(|| match serde_json::from_slice::<IgnoredAny>(list) {
        Err(error) => body::unreadable(list, &error),
        Ok(_) => Failure::new(
            FailureKind::BadJson,
            format!("the answer lists more than {MAX_ITEMS} items"),
        ),
    })
}

fn split_balanced(list: &[u8]) -> Option<Vec<&[u8]>> {
    let mut items = Vec::new();
    let (mut at, mut start, mut depth) = (1, 1, 0_usize);
    // An item that is an object or a list ends where that does.
    let mut is_closed = false;
    loop {
        let byte = *list.get(at)?;
        match byte {
            b',' | b']' if depth == 0 => {
                let item = list[start..at].trim_ascii();
                let is_empty_list = byte == b']' && items.is_empty();
                if item.is_empty() {
                    return (is_empty_list && at + 1 == list.len()).then_some(items);
                }
                items.push(item);
                if byte == b']' {
                    return (at + 1 == list.len()).then_some(items);
                }
                if items.len() == MAX_ITEMS {
                    return None;
                }
                (start, is_closed) = (at + 1, false);
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ if is_closed => return None,
            b'"' => {
                at = end_of_string(list, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                is_closed = depth == 0;
            }
            _ => {}
        }
        at += 1;
    }
}

impl Items {
    /// Sorts what was read of each of a page's items.
    ///
    /// # Errors
    /// A [`Failure`] without an address if no item has a position and they are not a few whose
    /// reader takes them `for_posts`: nothing then says that the answer is a page of the timeline.
    pub(crate) fn sort<'b>(
        read: impl IntoIterator<Item = (&'b [u8], Result<Item, StatusError>)>,
        position_of: impl Fn(&[u8]) -> Option<UpstreamId>,
        for_posts: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, Failure> {
        let mut items = Self::default();
        let (mut first_failure, mut above) = (None, None);
        // From here on, unreadable items still want the position of their neighbour below.
        let mut open = 0;
        for (number, (bytes, item)) in (1..).zip(read) {
            let position = match &item {
                Ok((position, _)) => Some(position.clone()),
                Err(_) => position_of(bytes),
            };
            if position.is_some() {
                for unreadable in &mut items.unreadable[open..] {
                    unreadable.below.clone_from(&position);
                }
                open = items.unreadable.len();
            }
            match item {
                Ok((position, Some(post))) => items.listed.push(Listed { position, post }),
                Ok((position, None)) => items.passed.push(position),
                Err(bad) => {
                    items.passed.extend(position.clone());
                    items.unreadable.push(Unreadable {
                        position: position.clone(),
                        above: above.clone(),
                        below: None,
                        bytes: bytes.to_vec(),
                        reason: excerpt::words(bad.to_string().as_bytes()),
                    });
                    let failure = || failure::of_item(bad, &format!("item {number} of the page"));
                    first_failure.get_or_insert_with(failure);
                }
            }
            above = position.or(above);
        }
        match first_failure {
            Some(failure) if above.is_none() => {
                let unreadable = &items.unreadable;
                let are_few = unreadable.len() <= MAX_WITHOUT_ID;
                match are_few && unreadable.iter().all(|item| for_posts(&item.bytes)) {
                    true => Ok(items),
                    false => Err(failure),
                }
            }
            _ => Ok(items),
        }
    }

    /// The posts, in order.
    ///
    /// # Errors
    /// A [`Failure`] without an address if one could not be read.
    pub fn posts(self) -> Result<Vec<Post>, Failure> {
        match self.unreadable.first() {
            Some(bad) => Err(Failure::new(
                FailureKind::BadJson,
                format!("an item of the answer cannot be read: {}", bad.reason),
            )),
            None => Ok(self.listed.into_iter().map(|listed| listed.post).collect()),
        }
    }
}

/// The most items without a position that may be all of a page.
const MAX_WITHOUT_ID: usize = 5;
/// Far more than any page has.
const MAX_ITEMS: usize = 10_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(list: &str) -> Option<Vec<&str>> {
        let items = split_balanced(list.as_bytes())?.into_iter();
        items.map(|item| std::str::from_utf8(item).ok()).collect()
    }

    #[test]
    fn items_are_what_stands_between_the_commas_of_the_list() {
        for (list, items) in [
            ("[]", &[][..]),
            ("[ \n]", &[]),
            (
                r#"[ 1 ,"a,]\"" , {"x":[1,"}"],"y":{}} ]"#,
                &["1", r#""a,]\"""#, r#"{"x":[1,"}"],"y":{}}"#],
            ),
            ("[{\"x\":},{x},[tru]]", &["{\"x\":}", "{x}", "[tru]"]),
        ] {
            assert_eq!(texts(list).as_deref(), Some(items), "{list}");
        }
    }

    #[test]
    fn a_list_that_has_no_end_or_no_commas_is_refused() {
        for list in [
            "[",
            "[1",
            "[1,",
            "[1,]",
            "[,1]",
            "[1,,2]",
            "[{]",
            "[{}",
            "[{} {}]",
            "[{}1]",
            "[\"a",
            "[\"a\\\"]",
            "[1]]",
            "[1]x",
            "[}]",
            "[{}}]",
        ] {
            assert_eq!(texts(list), None, "{list}");
        }
    }

    #[test]
    fn neither_depth_nor_number_has_no_end() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(texts(&deep).map(|items| items.len()), Some(1));
        let many = format!("[{}0]", "0,".repeat(MAX_ITEMS));
        assert_eq!(
            split(many.as_bytes()).map_err(|failure| failure.kind),
            Err(FailureKind::BadJson)
        );
    }

    proptest! {
        #[test]
        fn what_a_reader_of_json_splits_is_split_alike(
            items in proptest::collection::vec(any::<Option<String>>(), 0..6),
        ) {
            let json = serde_json::to_string(&items).expect("JSON");
            let texts = texts(&json).expect("a list");
            let read: Vec<Option<String>> =
                texts.iter().map(|text| serde_json::from_str(text).expect("JSON")).collect();
            prop_assert_eq!(read, items);
        }

        #[test]
        fn no_bytes_break_it(bytes: Vec<u8>) {
            let _ = split_balanced(&bytes);
        }
    }
}
