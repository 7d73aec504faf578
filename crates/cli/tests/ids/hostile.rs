//! Peers that mean no good, or are broken, next to a client that goes on.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::{
    service::{PATIENT, Service, ask, assert_rising, id},
    support::{DataDir, wait_for},
    taker::Taker,
};

/// A call of `get_id` with the agent `foo`, as clients of 2010 send it.
const CALL: &[u8] = b"\0\0\0\x1d\x80\x01\0\x01\0\0\0\x06get_id\0\0\0\0\x0b\0\x01\0\0\0\x03foo\0";
const IDLE: u64 = 2_000;
/// Descriptors that the test's process has besides those of the idle connections.
const OTHERS: u64 = 500;

/// How many idle connections this process may hold.
fn idle() -> u64 {
    let most = rlimit::increase_nofile_limit(IDLE + OTHERS).unwrap();
    IDLE.min(most.saturating_sub(OTHERS))
}

fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).unwrap()
}

/// What the server sends until it closes the connection, which it must.
fn sent_until_closed(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = connect(address);
    // Less than a client may be silent in the middle of a frame.
    let timeout = Some(Duration::from_secs(7));
    stream.set_read_timeout(timeout).unwrap();
    // It may close before all is written.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            panic!("it is still open, with {} bytes", bytes.len())
        }
        _ => answer,
    }
}

/// What no client sends: each ends the connection without a reply.
fn nonsense() -> Vec<Vec<u8>> {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut all: Vec<Vec<u8>> = [u32::MAX, 0x8000_0000, 0x7fff_ffff, 1 << 24, 16 * 1_024 + 1]
        .iter()
        .map(|length| length.to_be_bytes().to_vec())
        .collect();
    all.push(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec());
    // An unframed call, and frames whose header is cut off, of another version, or too long.
    all.push(CALL[4..].to_vec());
    all.push(b"\0\0\0\0".to_vec());
    all.push(b"\0\0\0\x04\x80\x01\0\x01".to_vec());
    all.push(b"\0\0\0\x0c\x80\x02\0\x01\0\0\0\0\0\0\0\0".to_vec());
    all.push(b"\0\0\0\x08\x80\x01\0\x01\x7f\xff\xff\xff".to_vec());
    all.push(b"\0\0\0\x04\x7f\xff\xff\xff".to_vec());
    for _ in 0..50 {
        let mut bytes: Vec<u8> = (0..300).map(|_| rng.random()).collect();
        // Never a small length, which would be waited for.
        bytes[0] |= 0x40;
        all.push(bytes);
    }
    all
}

/// Asks and asks and reads nothing, until the server takes no more.
fn never_reads(address: SocketAddr) -> TcpStream {
    let mut stream = connect(address);
    let timeout = Some(Duration::from_millis(500));
    stream.set_write_timeout(timeout).unwrap();
    let calls = CALL.repeat(1_000);
    while stream.write_all(&calls).is_ok() {}
    stream
}

#[test]
fn hostile_peers_do_not_disturb_a_client() {
    let data_dir = DataDir::new();
    let with_http = ["--listen-http", "127.0.0.1:0"];
    let service = Service::start(&data_dir, &[with_http, PATIENT].concat());
    let address = service.thrift;
    let taker = Taker::start(address);
    let metrics = || ask("GET", &service.url("/metrics"), &[]).1;
    let open = || gauge(&metrics(), "driftline_id_connections");

    let idle_count = idle();
    let idle: Vec<TcpStream> = (0..idle_count).map(|_| connect(address)).collect();
    wait_for("all are accepted", || open() > idle_count as f64);
    taker.wait_for_more(1_000);

    let nonsense = nonsense();
    for bytes in &nonsense {
        assert_eq!(sent_until_closed(address, bytes), b"", "{bytes:x?}");
    }
    let halves: Vec<TcpStream> = (1..CALL.len())
        .map(|cut| {
            let mut stream = connect(address);
            stream.write_all(&CALL[..cut]).unwrap();
            stream
        })
        .collect();
    let ended = connect(address);
    ended.shutdown(Shutdown::Both).unwrap();
    let greedy = never_reads(address);
    taker.wait_for_more(1_000);

    let text = metrics();
    let reason = |reason| {
        let name = format!("driftline_id_connections_ended_total{{reason=\"{reason}\"}}");
        gauge(&text, &name)
    };
    let refused = reason("frame") + reason("header");
    assert_eq!(refused, nonsense.len() as f64, "{text}");
    assert!(open() > idle_count as f64, "the idle ones are left alone");
    assert!(id(&mut service.client()) > 0);
    // One that was silent for so long, and one that goes on after half a frame.
    for (stream, rest) in [(&idle[0], CALL), (&halves[9], &CALL[10..])] {
        let mut stream = stream;
        stream.write_all(rest).unwrap();
        let mut reply = [0; 34];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[..8], b"\0\0\0\x1e\x80\x01\0\x02");
    }
    drop((idle, halves, greedy));
    taker.wait_for_more(1_000);
    let taken = taker.stop();
    assert!(taken.broken.is_none(), "{:?}", taken.broken);
    assert_eq!(taken.refused, Vec::<String>::new());
    assert_rising(&taken.ids);
    service.stop();
}

/// The value of a metric's only series; 0 where it has none yet.
fn gauge(metrics: &str, name: &str) -> f64 {
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}
