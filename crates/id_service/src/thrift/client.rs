//! A client, for the sanity check of peers.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use super::{
    message::{Call, LENGTH_BYTES, parse_reply},
    wire::WireError,
};

/// A connection to a service; calls block.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    sequence: i32,
    deadline: Instant,
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The reply is invalid.
    #[error("its reply cannot be read: {0}")]
    Wire(#[from] WireError),
    /// The reply is longer than any reply of such a service.
    #[error("it announced a reply of {0} bytes")]
    Length(u32),
    /// The service replied with an exception.
    #[error("it refused: {0}")]
    Refused(String),
}

impl Client {
    /// Connects. The timeout covers the connection and all later calls together.
    ///
    /// # Errors
    /// The socket's.
    pub fn connect(address: SocketAddr, timeout: Duration) -> Result<Self, ClientError> {
        let deadline = Instant::now() + timeout;
        let stream = TcpStream::connect_timeout(&address, timeout)?;
        stream.set_write_timeout(Some(timeout))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            sequence: 0,
            deadline,
        })
    }

    /// Calls a method; `agent` is the argument of `get_id`.
    ///
    /// # Errors
    /// [`ClientError`]. After one the connection is of no more use, unless it is
    /// [`ClientError::Refused`].
    pub fn call(&mut self, method: &str, agent: Option<&str>) -> Result<i64, ClientError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut frame = Vec::new();
        Call::write(&mut frame, method, self.sequence, agent);
        self.stream.write_all(&frame)?;
        let mut length = [0; LENGTH_BYTES];
        self.read(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MAX_REPLY {
            return Err(ClientError::Length(length));
        }
        let mut reply = vec![0; length as usize];
        self.read(&mut reply)?;
        parse_reply(&reply)?.map_err(ClientError::Refused)
    }

    fn read(&mut self, mut rest: &mut [u8]) -> Result<(), ClientError> {
        while !rest.is_empty() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(rest)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                count => rest = rest.get_mut(count..).unwrap_or_default(),
            }
        }
        Ok(())
    }
}

const MAX_REPLY: u32 = 4 * 1_024;
