//! The cryptography of JWTs: HS256 by ring, and nothing else, so that no header can ask for another
//! algorithm.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, EncodingKey,
    crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{self, Signer, Verifier},
};
use ring::hmac::{self, HMAC_SHA256, Key};

/// Has this process's JWTs made with it.
pub(super) fn install() {
    // Fails only if it was installed before.
    let _ = PROVIDER.install_default();
}

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key: &EncodingKey| {
        check(*algorithm, key.family())?;
        Ok(Box::new(Hs256(Key::new(HMAC_SHA256, key.as_bytes()))) as Box<dyn JwtSigner>)
    },
    verifier_factory: |algorithm, key: &DecodingKey| {
        check(*algorithm, key.family())?;
        let secret = key.try_get_as_bytes()?;
        Ok(Box::new(Hs256(Key::new(HMAC_SHA256, secret))) as Box<dyn JwtVerifier>)
    },
    key_utils: KeyUtils::new_unimplemented(),
};

fn check(algorithm: Algorithm, family: AlgorithmFamily) -> Result<()> {
    match (algorithm, family) {
        (Algorithm::HS256, AlgorithmFamily::Hmac) => Ok(()),
        _ => Err(ErrorKind::InvalidAlgorithm.into()),
    }
}

struct Hs256(Key);

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, signature::Error> {
        Ok(hmac::sign(&self.0, message).as_ref().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    /// Takes the same time for every signature.
    fn verify(
        &self,
        message: &[u8],
        signed: &Vec<u8>,
    ) -> std::result::Result<(), signature::Error> {
        hmac::verify(&self.0, message, signed).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}
