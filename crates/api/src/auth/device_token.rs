//! The token of a browser in which somebody has logged in: further tries there have a count of their own.
//!
//! It opens nothing. Whoever takes it may try passphrases of its account as often as its owner, and no
//! oftener. Keys and kinds are those of native tokens.

use driftline_store::LocalAccountId;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::native_token::{Claims, InvalidToken, Kind, NativeTokens};

/// How long after a log-in its browser is known: as long as keys go on verifying.
pub(crate) const DEVICE_LIFETIME_MS: i64 = 30 * 86_400_000;

#[derive(Debug, Serialize, Deserialize)]
struct DeviceClaims {
    /// What its tries are counted by.
    jti: String,
}

/// A browser in which an account has logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownDevice {
    pub(crate) account: LocalAccountId,
    /// What its tries are counted by.
    pub(crate) id: String,
}

impl NativeTokens {
    /// Signs the token of a device.
    pub(crate) fn sign_device(
        &self,
        device: &KnownDevice,
        now_ms: i64,
    ) -> Result<SecretString, InvalidToken> {
        let own = DeviceClaims {
            jti: device.id.clone(),
        };
        let (account, end_ms) = (device.account.to_string(), now_ms + DEVICE_LIFETIME_MS);
        Ok(self.encode(DEVICE, account, own, end_ms, now_ms)?.into())
    }

    /// Reads the token of a device.
    pub(crate) fn device(&self, text: &str, now_ms: i64) -> Result<KnownDevice, InvalidToken> {
        let claims: Claims<DeviceClaims> = self.decode(DEVICE, text, now_ms)?;
        let account: u64 = claims.sub.parse().map_err(|_| InvalidToken)?;
        match claims.exp > now_ms.div_euclid(1000) {
            true => Ok(KnownDevice {
                account: LocalAccountId::new(account),
                id: claims.own.jti,
            }),
            false => Err(InvalidToken),
        }
    }
}

const DEVICE: Kind = Kind {
    typ: "device+jwt",
    audience: "driftline/device",
};

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::auth::TokenKeys;

    const NOW_MS: i64 = 1_800_000_000_000;

    #[test]
    fn a_device_is_known_for_thirty_days_and_its_token_is_no_other() {
        let keys = |secret| TokenKeys::new([1; 8], [secret; 32], NOW_MS);
        let tokens = NativeTokens::new(keys(2), "store");
        let device = KnownDevice {
            account: LocalAccountId::new(1234),
            id: "device".to_owned(),
        };
        let signed = tokens.sign_device(&device, NOW_MS).unwrap();
        let text = signed.expose_secret();
        let end_ms = NOW_MS + DEVICE_LIFETIME_MS;
        assert_eq!(tokens.device(text, end_ms - 1), Ok(device));
        assert_eq!(tokens.device(text, end_ms), Err(InvalidToken));
        assert!(tokens.auth(text, NOW_MS).is_err() && tokens.refresh(text, NOW_MS).is_err());
        for other in [
            NativeTokens::new(keys(3), "store"),
            NativeTokens::new(keys(2), "another store"),
        ] {
            assert_eq!(other.device(text, NOW_MS), Err(InvalidToken));
        }
        assert_eq!(tokens.device("", NOW_MS), Err(InvalidToken));
    }
}
