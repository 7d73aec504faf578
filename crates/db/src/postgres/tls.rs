//! TLS to the server.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::DbError;

/// Makes encrypted connections.
#[derive(Clone)]
pub(super) struct Tls(pub(super) MakeRustlsConnect);

/// The rule for accepted certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any certificate. Protects against eavesdropping, but not against impersonation of the
    /// server.
    Anyone,
    /// A certificate that a trusted authority has signed, for any name.
    Authority,
    /// A certificate that a trusted authority has signed for the name in the URL.
    AuthorityAndName,
}

impl Tls {
    /// Trusts the authorities in the PEM file `root`. Without it, or with `system`, trusts those of
    /// the operating system.
    pub(super) fn new(trust: Trust, root: Option<&str>) -> Result<Tls, DbError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let config = match trust {
            Trust::AuthorityAndName => builder.with_root_certificates(roots(root)?),
            Trust::Authority | Trust::Anyone => {
                let authority = match trust {
                    Trust::Authority => Some(verifier(root, &provider)?),
                    _ => None,
                };
                let verifier = AnyName {
                    authority,
                    provider,
                };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(verifier))
            }
        };
        Ok(Tls(MakeRustlsConnect::new(config.with_no_client_auth())))
    }
}

/// Explains a failed handshake to the operator; `None` for other errors.
pub(super) fn explain(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let inside = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        let inside = inside.map(|inside| inside as &(dyn Error + 'static));
        let tls = inside.unwrap_or(error).downcast_ref::<rustls::Error>();
        if let Some(tls) = tls {
            return Some(match tls {
                rustls::Error::InvalidCertificate(
                    CertificateError::NotValidForName
                    | CertificateError::NotValidForNameContext { .. },
                ) => format!(
                    "the server's certificate is for another name than the URL's host ({tls}); \
                     connect by a name in it, or use sslmode=verify-ca"
                ),
                rustls::Error::InvalidCertificate(
                    CertificateError::UnknownIssuer | CertificateError::BadSignature,
                ) => format!(
                    "no trusted authority has signed the server's certificate ({tls}); name the \
                     one that has with sslrootcert=FILE"
                ),
                rustls::Error::InvalidCertificate(CertificateError::Other(other))
                    if other.to_string().contains(OLD_FORM) =>
                {
                    "TLS failed: the server's certificate is of X.509's first version, as Citus \
                     makes one for itself; give the server one of version 3, or use \
                     sslmode=disable"
                        .to_owned()
                }
                tls => format!("TLS failed: {tls}"),
            });
        }
        cause = inside.or_else(|| error.source());
    }
    None
}

fn verifier(
    root: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, DbError> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots(root)?), Arc::clone(provider))
        .build()
        .map_err(|error| unusable(&error))
}

fn unusable(error: &dyn Error) -> DbError {
    DbError::Open(format!("TLS cannot be set up: {error}"))
}

fn roots(root: Option<&str>) -> Result<RootCertStore, DbError> {
    let mut roots = RootCertStore::empty();
    match root {
        None | Some("system") => {
            // Some of a system's certificates may be unusable; one is enough.
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(DbError::Open(
                    "the operating system names no trusted authorities: name one with \
                     sslrootcert=FILE"
                        .into(),
                ));
            }
        }
        Some(file) => {
            let wrong = |reason: &dyn std::fmt::Display| {
                DbError::Open(format!("sslrootcert={file} cannot be used: {reason}"))
            };
            let certificates =
                CertificateDer::pem_file_iter(file).map_err(|error| wrong(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"there is no certificate in it"));
            }
        }
    }
    Ok(roots)
}

/// The library's name for a certificate that it does not read, so that it cannot check that the
/// server has its key. Without the check, another server could show the certificate and pass the
/// check that binds a password to it.
const OLD_FORM: &str = "UnsupportedCertVersion";

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyName {
    /// The authorities, one of which must have signed it.
    authority: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl AnyName {
    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(authority) = &self.authority else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = authority.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The name is checked last, when the chain is known to be good.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::OtherError;

    #[test]
    fn a_certificate_of_the_first_version_is_explained() {
        // The tests cannot make such a certificate.
        let reason = Arc::new(io::Error::other(OLD_FORM));
        let reason = CertificateError::Other(OtherError(reason));
        let failed = io::Error::other(rustls::Error::InvalidCertificate(reason));
        let text = explain(&failed).expect("an explanation");
        assert!(text.contains("version 3"), "{text}");
    }
}
