//! The Thrift server with clients that behave, and with others.

use std::{
    collections::HashSet,
    io::{Read as _, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use driftline_id::{ClockPolicy, Layout, Node, Window, clock::ManualClock};
use driftline_id_service::{
    Issuer,
    thrift::{Client, ClientError, Limits},
};

use crate::support::{Raw, START_MS, bytes, call, running, serve, still};

#[test]
fn the_four_methods() {
    let (issuer, clock) = still(3 * 32 + 7, ClockPolicy::Refuse);
    let server = serve(issuer, Limits::default());
    let mut client = Client::connect(server.address(), Duration::from_secs(10)).unwrap();
    assert_eq!(client.call("get_worker_id", None).unwrap(), 7);
    assert_eq!(client.call("get_datacenter_id", None).unwrap(), 3);
    assert_eq!(client.call("get_timestamp", None).unwrap(), START_MS);
    let first = client.call("get_id", Some("a-1")).unwrap();
    let decoded = Layout::TWITTER.decode(first as u128);
    assert_eq!(decoded.time_ms, START_MS);
    let fields = ["datacenter", "worker", "sequence"].map(|name| decoded.field(name));
    assert_eq!(fields, [Some(3), Some(7), Some(0)]);
    assert_eq!(client.call("get_id", Some("B")).unwrap(), first + 1);
    clock.advance_us(1_000);
    assert_eq!(client.call("get_id", Some("B")).unwrap(), first + (1 << 22));
}

#[test]
fn agents_are_letters_digits_and_hyphens() {
    let server = serve(running(0), Limits::default());
    let mut client = Raw::connect(server.address());
    for agent in ["a", "Z", "foo-bar", "a1-2-", "twitter-client"] {
        client.call("get_id", Some(agent)).unwrap();
    }
    for agent in ["", "1a", "-a", "a_b", "a b", "a.b", "é", "a\n", "a\0"] {
        let refused = client.call("get_id", Some(agent)).unwrap_err();
        assert!(
            refused.starts_with("InvalidUserAgentError: "),
            "{agent:?}: {refused}"
        );
    }
    let refused = client.call("get_id", None).unwrap_err();
    assert!(refused.starts_with("InvalidUserAgentError: "), "{refused}");
}

/// A clock that is behind is reported, leaves the sequence untouched, and IDs resume when it catches up.
#[test]
fn a_clock_that_is_behind_is_refused() {
    let (issuer, clock) = still(0, ClockPolicy::Refuse);
    let server = serve(issuer, Limits::default());
    let mut client = Raw::connect(server.address());
    let first = client.call("get_id", Some("a")).unwrap();
    clock.advance_us(-2_500_000);
    for _ in 0..3 {
        let refused = client.call("get_id", Some("a")).unwrap_err();
        assert!(
            refused.starts_with("InvalidSystemClock: the clock is 2500 ms behind"),
            "{refused}"
        );
    }
    assert_eq!(client.call("get_timestamp", None), Ok(START_MS - 2_500));
    clock.set_us(START_MS * 1_000);
    assert_eq!(client.call("get_id", Some("a")), Ok(first + 1));
}

#[test]
fn a_clock_that_is_a_little_behind_may_be_waited_for() {
    let (issuer, clock) = still(0, ClockPolicy::Wait { at_most_ms: 60_000 });
    let server = serve(issuer, Limits::default());
    let mut client = Raw::connect(server.address());
    let first = client.call("get_id", Some("a")).unwrap();
    clock.advance_us(-50_000);
    client.send(&call("get_id", 1, Some("a")));
    // The others are served meanwhile.
    let mut other = Raw::connect(server.address());
    assert_eq!(other.call("get_timestamp", None), Ok(START_MS - 50));
    clock.set_us(START_MS * 1_000);
    assert_eq!(client.reply(), Ok(first + 1));
}

/// IDs that a signed integer cannot hold are refused, not wrapped.
#[test]
fn ids_that_pass_signed_integers_are_refused() {
    let end_ms = Layout::PULSATE.signed_limit_ms().unwrap();
    let clock = ManualClock::at_ms(end_ms - 1);
    let node = Node::new(&Layout::PULSATE, 0).unwrap();
    let window = Window::unrecorded_ids_may_repeat(node);
    let issuer = Issuer::new(window, Arc::new(clock.clone()), ClockPolicy::Refuse);
    let server = serve(Arc::new(issuer.unwrap()), Limits::default());
    let mut client = Raw::connect(server.address());
    assert!(client.call("get_id", Some("a")).unwrap() > i64::MAX - (1 << 23));
    clock.advance_us(1_000);
    let refused = client.call("get_id", Some("a")).unwrap_err();
    assert!(refused.contains("do not fit signed 64 bits"), "{refused}");
}

#[test]
fn calls_in_one_packet_are_answered_in_order() {
    let server = serve(running(0), Limits::default());
    let mut client = Raw::connect(server.address());
    let mut sent = Vec::new();
    for sequence in 0..2_000 {
        sent.extend(call("get_id", sequence, Some("a")));
    }
    client.send(&sent);
    let mut last = 0;
    for sequence in 0..2_000_i32 {
        let frame = client.frame().unwrap();
        assert_eq!(frame[14..18], sequence.to_be_bytes());
        let id = driftline_id_service::thrift::parse_reply(&frame)
            .unwrap()
            .unwrap();
        assert!(id > last);
        last = id;
    }
}

/// A frame may come a byte at a time.
#[test]
fn calls_in_pieces_are_answered() {
    let server = serve(running(0), Limits::default());
    let mut client = Raw::connect(server.address());
    for byte in call("get_id", 1, Some("a")) {
        client.send(&[byte]);
    }
    client.reply().unwrap();
}

#[test]
fn what_cannot_be_answered_is_an_exception_and_the_next_call_goes_on() {
    let server = serve(running(0), Limits::default());
    let mut client = Raw::connect(server.address());
    let unknown = client.call("get_everything", None).unwrap_err();
    assert!(unknown.contains("\"get_everything\""), "{unknown}");
    // A reply in place of a call.
    client.send(&bytes(
        "00000013 80010002 00000006 6765745f6964 00000000 00",
    ));
    assert!(client.reply().unwrap_err().contains("type 2"));
    // An argument that ends too early.
    client.send(&bytes(
        "00000019 80010001 00000006 6765745f6964 00000000 0b0001 000000ff",
    ));
    assert!(client.reply().unwrap_err().contains("ends within a value"));
    // A call that wants no reply, then one that does.
    client.send(&bytes(
        "00000013 80010004 00000006 6765745f6964 00000000 00",
    ));
    client.call("get_worker_id", None).unwrap();
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let limits = Limits {
        frame_bytes: 100,
        ..Limits::default()
    };
    let server = serve(running(0), limits);
    let wrong: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 64],
        &bytes("00000065"),
        &bytes("00000000"),
        &bytes("00000004 82210006"),
        // Not framed.
        &call("get_id", 1, Some("a"))[4..],
    ];
    for bytes in wrong {
        let mut client = Raw::connect(server.address());
        client.send(bytes);
        assert!(client.has_ended(), "{bytes:?}");
    }
    // Up to the cap all is well.
    let agent = "a".repeat(100 - 26);
    let mut client = Raw::connect(server.address());
    client.call("get_id", Some(&agent)).unwrap();
    client.send(&call("get_id", 1, Some(&format!("{agent}a"))));
    assert!(client.has_ended());
}

