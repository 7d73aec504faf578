//! Parses the events of a stream.

use driftline_core::{
    answer::Event,
    upstream_id::{MAX_ID_BYTES, UpstreamId},
};
use driftline_mastodon::RawObject;

use crate::{excerpt, failure, parse, segment};

/// One parsed event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamMessage {
    /// Something about a post.
    Event(Event),
    /// Something else: a notification, an announcement, changed filters.
    Other,
    /// Nothing that can be used: a post without an ID, an event that is too
    /// large.
    Unusable,
}

/// Parses an event by its name and data.
pub(super) fn read(name: &str, data: &[u8]) -> StreamMessage {
    let post = |event: fn(Box<_>) -> Event| match parse::post(data) {
        Ok(post) => StreamMessage::Event(event(Box::new(post))),
        Err(_) => StreamMessage::Unusable,
    };
    match name {
        "update" => post(Event::Posted),
        "status.update" => post(Event::Edited),
        "delete" => deleted(data),
        _ => StreamMessage::Other,
    }
}

/// The data is the bare ID; some servers quote it.
fn deleted(data: &[u8]) -> StreamMessage {
    let Ok(text) = std::str::from_utf8(data.trim_ascii()) else {
        return StreamMessage::Unusable;
    };
    let quoted = serde_json::from_str::<String>(text).ok();
    let id = quoted.as_deref().unwrap_or(text);
    let is_id = segment::is_usable(id)
        && id.len() <= MAX_ID_BYTES
        && id.bytes().all(|byte| byte.is_ascii_graphic());
    if is_id {
        StreamMessage::Event(Event::Deleted(UpstreamId::from(id)))
    } else {
        StreamMessage::Unusable
    }
}

/// Parses a message of a WebSocket.
///
/// # Errors
/// What the server says instead, if it is an error.
pub(super) fn read_message(message: &str) -> Result<StreamMessage, String> {
    let Ok(fields) = RawObject::parse(message) else {
        return Ok(StreamMessage::Unusable);
    };
    let Some(name) = fields.text("event") else {
        return match failure::said_by_object(message.as_bytes()) {
            Some(said) => Err(excerpt::words(said.as_bytes())),
            None => Ok(StreamMessage::Other),
        };
    };
    let Some(payload) = fields.get("payload") else {
        return Ok(StreamMessage::Other);
    };
    // The payload is JSON in a text; some servers send it as it is.
    Ok(match serde_json::from_str::<String>(payload.get()) {
        Ok(text) => read(&name, text.as_bytes()),
        Err(_) => read(&name, payload.get().as_bytes()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(message: &StreamMessage) -> (&'static str, &str) {
        match message {
            StreamMessage::Event(Event::Posted(post)) => ("posted", post.id.as_str()),
            StreamMessage::Event(Event::Edited(post)) => ("edited", post.id.as_str()),
            StreamMessage::Event(Event::Deleted(id)) => ("deleted", id.as_str()),
            StreamMessage::Other => ("other", ""),
            StreamMessage::Unusable => ("unusable", ""),
        }
    }

    #[test]
    fn each_event_has_its_meaning() {
        for (name, data, expected) in [
            ("update", r#"{"id":"7"}"#, ("posted", "7")),
            ("update", r#"{"id":7}"#, ("posted", "7")),
            ("update", r#"{"uri":"x"}"#, ("unusable", "")),
            ("update", "[]", ("unusable", "")),
            ("update", "", ("unusable", "")),
            ("status.update", r#"{"id":"7"}"#, ("edited", "7")),
            ("delete", "7", ("deleted", "7")),
            ("delete", "\"7\"", ("deleted", "7")),
            ("delete", " 01H ", ("deleted", "01H")),
            ("delete", "", ("unusable", "")),
            ("delete", "..", ("unusable", "")),
            ("delete", "a b", ("unusable", "")),
            ("notification", "{}", ("other", "")),
            ("", "7", ("other", "")),
        ] {
            assert_eq!(id(&read(name, data.as_bytes())), expected, "{name} {data}");
        }
        let long = "7".repeat(MAX_ID_BYTES + 1);
        assert_eq!(read("delete", long.as_bytes()), StreamMessage::Unusable);
    }

    #[test]
    fn messages_hold_their_payload_as_text_or_as_it_is() {
        for message in [
            r#"{"stream":["user"],"event":"update","payload":"{\"id\":\"7\"}"}"#,
            r#"{"event":"update","payload":{"id":"7"}}"#,
        ] {
            let event = read_message(message).expect("an event");
            assert_eq!(id(&event), ("posted", "7"), "{message}");
        }
        for message in [
            r#"{"event":"delete","payload":"7"}"#,
            r#"{"event":"delete","payload":7}"#,
        ] {
            let event = read_message(message).expect("an event");
            assert_eq!(id(&event), ("deleted", "7"), "{message}");
        }
        assert_eq!(
            read_message(r#"{"error":"Unknown channel\nrequested","status":400}"#),
            Err("Unknown channel requested".to_owned())
        );
        assert_eq!(read_message("{"), Ok(StreamMessage::Unusable));
        assert_eq!(
            read_message(r#"{"event":"filters_changed"}"#),
            Ok(StreamMessage::Other)
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(
            name in prop_oneof![
                Just("update".to_owned()), Just("status.update".to_owned()),
                Just("delete".to_owned()), any::<String>(),
            ],
            data in proptest::collection::vec(any::<u8>(), 0..200),
            text in any::<String>(),
        ) {
            let _ = read(&name, &data);
            let _ = read(&name, text.as_bytes());
            let _ = read_message(&text);
            let quoted = serde_json::to_string(&text).expect("JSON");
            let _ = read_message(&format!(r#"{{"event":"{name}","payload":{quoted}}}"#));
        }
    }
}
