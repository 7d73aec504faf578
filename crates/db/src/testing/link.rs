use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::url::UrlParts;

/// A link to a PostgreSQL server: a proxy on loopback that passes bytes on later, and may cut
/// connections or fall silent. It ends with the process.
#[derive(Clone, Debug)]
pub struct Link {
    url: String,
    is_silent: Arc<AtomicBool>,
}

/// When a link cuts its connections.
#[derive(Clone, Copy, Debug)]
pub struct Cuts {
    /// Decides all of them, with what is sent.
    pub seed: u64,
    /// How many packets a connection passes on before it is cut, on average.
    pub mean_packets: u64,
}

impl Link {
    /// To the server of `url`, each way `delay` later.
    ///
    /// # Errors
    /// If the URL has no address, or there is no free port.
    pub fn delayed(url: &str, delay: Duration) -> io::Result<Link> {
        Link::start(url, delay, None)
    }

    /// To the server of `url`, over connections that are cut: a packet is then lost on its way to the
    /// server or from it, so that a commit may or may not have been made.
    ///
    /// # Errors
    /// As [`Link::delayed`].
    pub fn cutting(url: &str, delay: Duration, cuts: Cuts) -> io::Result<Link> {
        Link::start(url, delay, Some(cuts))
    }

    /// The URL of the same database, over the link.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// From now on nothing is passed on, not even the end of a connection: to the server it is as if the machine at
    /// the other end had vanished.
    pub fn fall_silent(&self) {
        self.is_silent.store(true, Ordering::Relaxed);
    }

    fn start(url: &str, delay: Duration, cuts: Option<Cuts>) -> io::Result<Link> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "a URL without an address");
        let parts = UrlParts::of(url).ok_or_else(invalid)?;
        let (host, port) = parts.host_and_port();
        let port: u16 = port.parse().map_err(|_| invalid())?;
        let server = (host, port).to_socket_addrs()?.next().ok_or_else(invalid)?;
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let url = parts.with_address(listener.local_addr()?);
        let is_silent = Arc::new(AtomicBool::new(false));
        let link = Link {
            url,
            is_silent: Arc::clone(&is_silent),
        };
        thread::spawn(move || {
            for (number, client) in (0..).zip(listener.incoming().flatten()) {
                // A refused connection ends the client's, as it would without the link.
                let _ = connect(client, server, delay, &is_silent, |way| {
                    cuts.map(|cuts| cuts.first(number * 2 + way))
                });
            }
        });
        Ok(link)
    }
}

impl Cuts {
    /// How many packets one way of a connection passes on.
    fn first(self, way: u64) -> u64 {
        // SplitMix64 (Steele, Lea and Flood 2014).
        let mut z = (self.seed ^ way).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Beyond the packets in which a connection begins, or none would come to work.
        PACKETS_OF_A_START + (z ^ (z >> 31)) % (2 * self.mean_packets)
    }
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

/// One way of a connection. Bytes wait side by side, so that the delay costs no throughput.
fn pass_on(
    mut from: TcpStream,
    mut to: TcpStream,
    delay: Duration,
    packets: Option<u64>,
    is_silent: Arc<AtomicBool>,
) {
    // Small packets go at once.
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
            // Both ends stay open, as they do when no packet says otherwise.
            thread::park();
        }
        let _ = to.shutdown(Shutdown::Both);
        if let Ok(from) = &mut other {
            let _ = from.shutdown(Shutdown::Both);
        }
    });
}

const PACKETS_OF_A_START: u64 = 12;
