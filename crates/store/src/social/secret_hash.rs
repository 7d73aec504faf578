use driftline_db::{DbError, Row, ToValue, ValueRef};

/// The SHA-256 of a secret. Secrets have 256 random bits, so a hash needs neither salt nor time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// The hash with this digest.
    pub const fn new(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// The digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    pub(super) fn read(row: &Row<'_>, column: &'static str) -> Result<Self, DbError> {
        let bytes = row.bytes(column)?;
        let digest = bytes.try_into();
        digest
            .map(Self)
            .map_err(|_| DbError::invalid("a hash of another length"))
    }
}

impl std::fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHash(…)")
    }
}

impl ToValue for SecretHash {
    fn to_value(&self) -> ValueRef<'_> {
        ValueRef::Blob(&self.0)
    }
}
