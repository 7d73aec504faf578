use std::borrow::Cow;

use driftline_core::sync::{ObjectKey, ObjectKind, POST_ID_PREFIX};
use driftline_db::Tx;
use driftline_mastodon::RawObject;
use serde_json::Value;
use url::Url;

use crate::{Replica, ReplicaError, object_row};

impl Replica {
    /// The name that a post has in keys, by a text that a person gave: its `uri` or its `url`, or those of a boost of it. Of a
    /// post that the replica does not have, the text is taken for its `uri`.
    ///
    /// # Errors
    /// [`ReplicaError::NoPost`] if the replica has no such post, and the text is no address; [`ReplicaError::Key`] if no key has room
    /// for it; [`ReplicaError::Db`] if the database fails.
    pub async fn post_name(&self, text: &str) -> Result<String, ReplicaError> {
        let given = text.to_owned();
        let known = self.read(move |tx| known_name(tx, &given)).await?;
        match known {
            Some(name) => Ok(name),
            None if is_address(text) || is_id(text) => Ok(text.to_owned()),
            None => Err(ReplicaError::NoPost(text.to_owned())),
        }
    }
}

/// The name of a post that the replica has. Reads all posts, which takes a tenth of a second for 20,000.
fn known_name(tx: &mut Tx<'_>, text: &str) -> Result<Option<String>, ReplicaError> {
    // What the person keeps of a post has its name, also if that came before the post, or the post is deleted.
    for kind in [ObjectKind::Bookmark, ObjectKind::Note] {
        let kept = object_row::get(tx, &ObjectKey::named(kind, text)?)?;
        if kept.is_some_and(|object| object.value.is_some()) {
            return Ok(Some(text.to_owned()));
        }
    }
    // The posts' JSON has the address in this form.
    let part = Value::from(text).to_string();
    let values = tx.query(
        "select value from entry where instr(value, $1) > 0
         union all
         select value from object
         where key >= 'bookmark:' and key < 'bookmark;' and instr(value, $1) > 0",
        &[&part],
        |row| row.text("value"),
    )?;
    let named = |member| values.iter().find_map(|value| name_if(value, text, member));
    Ok(named("uri").or_else(|| named("url")))
}

/// The name of the post in an object's value, or of the post that it boosts, if either has this text as its `member`.
fn name_if(value: &str, text: &str, member: &str) -> Option<String> {
    let value = RawObject::parse(value).unwrap_or_default();
    let status = value.object("status");
    let boosted = status.object("reblog");
    let has_address = |post: &RawObject<'_>| post.some_text(member).as_deref() == Some(text);
    if !has_address(&status) && !has_address(&boosted) {
        return None;
    }
    let post = match boosted.get("id") {
        Some(_) => boosted,
        None => status,
    };
    let uri = post.some_text("uri").map(Cow::into_owned);
    // Servers name a post otherwise if no key has room for its `uri`.
    let uri = uri.filter(|uri| ObjectKey::named(ObjectKind::Note, uri).is_ok());
    uri.or_else(|| Some(format!("{POST_ID_PREFIX}{}", post.some_text("id")?)))
}

/// True if a text may be the address of a post.
fn is_address(text: &str) -> bool {
    let is_of_post = |url: Url| {
        matches!(url.scheme(), "http" | "https") && (url.path() != "/" || url.query().is_some())
    };
    !text.contains(char::is_whitespace) && Url::parse(text).is_ok_and(is_of_post)
}

/// True if a text may be the name of a post without a `uri`.
fn is_id(text: &str) -> bool {
    let id = text.strip_prefix(POST_ID_PREFIX);
    id.is_some_and(|id| id.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_post_is_told_from_other_texts() {
        for text in ["https://a.example/1", "http://a.example:8080/@ann/1"] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "",
            "297",
            "@ann@a.example",
            "a.example/1",
            "https://a.example",
            "https://a.example/1 2",
            "ftp://a.example/1",
        ] {
            assert!(!is_address(text), "{text}");
        }
        assert!(is_id("id:12") && !is_id("id:") && !is_id("12"));
    }
}
