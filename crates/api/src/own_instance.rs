//! What this server says of itself.

use driftline_core::social::{InstanceInfo, InstanceSelfDescription};

/// What this server says of itself, to anybody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnInstance {
    /// Its name, description, software and maintainer.
    pub info: InstanceInfo,
    /// The mail address of its maintainer; empty if there is none.
    pub maintainer_mail: String,
}

/// What the operator says of their server; what is `None` is as of any Driftline server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfiguredInstance {
    /// Its name for people.
    pub name: Option<String>,
    /// What it is for, in plain text.
    pub description: Option<String>,
    /// The name of whoever runs it.
    pub maintainer: Option<String>,
    /// Their mail address, for everybody to see.
    pub maintainer_mail: Option<String>,
}

impl OwnInstance {
    /// A server of this version, as its operator describes it.
    pub fn new(configured: ConfiguredInstance) -> Self {
        let said = InstanceSelfDescription {
            name: configured.name.unwrap_or_else(|| NAME.to_owned()),
            description: configured
                .description
                .unwrap_or_else(|| DESCRIPTION.to_owned()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            software_name: SOFTWARE.to_owned(),
            extensions: vec![CLIENT_API.to_owned()],
            maintainer_name: configured.maintainer.unwrap_or_default(),
        };
        Self {
            info: said.into(),
            maintainer_mail: configured.maintainer_mail.unwrap_or_default(),
        }
    }
}

impl Default for OwnInstance {
    fn default() -> Self {
        Self::new(ConfiguredInstance::default())
    }
}

const NAME: &str = "Driftline";
const DESCRIPTION: &str = "A complete, fresh copy of the timelines that its people care about.";
const SOFTWARE: &str = "driftline";
/// It speaks Mastodon's API to clients, and no protocol to other servers.
const CLIENT_API: &str = "mastodon_api";
