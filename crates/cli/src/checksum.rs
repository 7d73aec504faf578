//! SHA-256 of files.

use std::{
    fs::File,
    io::{self, Read as _, Write},
    path::Path,
};

use ring::digest::{Context, SHA256};

/// The size of a file, and its SHA-256 in hexadecimal.
///
/// # Errors
/// If it cannot be read.
pub fn of_file(path: &Path) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut digest = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 18];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((bytes, hex(digest))),
            count => {
                digest.update(&buffer[..count]);
                bytes += count as u64;
            }
        }
    }
}

/// How a file differs from what was noted of it, in words; `None` if it does not.
///
/// # Errors
/// If it cannot be read.
pub fn difference(path: &Path, bytes: u64, sha256: &str) -> io::Result<Option<String>> {
    let (found_bytes, found) = of_file(path)?;
    Ok(match found_bytes == bytes {
        false => Some(format!("{found_bytes} bytes instead of {bytes}")),
        true => (found != sha256).then(|| format!("its SHA-256 is {found}")),
    })
}

/// Counts and digests what is written through it.
pub struct Hashing<W> {
    out: W,
    digest: Context,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    /// Before anything is written.
    pub fn new(out: W) -> Self {
        Self {
            out,
            digest: Context::new(&SHA256),
            bytes: 0,
        }
    }

    /// What was written through, the SHA-256 of all of it in hexadecimal, and its bytes.
    pub fn end(self) -> (W, String, u64) {
        (self.out, hex(self.digest), self.bytes)
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.digest.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A digest in hexadecimal.
fn hex(digest: Context) -> String {
    let digest = digest.finish();
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