#[test]
fn half_a_frame_is_waited_for_only_so_long() {
    let limits = Limits {
        silence: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = serve(running(0), limits);
    let mut idle = Raw::connect(server.address());
    idle.call("get_id", Some("a")).unwrap();
    let mut slow = Raw::connect(server.address());
    let frame = call("get_id", 1, Some("a"));
    slow.send(&frame[..frame.len() - 1]);
    assert!(slow.has_ended());
    // Between frames silence does not matter.
    idle.call("get_id", Some("a")).unwrap();
}

/// A client that sends and does not read is disconnected, and delays no other client.
#[test]
fn replies_that_nobody_reads_are_given_up() {
    let limits = Limits {
        silence: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = serve(running(0), limits);
    let greedy = Raw::connect(server.address());
    greedy
        .stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let calls: Vec<u8> = (0..1_000)
        .flat_map(|sequence| call("get_id", sequence, Some("greedy")))
        .collect();
    let mut other = Raw::connect(server.address());
    let deadline = Instant::now() + Duration::from_secs(60);
    let ended = loop {
        assert!(Instant::now() < deadline, "the server reads on and on");
        match (&greedy.stream).write(&calls) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => break error,
            Ok(_) => {}
        }
        other.call("get_id", Some("a")).unwrap();
    };
    assert!(
        matches!(
            ended.kind(),
            std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe
        ),
        "{ended}"
    );
}

/// Where there are as many connections as there may be, the most silent one makes room.
#[test]
fn idle_connections_shut_nobody_out() {
    let limits = Limits {
        connections: 50,
        ..Limits::default()
    };
    let server = serve(running(0), limits);
    let mut first = Raw::connect(server.address());
    first.call("get_id", Some("a")).unwrap();
    let mut idle: Vec<Raw> = Vec::new();
    for _ in 0..500 {
        idle.push(Raw::connect(server.address()));
        // Who goes on asking stays.
        first.call("get_id", Some("a")).unwrap();
    }
    let mut late = Raw::connect(server.address());
    late.call("get_id", Some("a")).unwrap();
    assert!(idle.first_mut().unwrap().has_ended());
    let last = idle.last_mut().unwrap();
    last.call("get_id", Some("a")).unwrap();
}

/// A burst of peers that only open connections, or send half a frame, does not end a client that
/// asked before them and is silent for the moment.
#[test]
fn openers_do_not_end_who_asked() {
    let limits = Limits {
        connections: 50,
        ..Limits::default()
    };
    let server = serve(running(0), limits);
    let mut client = Raw::connect(server.address());
    client.call("get_id", Some("a")).unwrap();
    let half = &call("get_id", 1, Some("a"))[..9];
    let mut openers: Vec<Raw> = Vec::new();
    for number in 0..300 {
        let mut opener = Raw::connect(server.address());
        if number % 2 == 0 {
            opener.send(half);
        }
        openers.push(opener);
    }
    // The last one is in: then all before it were.
    let last = openers.last_mut().unwrap();
    last.call("get_worker_id", None).unwrap();
    assert!(openers.first_mut().unwrap().has_ended());
    client.call("get_id", Some("a")).unwrap();
}

/// What came before a frame that cannot be read is answered.
#[test]
fn replies_come_before_the_end() {
    let server = serve(running(0), Limits::default());
    let mut client = Raw::connect(server.address());
    let mut sent: Vec<u8> = (0..3)
        .flat_map(|sequence| call("get_id", sequence, Some("a")))
        .collect();
    sent.extend(bytes("7fffffff"));
    client.send(&sent);
    for _ in 0..3 {
        client.reply().unwrap();
    }
    assert!(client.has_ended());
}

/// Clients that send as much as they can do not starve one that asks now and then.
#[test]
fn a_flood_starves_nobody() {
    let server = serve(running(0), Limits::default());
    let stop = Arc::new(AtomicBool::new(false));
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let (mut client, stop) = (Raw::connect(server.address()), Arc::clone(&stop));
            std::thread::spawn(move || {
                let calls: Vec<u8> = (0..200)
                    .flat_map(|sequence| call("get_id", sequence, Some("flood")))
                    .collect();
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    client.send(&calls);
                    for _ in 0..200 {
                        client.reply().unwrap();
                    }
                    count += 200;
                }
                count
            })
        })
        .collect();
    let mut client = Raw::connect(server.address());
    let mut ids = HashSet::new();
    for _ in 0..200 {
        ids.insert(client.call("get_id", Some("a")).unwrap());
    }
    assert_eq!(ids.len(), 200);
    stop.store(true, Ordering::Relaxed);
    let sent: u32 = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
    assert!(sent > 0, "there was no flood");
}

