//! beanstalkd with its binlog, over one connection that sends many commands at once.

use std::{
    io::{BufRead, BufReader, BufWriter, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::failure::Failure;

/// A server that ends with this value.
pub(super) struct Server {
    port: u16,
    process: Child,
}

/// A connection.
pub(super) struct Client {
    write: BufWriter<TcpStream>,
    read: BufReader<TcpStream>,
}

impl Server {
    /// Starts it with a binlog in a folder, synced after this many ms at most.
    pub(super) fn start(folder: &Path, sync_ms: u32) -> Result<Self, Failure> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let process = Command::new("beanstalkd")
            .args(["-l", "127.0.0.1", "-p", &port.to_string()])
            .args(["-f", &sync_ms.to_string(), "-b"])
            .arg(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| Failure::new(format!("beanstalkd could not be started: {error}")))?;
        let server = Self { port, process };
        let begun = Instant::now();
        while let Err(error) = TcpStream::connect(("127.0.0.1", port)) {
            if begun.elapsed() > TIMEOUT {
                return Err(error.into());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its version.
    pub(super) fn version() -> Result<String, Failure> {
        let output = Command::new("beanstalkd").arg("-v").output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    pub(super) fn connect(&self) -> Result<Client, Failure> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            read: BufReader::new(stream.try_clone()?),
            write: BufWriter::new(stream),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Client {
    /// Puts jobs whose bodies are their numbers, a batch at a time.
    pub(super) fn put(&mut self, jobs: u64, delay_s: u64, batch: u64) -> Result<(), Failure> {
        let mut first = 0;
        while first < jobs {
            let numbers = first..jobs.min(first + batch);
            for number in numbers.clone() {
                let body = number.to_string();
                let length = body.len();
                write!(
                    self.write,
                    "put 0 {delay_s} {LEASE_S} {length}\r\n{body}\r\n"
                )?;
            }
            self.write.flush()?;
            for _ in numbers {
                self.expect("INSERTED ")?;
            }
            first += batch;
        }
        Ok(())
    }

    /// Reserves a batch and puts it off, as a refresh would; the jobs must be ready.
    pub(super) fn cycle(&mut self, batch: u64, delay_s: u64) -> Result<(), Failure> {
        for _ in 0..batch {
            self.write.write_all(b"reserve-with-timeout 0\r\n")?;
        }
        self.write.flush()?;
        let mut ids = Vec::new();
        for _ in 0..batch {
            let rest = self.expect("RESERVED ")?;
            let mut words = rest.split_whitespace();
            let (Some(id), Some(length)) = (words.next(), words.next()) else {
                return Err(Failure::new(format!("beanstalkd says RESERVED {rest:?}")));
            };
            ids.push(id.to_owned());
            let mut body = vec![0; length.parse::<usize>()? + 2];
            self.read.read_exact(&mut body)?;
        }
        for id in &ids {
            write!(self.write, "release {id} 0 {delay_s}\r\n")?;
        }
        self.write.flush()?;
        for _ in &ids {
            self.expect("RELEASED")?;
        }
        Ok(())
    }

    /// Reads a line that must begin so; what follows.
    fn expect(&mut self, begins: &str) -> Result<String, Failure> {
        let mut line = String::new();
        self.read.read_line(&mut line)?;
        match line.strip_prefix(begins) {
            Some(rest) => Ok(rest.trim().to_owned()),
            None => Err(Failure::new(format!(
                "beanstalkd says {line:?} instead of {begins:?}"
            ))),
        }
    }
}

const TIMEOUT: Duration = Duration::from_secs(10);
const LEASE_S: u32 = 60;
