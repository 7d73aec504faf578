//! The operator's token, and what is open without one.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
};

use driftline_api::auth::{Authorization, OperatorToken};
use secrecy::SecretString;
use url::Url;

use crate::error::CliError;

/// Reads the operator's token from where the configuration says that it is.
///
/// # Errors
/// [`CliError::Usage`] if it is missing or invalid. Never holds the token.
pub fn token(
    variable: Option<&str>,
    file: Option<&Path>,
) -> Result<Option<OperatorToken>, CliError> {
    let (text, location) = match (variable, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(CliError::usage(
                "both server.token_env and server.token_file are set; one place is enough",
            ));
        }
        (Some(name), None) => {
            let location = format!("the environment variable {name}");
            let text = std::env::var(name)
                .map_err(|_| format!("{location} with the operator's token is not set"));
            (text, location)
        }
        (None, Some(path)) => {
            let location = path.display().to_string();
            let text = std::fs::read_to_string(path).map_err(|error| {
                format!("the file {location} with the operator's token cannot be read: {error}")
            });
            (text, location)
        }
    };
    OperatorToken::new(&SecretString::from(text.map_err(CliError::usage)?))
        .map(Some)
        .map_err(|error| CliError::usage(format!("{location}: {error}")))
}

/// What a server on that address demands for more than public posts.
///
/// # Errors
/// [`CliError::Usage`] if other machines reach the address and there is no token.
pub fn authorization(
    address: SocketAddr,
    public_base: Option<&Url>,
    token: Option<OperatorToken>,
) -> Result<Authorization, CliError> {
    match token {
        Some(token) => Ok(Authorization::Operator(token)),
        None if !address.ip().is_loopback() => Err(CliError::usage(format!(
            "{address} can be reached from other machines, so an operator's token is needed: make one with `openssl rand -hex 32`, put it into a file and name that with --token-file, or name an environment variable with --token-env; or listen on 127.0.0.1"
        ))),
        // A proxy that makes the server public connects from this machine.
        None if public_base.is_some_and(|base| !is_here(base)) => Ok(Authorization::Closed),
        None => Ok(Authorization::ThisMachine),
    }
}

fn is_here(base: &Url) -> bool {
    let is_loopback = |host: &str| host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    let host = base.host_str().map(|host| host.trim_matches(['[', ']']));
    host.is_some_and(|host| host == "localhost" || is_loopback(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "https://drift.example";

    fn decide(address: &str, base: &str, token: Option<&str>) -> Result<Authorization, CliError> {
        let token = token.map(|token| OperatorToken::new(&token.to_owned().into()).unwrap());
        let base = Url::parse(base).ok();
        authorization(address.parse().unwrap(), base.as_ref(), token)
    }

    #[test]
    fn without_a_token_other_machines_get_public_posts_only() {
        for address in ["0.0.0.0:0", "[::]:7171", "192.0.2.1:80", "10.0.0.1:7171"] {
            let refused = decide(address, "", None).unwrap_err().to_string();
            assert!(refused.contains("openssl"), "{refused}");
            assert!(refused.contains(address), "{refused}");
        }
        for address in ["127.0.0.1:7171", "127.8.0.1:1", "[::1]:0"] {
            for base in ["", "http://localhost:7171", "http://[::1]/"] {
                let open = decide(address, base, None).unwrap();
                assert!(matches!(open, Authorization::ThisMachine), "{base}");
            }
            let public = decide(address, PUBLIC, None).unwrap();
            assert!(matches!(public, Authorization::Closed), "{address}");
        }
    }

    #[test]
    fn a_token_is_asked_for_on_every_address() {
        for address in ["0.0.0.0:0", "127.0.0.1:7171", "[::1]:0"] {
            for base in ["", PUBLIC] {
                let closed = decide(address, base, Some(&"0".repeat(32))).unwrap();
                assert!(matches!(closed, Authorization::Operator(_)), "{address}");
            }
        }
    }
}
