//! A proxy between replicas and their server that does what bad networks do.

use std::{
    collections::BTreeMap,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    mem,
    net::{TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
    time::Duration,
};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// A proxy on loopback. Each request has connections of its own. It ends with the process.
pub struct Proxy {
    url: String,
    network: Arc<Network>,
}

/// A fault of a request or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Only the beginning of the request reaches the server.
    CutRequest,
    /// Only the beginning of the answer reaches the client.
    CutAnswer,
    /// The answer waits for the next fault.
    Stall,
    /// The server gets the request twice at once, and the client one of the answers.
    Repeat,
    /// The client gets no answer, and the server gets the request after a later one.
    Late,
}

impl Proxy {
    /// A proxy of a server at an address, at first without faults.
    pub fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let network = Arc::new(Network {
            server: server.to_owned(),
            state: Mutex::default(),
            fault: Condvar::new(),
        });
        let shared = Arc::clone(&network);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let network = Arc::clone(&shared);
                // An error is the end of a process that was killed.
                thread::spawn(move || drop(network.pass_on(&client)));
            }
        });
        Self { url, network }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Has faults from now on: one request of three has one, and each kind is as frequent as the others.
    pub fn begin_faults(&self, seed: u64) {
        self.network.state().rule = Rule::Faults {
            rng: Box::new(ChaCha8Rng::seed_from_u64(seed)),
            next: Vec::new(),
        };
    }

    /// Cuts the connection whenever so many bytes were sent to clients from now on.
    pub fn cut_every(&self, bytes: usize) {
        self.network.state().rule = Rule::CutEvery { bytes, left: bytes };
    }

    /// Has no faults from now on. Late requests arrive.
    pub fn calm(&self) {
        let mut state = self.network.state();
        state.rule = Rule::Calm;
        state.number += 1;
        drop(state);
        self.network.fault.notify_all();
        self.network.deliver_late();
    }

    /// The number of faults of each kind so far.
    pub fn faults(&self) -> BTreeMap<Fault, usize> {
        self.network.state().faults.clone()
    }

    /// The number of bytes that were sent to clients so far.
    pub fn delivered(&self) -> usize {
        self.network.state().delivered
    }
}

struct Network {
    /// The server's address.
    server: String,
    state: Mutex<State>,
    /// Notified of each fault.
    fault: Condvar,
}

#[derive(Default)]
struct State {
    rule: Rule,
    faults: BTreeMap<Fault, usize>,
    /// The number of the last fault.
    number: u64,
    /// The requests that arrive after a later one.
    late: Vec<Vec<u8>>,
    delivered: usize,
}

#[derive(Default)]
enum Rule {
    #[default]
    Calm,
    /// The faults of the next requests, in any order.
    Faults {
        rng: Box<ChaCha8Rng>,
        next: Vec<Option<Fault>>,
    },
    CutEvery {
        bytes: usize,
        left: usize,
    },
}

impl Network {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Passes a request on, and its answer back.
    fn pass_on(&self, client: &TcpStream) -> io::Result<()> {
        let request = read_request(client)?;
        let (fault, part) = self.draw();
        let mut answer = match fault {
            Some(Fault::CutRequest) => {
                let mut server = TcpStream::connect(&self.server)?;
                return server.write_all(beginning(&request, part));
            }
            Some(Fault::Late) => {
                self.state().late.push(request);
                return Ok(());
            }
            Some(Fault::Repeat) => thread::scope(|scope| {
                let other = scope.spawn(|| self.exchange(&request));
                let answer = self.exchange(&request);
                let other = other.join().unwrap();
                if part < 0.5 { answer } else { other }
            }),
            Some(Fault::CutAnswer | Fault::Stall) | None => self.exchange(&request),
        };
        self.deliver_late();
        match fault {
            Some(Fault::CutAnswer) => answer.truncate(beginning(&answer, part).len()),
            Some(Fault::Stall) => self.wait_for_fault(),
            _ => {}
        }
        self.deliver(client, &answer)
    }

    /// The fault of the next request, and the part that passes a cut.
    fn draw(&self) -> (Option<Fault>, f64) {
        let mut state = self.state();
        let Rule::Faults { rng, next } = &mut state.rule else {
            return (None, 1.0);
        };
        if next.is_empty() {
            next.extend(FAULTS.map(Some));
            next.resize(3 * FAULTS.len(), None);
        }
        let index = rng.random_range(0..next.len());
        let drawn = next.swap_remove(index);
        let part = rng.random_range(0.0..1.0);
        if let Some(fault) = drawn {
            *state.faults.entry(fault).or_default() += 1;
            state.number += 1;
            self.fault.notify_all();
        }
        (drawn, part)
    }

    /// The server's answer; its beginning, or nothing, if the server ends.
    fn exchange(&self, request: &[u8]) -> Vec<u8> {
        let mut answer = Vec::new();
        let read = TcpStream::connect(&self.server).and_then(|mut server| {
            server.set_read_timeout(Some(MAX_WAIT))?;
            server.write_all(request)?;
            server.read_to_end(&mut answer)
        });
        drop(read);
        answer
    }

    /// Sends the late requests. Nobody waits for their answers.
    fn deliver_late(&self) {
        let late = mem::take(&mut self.state().late);
        for request in late {
            self.exchange(&request);
        }
    }

    fn wait_for_fault(&self) {
        let state = self.state();
        let number = state.number;
        let waited = self
            .fault
            .wait_timeout_while(state, MAX_STALL, |state| state.number == number);
        drop(waited.unwrap());
    }

    fn deliver(&self, mut client: &TcpStream, answer: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let mut passed = answer.len();
        if let Rule::CutEvery { bytes, left } = &mut state.rule {
            passed = passed.min(*left);
            *left -= passed;
            if passed < answer.len() {
                *left = *bytes;
                *state.faults.entry(Fault::CutAnswer).or_default() += 1;
            }
        }
        state.delivered += passed;
        drop(state);
        client.write_all(&answer[..passed])
    }
}

/// Reads a request, and asks the server to close the connection after its answer.
fn read_request(client: &TcpStream) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(client);
    let (mut request, mut length) = (Vec::new(), 0_usize);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            request.extend_from_slice(b"Connection: close\r\n\r\n");
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        request.extend_from_slice(line.as_bytes());
    }
    let head = request.len();
    request.resize(head + length, 0);
    reader.read_exact(&mut request[head..])?;
    Ok(request)
}

/// A part of some bytes that lacks the last one at least.
fn beginning(bytes: &[u8], part: f64) -> &[u8] {
    &bytes[..(bytes.len() as f64 * part) as usize]
}

const FAULTS: [Fault; 5] = [
    Fault::CutRequest,
    Fault::CutAnswer,
    Fault::Stall,
    Fault::Repeat,
    Fault::Late,
];
const MAX_STALL: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(60);
