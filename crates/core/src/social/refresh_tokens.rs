/// The usable refresh tokens of one log-in, by their digests. Pure: the time is an argument.
///
/// Each use issues a new token and closes the tokens that were open before. Closed tokens may be
/// used again within the grace period, because an answer may be lost, and several tabs may share a
/// token. A token that is used after its grace period may be stolen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefreshTokens {
    /// In the order in which they were issued, with the open ones last.
    tokens: Vec<GivenToken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GivenToken {
    digest: [u8; 32],
    /// The time of the first use of a token of its round, in Unix ms; `None` if it is open.
    closed_at_ms: Option<i64>,
}

/// The token was used before and its grace period is over, or it was never issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the refresh token was used before")]
pub struct TokenReused;

/// Stored tokens do not have the form of [`RefreshTokens::to_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one or more entries of 40 bytes")]
pub struct RefreshTokensError;

impl RefreshTokens {
    /// The grace period of closed tokens, in ms.
    pub const GRACE_MS: i64 = 30_000;
    /// The largest number of stored tokens. If a client requests tokens in a loop, the last ones
    /// are kept.
    pub const MAX: usize = 32;

    /// The first token of a log-in, which is open.
    pub fn new(first: [u8; 32]) -> Self {
        let first = GivenToken {
            digest: first,
            closed_at_ms: None,
        };
        Self {
            tokens: vec![first],
        }
    }

    /// Exchanges `used` for `next`, which is open.
    ///
    /// # Errors
    /// [`TokenReused`] if `used` is not usable.
    pub fn exchange(
        &mut self,
        used: &[u8; 32],
        next: [u8; 32],
        now_ms: i64,
    ) -> Result<(), TokenReused> {
        // A clock that was ahead must not extend the grace period of a token.
        let is_usable = |token: &GivenToken| {
            let since = token.closed_at_ms.map(|at| now_ms.saturating_sub(at));
            since.is_none_or(|since| (-Self::GRACE_MS..Self::GRACE_MS).contains(&since))
        };
        self.tokens.retain(is_usable);
        let found = self.tokens.iter().find(|token| token.digest == *used);
        if found.ok_or(TokenReused)?.closed_at_ms.is_none() {
            for token in &mut self.tokens {
                token.closed_at_ms.get_or_insert(now_ms);
            }
        }
        self.tokens.push(GivenToken {
            digest: next,
            closed_at_ms: None,
        });
        let over = self.tokens.len().saturating_sub(Self::MAX);
        self.tokens.drain(..over);
        Ok(())
    }

    /// The stored form: for each token its digest and the time of its closing, big-endian. Open
    /// tokens have the largest number as time.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.tokens.len() * TOKEN_BYTES);
        for token in &self.tokens {
            bytes.extend(token.digest);
            bytes.extend(token.closed_at_ms.unwrap_or(OPEN).to_be_bytes());
        }
        bytes
    }

    /// Reads the form of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// [`RefreshTokensError`] for any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RefreshTokensError> {
        let (tokens, rest) = bytes.as_chunks::<TOKEN_BYTES>();
        if tokens.is_empty() || !rest.is_empty() {
            return Err(RefreshTokensError);
        }
        let read = |token: &[u8; TOKEN_BYTES]| {
            let (digest, at) = token.split_at(32);
            let digest = digest.try_into().map_err(|_| RefreshTokensError)?;
            let at = at.try_into().map_err(|_| RefreshTokensError)?;
            let at = i64::from_be_bytes(at);
            Ok(GivenToken {
                digest,
                closed_at_ms: (at != OPEN).then_some(at),
            })
        };
        let tokens: Result<_, RefreshTokensError> = tokens.iter().map(read).collect();
        Ok(Self { tokens: tokens? })
    }
}

const TOKEN_BYTES: usize = 40;
const OPEN: i64 = i64::MAX;
