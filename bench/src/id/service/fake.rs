//! A service that counts, for tests of the client.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process, thread,
    time::Duration,
};

use super::{
    client::{Time, closed, paced},
    exchange::{Exchange, Http, Redis, Thrift},
};
use crate::failure::Failure;

/// Answers each request, which is known by its length alone, with what `reply` makes of a number
/// that begins again on each connection.
fn serve<E: Exchange>(exchange: &E, reply: fn(u64) -> Vec<u8>) -> Result<SocketAddr, Failure> {
    let request = exchange.request().len();
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer(stream, request, reply));
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream, request: usize, reply: fn(u64) -> Vec<u8>) -> Option<()> {
    let mut bytes = vec![0; request];
    for number in 0.. {
        stream.read_exact(&mut bytes).ok()?;
        stream.write_all(&reply(number)).ok()?;
    }
    None
}

fn thrift_reply(id: u64) -> Vec<u8> {
    let mut reply = b"\0\0\0\x1e\x80\x01\0\x02\0\0\0\x06get_id\0\0\0\0\x0a\0\0".to_vec();
    reply.extend_from_slice(&id.to_be_bytes());
    reply.push(0);
    reply
}

fn http_reply(number: u64) -> Vec<u8> {
    let mut reply = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", LONG * 8).into_bytes();
    let ids = number * LONG..(number + 1) * LONG;
    reply.extend(ids.flat_map(u64::to_be_bytes));
    reply
}

fn time() -> Time {
    Time {
        warm_up: Duration::from_millis(50),
        measured: Duration::from_millis(200),
    }
}

#[test]
fn a_closed_load_is_measured() -> Result<(), Failure> {
    let address = serve(&Thrift, thrift_reply)?;
    for depth in [1, 16] {
        let outcome = closed(address, process::id(), &Thrift, 3, depth, time())?;
        assert!(outcome.requests_per_s > 100.0, "{outcome:?}");
        assert!(outcome.p50_ms <= outcome.p99_ms, "{outcome:?}");
        // Each of the connections counts from 0.
        assert!(outcome.ids.contains(&0) && !outcome.ids.contains(&u64::MAX));
    }
    Ok(())
}

#[test]
fn a_reply_longer_than_the_inbox_is_whole() -> Result<(), Failure> {
    let batch = Http { count: LONG };
    let address = serve(&batch, http_reply)?;
    let outcome = closed(address, process::id(), &batch, 1, 1, time())?;
    assert!(outcome.ids.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    let per_request = outcome.ids_per_s / outcome.requests_per_s;
    assert!((per_request - LONG as f64).abs() < 1.0, "{outcome:?}");
    Ok(())
}

#[test]
fn a_steady_load_keeps_its_rate() -> Result<(), Failure> {
    let redis = Redis { by: 1 };
    let address = serve(&redis, |id| format!(":{id}\r\n").into_bytes())?;
    let outcome = paced(address, process::id(), &redis, 5, 500, time())?;
    // Whatever else the machine does, the requests are sent, late ones at once.
    let range = 400.0..600.0;
    assert!(range.contains(&outcome.requests_per_s), "{outcome:?}");
    Ok(())
}

#[test]
fn a_refusal_is_no_reply() -> Result<(), Failure> {
    let address = serve(&Thrift, |_| b"\0\0\0\x05\x80\x01\0\x03\0".to_vec())?;
    assert!(closed(address, process::id(), &Thrift, 1, 1, time()).is_err());
    Ok(())
}

/// More bytes than an inbox has room for at first.
const LONG: u64 = 20_000;
