//! A link of a given delay to a server: a proxy on loopback that passes bytes on later.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use crate::failure::Failure;

/// Passes connections on to `server`, each way `delay` later; returns the link's address. It ends with
/// the process.
pub(crate) fn delayed(server: SocketAddr, delay: Duration) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            if let Ok(server) = TcpStream::connect(server) {
                let ways = [(&client, &server), (&server, &client)];
                for (from, to) in ways {
                    if let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) {
                        pass_on(from, to, delay);
                    }
                }
            }
        }
    });
    Ok(address)
}

/// One way of a connection. Bytes wait side by side, so that the delay costs no throughput.
fn pass_on(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    // Small packets go at once.
    let _ = to.set_nodelay(true);
    let (sender, arrived) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut bytes = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if sender
                .send((Instant::now() + delay, bytes[..read].to_vec()))
                .is_err()
            {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in arrived {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
