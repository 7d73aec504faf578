//! Thrift's binary protocol: the encoding of values.

/// The types of values, by their numbers on the wire.
pub(super) mod kind {
    pub(in super::super) const STOP: u8 = 0;
    pub(in super::super) const BOOL: u8 = 2;
    pub(in super::super) const BYTE: u8 = 3;
    pub(in super::super) const DOUBLE: u8 = 4;
    pub(in super::super) const I16: u8 = 6;
    pub(in super::super) const I32: u8 = 8;
    pub(in super::super) const I64: u8 = 10;
    pub(in super::super) const STRING: u8 = 11;
    pub(in super::super) const STRUCT: u8 = 12;
    pub(in super::super) const MAP: u8 = 13;
    pub(in super::super) const SET: u8 = 14;
    pub(in super::super) const LIST: u8 = 15;
    pub(in super::super) const UUID: u8 = 16;
}

/// Why bytes are not a value of the binary protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end within a value.
    #[error("the message ends within a value")]
    CutOff,
    /// A length is negative.
    #[error("a length is {0}")]
    Length(i32),
    /// No value has a type of this number.
    #[error("there is no type {0}")]
    Type(u8),
    /// Values are nested more than [`MAX_DEPTH`] deep.
    #[error("values are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    /// The header's version is not 1.
    #[error("the message begins with {0:#010x}, not with version 1; is it the binary protocol?")]
    Version(u32),
}

/// Reads values off the front of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn i16(&mut self) -> Result<i16, WireError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_be_bytes)
    }

    /// A length and that many bytes.
    pub(super) fn string(&mut self) -> Result<&'a [u8], WireError> {
        let length = self.length()?;
        self.bytes(length)
    }

    /// That many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(WireError::CutOff)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Skips a value of that type. The time is linear in the bytes skipped, whatever lengths they
    /// claim.
    pub(super) fn skip(&mut self, kind: u8) -> Result<(), WireError> {
        self.skip_within(kind, MAX_DEPTH)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Result<(), WireError> {
        if let Some(size) = fixed_size(kind) {
            return self.bytes(size).map(|_| ());
        }
        if kind == kind::STRING {
            return self.string().map(|_| ());
        }
        let depth = depth.checked_sub(1).ok_or(WireError::TooDeep)?;
        match kind {
            kind::STRUCT => loop {
                let field = self.u8()?;
                if field == kind::STOP {
                    return Ok(());
                }
                self.i16()?;
                self.skip_within(field, depth)?;
            },
            kind::MAP => {
                let (key, value) = (self.u8()?, self.u8()?);
                for _ in 0..self.length()? {
                    self.skip_within(key, depth)?;
                    self.skip_within(value, depth)?;
                }
                Ok(())
            }
            kind::SET | kind::LIST => {
                let element = self.u8()?;
                for _ in 0..self.length()? {
                    self.skip_within(element, depth)?;
                }
                Ok(())
            }
            unknown => Err(WireError::Type(unknown)),
        }
    }

    fn length(&mut self) -> Result<usize, WireError> {
        let length = self.i32()?;
        usize::try_from(length).map_err(|_| WireError::Length(length))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(WireError::CutOff)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

/// Every type has at least one byte, so that no claimed count makes a loop long.
const fn fixed_size(kind: u8) -> Option<usize> {
    match kind {
        kind::BOOL | kind::BYTE => Some(1),
        kind::I16 => Some(2),
        kind::I32 => Some(4),
        kind::DOUBLE | kind::I64 => Some(8),
        kind::UUID => Some(16),
        _ => None,
    }
}

/// How deep values may be nested.
pub const MAX_DEPTH: u32 = 16;
