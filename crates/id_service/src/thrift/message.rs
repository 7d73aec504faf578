//! Calls and replies of the service, as frames of the binary protocol.
//!
//! Source: the interface of the service of 2010 (`get_worker_id`, `get_timestamp`,
//! `get_id(1: string useragent)`, `get_datacenter_id`, all to `i64`), and Apache Thrift's
//! specification of the binary protocol.

use super::wire::{Reader, WireError, kind};

/// A call, read from a frame without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The method's name.
    pub name: &'a [u8],
    /// The number that the reply repeats.
    pub sequence: i32,
    /// Whether the client expects no reply.
    pub one_way: bool,
    /// The request.
    pub request: Request<'a>,
}

/// The method and arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// The number of the worker.
    WorkerId,
    /// The server's time in Unix ms.
    Timestamp,
    /// An ID; `agent` is whatever stood in field 1, if it was a string.
    Id {
        /// The user agent.
        agent: Option<&'a [u8]>,
    },
    /// The number of the datacenter.
    DatacenterId,
    /// There is no method of that name.
    Unknown,
    /// The message is not a call.
    NotACall {
        /// The message's type.
        kind: u8,
    },
    /// The arguments cannot be read.
    Malformed(WireError),
}

/// Why a call failed, as `TApplicationException` numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Failure {
    /// There is no method of that name.
    UnknownMethod = 1,
    /// The message is not a call.
    MessageType = 2,
    /// The service refused or failed.
    Internal = 6,
    /// The arguments cannot be read.
    Protocol = 7,
}

impl<'a> Call<'a> {
    /// Reads a frame's content: a header, strict or not, and the arguments.
    ///
    /// # Errors
    /// An invalid header, which cannot be replied to. Errors after the header can be, and are in
    /// [`request`](Self::request).
    pub fn parse(frame: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(frame);
        let first = reader.i32()?;
        let (name, message, sequence) = if first < 0 {
            let version = first as u32;
            if version & VERSION_MASK != VERSION {
                return Err(WireError::Version(version));
            }
            let name = reader.string()?;
            (name, version as u8, reader.i32()?)
        } else {
            let name = reader.bytes(first as usize)?;
            (name, reader.u8()?, reader.i32()?)
        };
        let request = match message {
            CALL | ONE_WAY => Request::parse(name, reader),
            kind => Request::NotACall { kind },
        };
        Ok(Self {
            name,
            sequence,
            one_way: message == ONE_WAY,
            request,
        })
    }

    /// Appends the frame of a call. For clients.
    pub fn write(out: &mut Vec<u8>, name: &str, sequence: i32, agent: Option<&str>) {
        frame(out, |out| {
            header(out, CALL, name.as_bytes(), sequence);
            if let Some(agent) = agent {
                field(out, kind::STRING, 1);
                string(out, agent.as_bytes());
            }
            out.push(kind::STOP);
        });
    }

    /// Appends the frame of a reply with a value.
    pub fn reply(&self, out: &mut Vec<u8>, value: i64) {
        frame(out, |out| {
            header(out, REPLY, self.name, self.sequence);
            field(out, kind::I64, 0);
            out.extend(value.to_be_bytes());
            out.push(kind::STOP);
        });
    }

    /// Appends the frame of a `TApplicationException`.
    pub fn fail(&self, out: &mut Vec<u8>, failure: Failure, message: &str) {
        frame(out, |out| {
            header(out, EXCEPTION, self.name, self.sequence);
            field(out, kind::STRING, 1);
            string(out, message.as_bytes());
            field(out, kind::I32, 2);
            out.extend((failure as i32).to_be_bytes());
            out.push(kind::STOP);
        });
    }
}

impl<'a> Request<'a> {
    fn parse(name: &[u8], arguments: Reader<'a>) -> Self {
        let known = match name {
            b"get_id" => Self::Id { agent: None },
            b"get_timestamp" => Self::Timestamp,
            b"get_worker_id" => Self::WorkerId,
            b"get_datacenter_id" => Self::DatacenterId,
            _ => return Self::Unknown,
        };
        match (first_string(arguments), known) {
            (Ok(agent), Self::Id { .. }) => Self::Id { agent },
            (Ok(_), known) => known,
            (Err(error), _) => Self::Malformed(error),
        }
    }
}

/// A reply, read from a frame without its length. For clients.
///
/// # Errors
/// An invalid reply; the inner error is the server's exception.
pub fn parse_reply(frame: &[u8]) -> Result<Result<i64, String>, WireError> {
    let mut reader = Reader::new(frame);
    let version = reader.i32()? as u32;
    if version & VERSION_MASK != VERSION {
        return Err(WireError::Version(version));
    }
    reader.string()?;
    reader.i32()?;
    let failed = version as u8 == EXCEPTION;
    loop {
        let (kind, id) = match reader.u8()? {
            kind::STOP => return Ok(Err("the reply is empty".to_owned())),
            kind => (kind, reader.i16()?),
        };
        match (kind, id) {
            (kind::I64, 0) if !failed => return reader.i64().map(Ok),
            (kind::STRING, 1) if failed => {
                let text = reader.string()?;
                return Ok(Err(String::from_utf8_lossy(text).into_owned()));
            }
            _ => reader.skip(kind)?,
        }
    }
}

/// Field 1 of a struct if it is a string; the last of several, as in other implementations.
fn first_string(mut reader: Reader<'_>) -> Result<Option<&[u8]>, WireError> {
    let mut found = None;
    loop {
        let kind = reader.u8()?;
        if kind == kind::STOP {
            return Ok(found);
        }
        if reader.i16()? == 1 && kind == kind::STRING {
            found = Some(reader.string()?);
        } else {
            reader.skip(kind)?;
        }
    }
}

fn frame(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; LENGTH_BYTES]);
    content(out);
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    if let Some(length_bytes) = out.get_mut(start..start + LENGTH_BYTES) {
        length_bytes.copy_from_slice(&length.to_be_bytes());
    }
}

fn header(out: &mut Vec<u8>, message: u8, name: &[u8], sequence: i32) {
    out.extend((VERSION | u32::from(message)).to_be_bytes());
    string(out, name);
    out.extend(sequence.to_be_bytes());
}

fn field(out: &mut Vec<u8>, kind: u8, id: i16) {
    out.push(kind);
    out.extend(id.to_be_bytes());
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_be_bytes());
    out.extend(bytes);
}

/// The bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;

const VERSION_MASK: u32 = 0xffff_0000;
const VERSION: u32 = 0x8001_0000;
const CALL: u8 = 1;
const REPLY: u8 = 2;
const EXCEPTION: u8 = 3;
const ONE_WAY: u8 = 4;
