//! Settings of a server that several commands read.

use std::time::Duration;

use driftline_api::{ConfiguredInstance, OwnInstance, transport::TrustedProxies};
use driftline_core::social::MailAddress;
use driftline_runtime::metrics::{self, Part};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::sleep;
use url::Url;

use crate::{config::ServerSection, error::CliError};

/// The error of a process whose node another one has taken.
pub fn node_lost() -> CliError {
    CliError::failed("the node is another process's now; start again for one of your own")
}

/// Checks the configured weight of this process.
///
/// # Errors
/// [`CliError::Usage`] if it is out of range.
pub fn check_share(share: Option<u32>) -> Result<(), CliError> {
    match share {
        Some(share) if share > MAX_SHARE => Err(CliError::usage(format!(
            "invalid share {share}: expected a number from 0 to {MAX_SHARE}"
        ))),
        _ => Ok(()),
    }
}

/// What the server says of itself.
///
/// # Errors
/// [`CliError::Usage`] if a text is too long, or holds what would be taken out of it.
pub fn own_instance(server: &ServerSection) -> Result<OwnInstance, CliError> {
    let mail = server.maintainer_mail.as_deref();
    let mail = mail.map(|mail| {
        let checked = MailAddress::new(mail);
        checked.map_err(|error| CliError::usage(format!("server.maintainer_mail: {error}")))
    });
    let own = OwnInstance::new(ConfiguredInstance {
        name: server.name.clone(),
        description: server.description.clone(),
        maintainer: server.maintainer.clone(),
        maintainer_mail: mail.transpose()?.map(|mail| mail.as_str().to_owned()),
    });
    for (key, configured, shown) in [
        ("name", &server.name, own.info.name()),
        ("description", &server.description, own.info.description()),
        ("maintainer", &server.maintainer, own.info.maintainer_name()),
    ] {
        if configured
            .as_deref()
            .is_some_and(|text| text.trim() != shown)
        {
            return Err(CliError::usage(format!(
                "invalid server.{key}: it is too long, or holds control characters or such as turn the direction of text"
            )));
        }
    }
    Ok(own)
}

/// The proxies on other machines.
///
/// # Errors
/// [`CliError::Usage`] if one is neither an address nor a network.
pub fn proxies(server: &ServerSection) -> Result<TrustedProxies, CliError> {
    let texts = server.trusted_proxies.as_deref().unwrap_or_default();
    TrustedProxies::parse(texts)
        .map_err(|error| CliError::usage(format!("server.trusted_proxies: {error}")))
}

/// The address that clients use.
///
/// # Errors
/// [`CliError::Usage`] if it is not a URL of HTTP.
pub fn public_base(text: &str) -> Result<Url, CliError> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .ok_or_else(|| {
            CliError::usage(format!(
                "invalid server.public_url {text:?}: expected a URL such as https://driftline.example"
            ))
        })
}

/// Records the process's metrics from now on, with those of the parts that run here at once.
///
/// # Errors
/// [`CliError::Failed`] if they are recorded already.
pub fn record_metrics(runs_here: impl Fn(Part) -> bool) -> Result<PrometheusHandle, CliError> {
    let handle = metrics::install(runs_here)
        .map_err(|error| CliError::failed(format!("metrics cannot be recorded: {error}")))?;
    let kept = handle.clone();
    tokio::spawn(async move {
        loop {
            sleep(UPKEEP).await;
            kept.run_upkeep();
        }
    });
    Ok(handle)
}

/// Shares are proportions: a larger one says nothing else.
pub const MAX_SHARE: u32 = 1_000;
const UPKEEP: Duration = Duration::from_secs(5);
