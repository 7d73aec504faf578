use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::url::UrlParts;

/// A link to a PostgreSQL server: a proxy on loopback that delays bytes, and may cut connections or
/// fall silent. It ends with the process.
#[derive(Clone, Debug)]
pub struct Link {
    url: String,
    server: Arc<Mutex<SocketAddr>>,
    is_silent: Arc<AtomicBool>,
}

/// The rule for the cuts of a link's connections.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Determines all cuts, together with the traffic.
    pub seed: u64,
    /// The average number of packets of a connection before its cut.
    pub mean_packets: u64,
}

impl Link {
    /// A link to the server of `url`, with `delay` in each direction.
    ///
    /// # Errors
    /// [`io::Error`] if the URL has no address, or there is no free port.
    pub fn delayed(url: &str, delay: Duration) -> io::Result<Link> {
        Link::start(url, delay, None)
    }

    /// A link to the server of `url`, whose connections are cut. A packet is then lost on its way
    /// to the server or from it, so a commit may or may not have happened.
    ///
    /// # Errors
    /// [`io::Error`] if the URL has no address, or there is no free port.
    pub fn cutting(url: &str, delay: Duration, cuts: Cuts) -> io::Result<Link> {
        Link::start(url, delay, Some(cuts))
    }

    /// The URL of the same database, over the link.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Leads connections from now on to the server of another URL.
    ///
    /// # Errors
    /// [`io::Error`] if the URL has no address.
    pub fn lead_to(&self, url: &str) -> io::Result<()> {
        let server = address(&UrlParts::parse(url).ok_or_else(no_address)?)?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = server;
        Ok(())
    }

    /// Passes on nothing from now on, not even the end of a connection. To the server the machine
    /// at the other end seems to have vanished.
    pub fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    fn start(url: &str, delay: Duration, cuts: Option<Cuts>) -> io::Result<Link> {
        let parts = UrlParts::parse(url).ok_or_else(no_address)?;
        let server = Arc::new(Mutex::new(address(&parts)?));
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = parts.with_address(listener.local_addr()?);
        let is_silent = Arc::new(AtomicBool::new(false));
        let link = Link {
            url,
            server: Arc::clone(&server),
            is_silent: Arc::clone(&is_silent),
        };
        thread::spawn(move || {
            for (number, client) in (0..).zip(listener.incoming().flatten()) {
                let server = *server.lock().unwrap_or_else(PoisonError::into_inner);
                // A rejected connection ends the client's, as it would without the link.
                let _ = connect(client, server, delay, &is_silent, |way| {
                    cuts.map(|cuts| cuts.first(number * 2 + way))
                });
            }
        });
        Ok(link)
    }
}

impl Cuts {
    /// The number of packets that one direction of a connection passes on.
    fn first(self, way: u64) -> u64 {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut z = (self.seed ^ way).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Added to the packets at the beginning of a connection. Otherwise no connection would be
        // usable.
        PACKETS_OF_A_START + (z ^ (z >> 31)) % (2 * self.mean_packets)
    }
}

/// The address of a URL's server.
fn address(parts: &UrlParts<'_>) -> io::Result<SocketAddr> {
    let (host, port) = parts.host_and_port();
    let port: u16 = port.parse().map_err(|_| no_address())?;
    let mut found = (host, port).to_socket_addrs()?;
    found.next().ok_or_else(no_address)
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a URL without an address")
}

fn connect(
    client: TcpStream,
    server: SocketAddr,
    delay: Duration,
    is_silent: &Arc<AtomicBool>,
    packets: impl Fn(u64) -> Option<u64>,
) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let (to_client, to_server) = (client.try_clone()?, server.try_clone()?);
    pass_on(client, to_server, delay, packets(0), Arc::clone(is_silent));
    pass_on(server, to_client, delay, packets(1), Arc::clone(is_silent));
    Ok(())
}

/// Passes on one direction of a connection. Bytes wait in parallel, so the delay costs no
/// throughput.
fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    delay: Duration,
    packets: Option<u64>,
    is_silent: Arc<AtomicBool>,
) {
    // Small packets are sent at once.
    let _ = to.set_nodelay(true);
    let (sender, arrived) = mpsc::channel::<(Instant, Vec<u8>)>();
    let mut other = from.try_clone();
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            let packet = (Instant::now() + delay, bytes[..read].to_vec());
            if sender.send(packet).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (number, (due, bytes)) in (0..).zip(arrived) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if is_silent.load(Ordering::Relaxed) {
                break;
            }
            if packets.is_some_and(|packets| number >= packets) || to.write_all(&bytes).is_err() {
                break;
            }
        }
        while is_silent.load(Ordering::Relaxed) {
            // Both ends stay open, as they do if no packet ends them.
            thread::park();
        }
        let _ = to.shutdown(Shutdown::Both);
        if let Ok(from) = &mut other {
            let _ = from.shutdown(Shutdown::Both);
        }
    });
}

const PACKETS_OF_A_START: u64 = 12;