/// Stopping answers what was sent, and ends every connection.
#[tokio::test]
async fn a_server_stops_in_order() {
    let server = serve(running(0), Limits::default());
    let address = server.address();
    let mut idle = Raw::connect(address);
    idle.call("get_id", Some("a")).unwrap();
    let mut busy = Raw::connect(address);
    busy.call("get_id", Some("a")).unwrap();
    busy.send(&[call("get_id", 1, Some("a")), call("get_id", 2, Some("a"))].concat());
    server.stop().await;
    busy.reply().unwrap();
    busy.reply().unwrap();
    assert!(busy.has_ended());
    assert!(idle.has_ended());
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_retired_issuer_refuses() {
    let issuer = running(0);
    let server = serve(Arc::clone(&issuer), Limits::default());
    let mut client = Client::connect(server.address(), Duration::from_secs(10)).unwrap();
    client.call("get_id", Some("a")).unwrap();
    assert!(issuer.retire().is_some());
    let refused = client.call("get_id", Some("a"));
    let Err(ClientError::Refused(message)) = refused else {
        panic!("{refused:?}");
    };
    assert!(message.contains("stopping"), "{message}");
}

/// A service that answers a byte now and then is given up after as long as one that is silent.
#[test]
fn a_client_is_patient_once() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&bytes("00000800")).unwrap();
        while stream.write_all(&[0]).is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut client = Client::connect(address, Duration::from_millis(300)).unwrap();
    let started = Instant::now();
    let answer = client.call("get_worker_id", None);
    assert!(matches!(answer, Err(ClientError::Io(_))), "{answer:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
    drop(client);
    server.join().unwrap();
}

/// The client gives up on whoever answers nonsense.
#[test]
fn a_client_does_not_believe_everything() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        for reply in ["7fffffff", "00000004 00000000", "00000004 82210006"] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 100]);
            stream.write_all(&bytes(reply)).unwrap();
        }
    });
    for _ in 0..3 {
        let mut client = Client::connect(address, Duration::from_secs(10)).unwrap();
        let answer = client.call("get_worker_id", None);
        assert!(
            matches!(answer, Err(ClientError::Length(_) | ClientError::Wire(_))),
            "{answer:?}"
        );
    }
    server.join().unwrap();
}
