//! The codec against bytes of real clients, and against anything at all.

use driftline_id_service::thrift::{Call, Failure, MAX_DEPTH, Request, WireError, parse_reply};
use proptest::{collection::vec, prelude::*};

use crate::support::{bytes, call};

/// What a real client sends for `get_id("foo")`, and what it must get for 42.
#[test]
fn the_bytes_of_the_service_of_2010() {
    let sent = bytes("0000001d 80010001 00000006 6765745f6964 00000000 0b0001 00000003 666f6f 00");
    assert_eq!(call("get_id", 0, Some("foo")), sent);
    let read = Call::parse(&sent[4..]).unwrap();
    let agent = Some(&b"foo"[..]);
    assert_eq!(read.request, Request::Id { agent });
    assert_eq!((read.name, read.sequence), (&b"get_id"[..], 0));
    let mut reply = Vec::new();
    read.reply(&mut reply, 42);
    assert_eq!(
        reply,
        bytes("0000001e 80010002 00000006 6765745f6964 00000000 0a0000 000000000000002a 00")
    );
}

#[test]
fn a_header_may_be_without_a_version() {
    let sent = bytes("00000006 6765745f6964 01 00000007 0b0001 00000003 666f6f 00");
    let read = Call::parse(&sent).unwrap();
    assert_eq!(read.sequence, 7);
    assert!(!read.one_way);
    let agent = Some(&b"foo"[..]);
    assert_eq!(read.request, Request::Id { agent });
}

#[test]
fn an_exception_has_a_message_and_a_type() {
    let sent = call("nothing", 5, None);
    let read = Call::parse(&sent[4..]).unwrap();
    assert_eq!(read.request, Request::Unknown);
    let mut reply = Vec::new();
    read.fail(&mut reply, Failure::UnknownMethod, "no");
    assert_eq!(
        reply,
        bytes(
            "00000024 80010003 00000007 6e6f7468696e67 00000005
             0b0001 00000002 6e6f 080002 00000001 00"
        )
        .as_slice()
    );
    assert_eq!(parse_reply(&reply[4..]), Ok(Err("no".to_owned())));
}

#[test]
fn arguments_that_nobody_knows_are_passed_over() {
    // A map of a list of structs, a set of UUIDs, a double, a bool; then the agent.
    let others = "0d0007 0b 0f 00000001 00000001 61 0c 00000002 020001 01 00 00
                  0e0008 10 00000001 000102030405060708090a0b0c0d0e0f
                  040009 0000000000000000 02000a 01 06000b 0102 03000c 01 08000d 01020304";
    let text =
        format!("80010001 00000006 6765745f6964 00000000 {others} 0b0001 00000003 666f6f 00");
    let sent = bytes(&text.replace('\n', ""));
    let agent = Some(&b"foo"[..]);
    assert_eq!(Call::parse(&sent).unwrap().request, Request::Id { agent });
}

/// Field 1 with another type than a string is as none.
#[test]
fn an_agent_of_another_type_is_none() {
    let sent = bytes("80010001 00000006 6765745f6964 00000000 080001 00000003 00");
    let agent = None;
    assert_eq!(Call::parse(&sent).unwrap().request, Request::Id { agent });
}

#[test]
fn counts_that_claim_too_much_end_at_the_end() {
    let head = "80010001 00000006 6765745f6964 00000000";
    for (arguments, error) in [
        ("0f0001 02 7fffffff", WireError::CutOff),
        ("0d0001 0202 7fffffff", WireError::CutOff),
        ("0b0001 7fffffff", WireError::CutOff),
        ("0b0001 ffffffff", WireError::Length(-1)),
        ("0f0001 00 00000001", WireError::Type(0)),
        ("630001 00", WireError::Type(0x63)),
        ("0b", WireError::CutOff),
    ] {
        let sent = bytes(&format!("{head} {arguments}"));
        let read = Call::parse(&sent).unwrap();
        assert_eq!(read.request, Request::Malformed(error), "{arguments}");
    }
}

#[test]
fn values_are_nested_only_so_deep() {
    let nested = |depth: u32| {
        let mut text = "80010001 00000006 6765745f6964 00000000 0c0002".to_owned();
        text.push_str(&"0c0001".repeat(depth as usize - 1));
        text.push_str(&"00".repeat(depth as usize + 1));
        bytes(&text)
    };
    let request = |sent: &[u8]| format!("{:?}", Call::parse(sent).unwrap().request);
    assert_eq!(request(&nested(MAX_DEPTH)), "Id { agent: None }");
    assert_eq!(request(&nested(MAX_DEPTH + 1)), "Malformed(TooDeep)");
}

#[test]
fn other_messages_and_versions_are_refused() {
    let reply = bytes("80010002 00000006 6765745f6964 00000000 00");
    let read = Call::parse(&reply).unwrap();
    assert_eq!(read.request, Request::NotACall { kind: 2 });
    let compact = bytes("82210006 6765745f6964 00");
    assert_eq!(Call::parse(&compact), Err(WireError::Version(0x8221_0006)));
    assert_eq!(Call::parse(b""), Err(WireError::CutOff));
    assert_eq!(Call::parse(b"GET / HTTP/1.1\r\n"), Err(WireError::CutOff));
}

/// `PROPTEST_CASES` says otherwise; the soak does.
fn config() -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|text| text.parse().ok()).unwrap_or(20_000))
}

proptest! {
    #![proptest_config(config())]

    /// No bytes make the codec panic, or read what is not there.
    #[test]
    fn any_bytes_are_read_or_refused(frame in vec(any::<u8>(), 0..200)) {
        if let Ok(read) = Call::parse(&frame) {
            prop_assert!(read.name.len() <= frame.len());
            let mut reply = Vec::new();
            read.reply(&mut reply, 1);
            prop_assert_eq!(parse_reply(&reply[4..]), Ok(Ok(1)));
        }
        let _ = parse_reply(&frame);
    }

    /// The same near to calls: some bytes of one changed, cut off or put in.
    #[test]
    fn calls_with_a_few_wrong_bytes_are_read_or_refused(
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..6),
        nested in vec(0..17_u8, 0..24),
    ) {
        let mut frame = call("get_id", 9, Some("agent"))[4..].to_vec();
        let at = frame.len() - 1;
        for kind in nested {
            frame.splice(at..at, [kind, 0, 1]);
        }
        for (index, byte, change) in changes {
            let index = index.index(frame.len());
            match change {
                0 => frame[index] = byte,
                1 => frame.truncate(index.max(1)),
                _ => frame.insert(index, byte),
            }
        }
        if let Ok(read) = Call::parse(&frame) {
            let mut reply = Vec::new();
            read.fail(&mut reply, Failure::Internal, "no");
            prop_assert_eq!(parse_reply(&reply[4..]), Ok(Err("no".to_owned())));
        }
    }

    /// What is written is read.
    #[test]
    fn calls_are_read_as_written(agent in "\\PC{0,40}", sequence: i32) {
        let sent = call("get_id", sequence, Some(&agent));
        let read = Call::parse(&sent[4..]).unwrap();
        prop_assert_eq!(read.sequence, sequence);
        let agent = Some(agent.as_bytes());
        prop_assert_eq!(read.request, Request::Id { agent });
    }

    /// A value is read back from its reply, whatever else stands in it.
    #[test]
    fn replies_are_read_as_written(value: i64, sequence: i32) {
        let sent = call("get_timestamp", sequence, None);
        let mut reply = Vec::new();
        Call::parse(&sent[4..]).unwrap().reply(&mut reply, value);
        prop_assert_eq!(parse_reply(&reply[4..]), Ok(Ok(value)));
    }
}
