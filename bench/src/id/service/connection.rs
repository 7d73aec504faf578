//! One of many connections that a single thread drives.

use std::{
    io::{ErrorKind, Read, Write},
    net::{self, SocketAddr},
};

use mio::{Interest, Registry, Token, net::TcpStream};

use super::exchange::Exchange;
use crate::failure::Failure;

/// A connection and what has come in on it.
pub(super) struct Connection {
    stream: TcpStream,
    inbox: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Connection {
    /// Connects, and registers under this number.
    pub(super) fn open(
        address: SocketAddr,
        registry: &Registry,
        number: usize,
    ) -> Result<Self, Failure> {
        let stream = net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, Token(number), Interest::READABLE)?;
        Ok(Self {
            stream,
            inbox: vec![0; INBOX],
            begin: 0,
            end: 0,
        })
    }

    /// Sends bytes, which a socket takes at once since few are ever under way.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let sent = self.stream.write(bytes)?;
        match sent == bytes.len() {
            true => Ok(()),
            false => Err(Failure::new("a socket takes no more requests")),
        }
    }

    /// Takes in what has come, and hands over each whole reply.
    pub(super) fn receive<E: Exchange>(
        &mut self,
        exchange: &E,
        mut each: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            if self.end == self.inbox.len() {
                self.make_room();
            }
            let room = self.inbox.len() - self.end;
            let read = match self.stream.read(&mut self.inbox[self.end..]) {
                Ok(0) => return Err(Failure::new("the server closes a connection")),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            self.end += read;
            while let Some(length) = exchange.reply_length(&self.inbox[self.begin..self.end])? {
                let next = self.begin + length;
                each(&self.inbox[self.begin..next])?;
                self.begin = next;
                if self.begin == self.end {
                    (self.begin, self.end) = (0, 0);
                    break;
                }
            }
            // Less than there was room for: there is no more.
            if read < room {
                return Ok(());
            }
        }
    }

    /// Moves what there is to the beginning, or takes twice the memory.
    fn make_room(&mut self) {
        if self.begin == 0 {
            self.inbox.resize(self.inbox.len() * 2, 0);
        } else {
            self.inbox.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
    }
}

const INBOX: usize = 64 * 1_024;
