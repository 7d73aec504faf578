//! Requests for IDs and their replies, on the wire.

use crate::failure::Failure;

/// How a server is asked for IDs.
pub(super) trait Exchange {
    /// One request.
    fn request(&self) -> Vec<u8>;

    /// How long the reply at the beginning of the bytes is, if it is there as a whole; a failure
    /// if it isn't what was asked for.
    fn reply_length(&self, bytes: &[u8]) -> Result<Option<usize>, Failure>;

    /// The IDs in a whole reply.
    fn take_ids(&self, reply: &[u8], ids: &mut Vec<u64>) -> Result<(), Failure>;

    /// How many IDs a request brings.
    fn ids_each(&self) -> u64 {
        1
    }
}

/// Redis: `INCR`, or `INCRBY` for a block of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Redis {
    pub(super) by: u64,
}

impl Exchange for Redis {
    fn request(&self) -> Vec<u8> {
        let key = "$5\r\nbench\r\n";
        if self.by == 1 {
            return format!("*2\r\n$4\r\nINCR\r\n{key}").into_bytes();
        }
        let by = self.by.to_string();
        format!("*3\r\n$6\r\nINCRBY\r\n{key}${}\r\n{by}\r\n", by.len()).into_bytes()
    }

    fn reply_length(&self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
            return Ok(None);
        };
        // A colon, digits, a carriage return.
        if bytes[0] != b':' || !(3..=22).contains(&end) {
            return Err(unexpected("Redis", &bytes[..end]));
        }
        Ok(Some(end + 1))
    }

    fn take_ids(&self, reply: &[u8], ids: &mut Vec<u64>) -> Result<(), Failure> {
        let digits = reply.get(1..reply.len() - 2).unwrap_or_default();
        ids.push(std::str::from_utf8(digits)?.parse()?);
        Ok(())
    }

    fn ids_each(&self) -> u64 {
        self.by
    }
}

/// The Thrift service of 2010: `get_id("bench")`, framed, in the binary protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Thrift;

impl Exchange for Thrift {
    fn request(&self) -> Vec<u8> {
        let mut call = vec![0x80, 1, 0, 1, 0, 0, 0, 6];
        call.extend_from_slice(b"get_id");
        call.extend_from_slice(&[0; 4]);
        call.extend_from_slice(&[0x0b, 0, 1, 0, 0, 0, 5]);
        call.extend_from_slice(b"bench\0");
        let mut frame = (call.len() as u32).to_be_bytes().to_vec();
        frame.extend(call);
        frame
    }

    fn reply_length(&self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        // A refusal is a shorter frame: nothing follows it, which ends the load.
        let Some(reply) = bytes.get(..THRIFT_REPLY) else {
            return Ok(None);
        };
        if !reply.starts_with(THRIFT_HEAD) || reply[THRIFT_REPLY - 1] != 0 {
            return Err(unexpected("the Thrift service", bytes));
        }
        Ok(Some(THRIFT_REPLY))
    }

    fn take_ids(&self, reply: &[u8], ids: &mut Vec<u64>) -> Result<(), Failure> {
        let id = reply
            .get(THRIFT_HEAD.len()..THRIFT_REPLY - 1)
            .unwrap_or_default();
        ids.push(u64::from_be_bytes(id.try_into()?));
        Ok(())
    }
}

/// Length of the frame, reply, name, sequence number, field 0 of type i64.
const THRIFT_HEAD: &[u8] = b"\0\0\0\x1e\x80\x01\0\x02\0\0\0\x06get_id\0\0\0\0\x0a\0\0";
/// With the ID and the end of the struct.
const THRIFT_REPLY: usize = 34;

/// The HTTP service: a batch, 8 bytes an ID.
#[derive(Debug, Clone, Copy)]
pub(super) struct Http {
    pub(super) count: u64,
}

impl Exchange for Http {
    fn request(&self) -> Vec<u8> {
        format!(
            "POST /api/v1/ids?count={} HTTP/1.1\r\nHost: localhost\r\n\
             Accept: application/octet-stream\r\nContent-Length: 0\r\n\r\n",
            self.count
        )
        .into_bytes()
    }

    fn reply_length(&self, bytes: &[u8]) -> Result<Option<usize>, Failure> {
        let Some(head) = head_length(bytes) else {
            return Ok(None);
        };
        let length = head + self.body_length();
        if bytes.len() == length {
            let head = std::str::from_utf8(&bytes[..head])?;
            let says = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim())
            });
            let is_said = says.is_some_and(|says| says.parse() == Ok(self.body_length()));
            if !head.starts_with("HTTP/1.1 200 ") || !is_said {
                return Err(unexpected("the HTTP service", bytes));
            }
            return Ok(Some(length));
        }
        let status = &bytes[..head.min(13)];
        match status == b"HTTP/1.1 200 " && bytes.len() < length {
            true => Ok(None),
            false => Err(unexpected("the HTTP service", bytes)),
        }
    }

    fn take_ids(&self, reply: &[u8], ids: &mut Vec<u64>) -> Result<(), Failure> {
        let body = reply.len().saturating_sub(self.body_length());
        let (each, _) = reply[body..].as_chunks::<8>();
        ids.extend(each.iter().map(|id| u64::from_be_bytes(*id)));
        Ok(())
    }

    fn ids_each(&self) -> u64 {
        self.count
    }
}

impl Http {
    fn body_length(&self) -> usize {
        self.count as usize * 8
    }
}

/// With the empty line.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    let end = head.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

fn unexpected(who: &str, bytes: &[u8]) -> Failure {
    let shown = &bytes[..bytes.len().min(200)];
    Failure::new(format!("{who} answers {}", shown.escape_ascii()))
}

const MAX_HEAD: usize = 4_096;
