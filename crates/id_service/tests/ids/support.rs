//! Services in this process, under a clock that the test sets.
#![allow(unreachable_pub, reason = "a module of a test")]

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::Duration,
};

use driftline_id::{
    ClockPolicy, Layout, Node, Window,
    clock::{ManualClock, SystemClock},
};
use driftline_id_service::{
    Issuer, SharedClock,
    thrift::{Call, LENGTH_BYTES, Limits, Listener, parse_reply},
};

/// 2023-11-14, in Unix ms.
pub const START_MS: i64 = 1_700_000_000_000;

pub fn node(number: u64) -> Node {
    Node::new(&Layout::TWITTER, number).unwrap()
}

/// An issuer whose clock stands still.
pub fn still(number: u64, policy: ClockPolicy) -> (Arc<Issuer>, ManualClock) {
    let clock = ManualClock::at_ms(START_MS);
    let window = Window::unrecorded_ids_may_repeat(node(number));
    let issuer = Issuer::new(window, Arc::new(clock.clone()), policy).unwrap();
    (Arc::new(issuer), clock)
}

/// An issuer with the real clock.
pub fn running(number: u64) -> Arc<Issuer> {
    let window = Window::unrecorded_ids_may_repeat(node(number));
    let clock: SharedClock = Arc::new(SystemClock);
    Arc::new(Issuer::new(window, clock, ClockPolicy::Refuse).unwrap())
}

/// A Thrift server of an issuer.
pub fn serve(issuer: Arc<Issuer>, limits: Limits) -> Listener {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Listener::start(listener, issuer, limits).unwrap()
}

/// A client that sends whatever bytes a test wants.
pub struct Raw {
    pub stream: TcpStream,
}

impl Raw {
    pub fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next reply's frame, without its length; `None` at the end of the stream.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; LENGTH_BYTES];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).unwrap();
        Some(frame)
    }

    pub fn reply(&mut self) -> Result<i64, String> {
        let frame = self.frame().expect("the server ended the connection");
        parse_reply(&frame).unwrap()
    }

    pub fn call(&mut self, method: &str, agent: Option<&str>) -> Result<i64, String> {
        self.send(&call(method, 1, agent));
        self.reply()
    }

    /// Waits for the server to end the connection.
    pub fn has_ended(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// A call's whole frame.
pub fn call(method: &str, sequence: i32, agent: Option<&str>) -> Vec<u8> {
    let mut frame = Vec::new();
    Call::write(&mut frame, method, sequence, agent);
    frame
}

/// The bytes of a text of hexadecimal digits and spaces.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pairs = digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

const TIMEOUT: Duration = Duration::from_secs(20);
