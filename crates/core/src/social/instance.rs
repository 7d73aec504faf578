//! Servers, as they present themselves.

use driftline_id::Id;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A server: this one, one that is mirrored, or one that only a mirrored author belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its ID among all instances: see [`Instance::id_of`].
    pub id: InstanceId,
    /// Its origin: scheme, host and port. Of a server that is known by an author's name alone, `https`
    /// and the host.
    pub origin: String,
    /// What it says of itself.
    pub profile: InstanceProfile,
}

/// The ID of an [`Instance`].
pub type InstanceId = Id<Instance>;

/// What a server says of itself. A text that it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceProfile {
    /// Its name for people.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The version of its software.
    pub version: String,
    /// The name of its software.
    pub software_name: String,
    /// The protocols and features that it offers.
    pub extensions: Vec<String>,
    /// Who runs it.
    pub maintainer_name: String,
}

impl Instance {
    /// An instance of that origin that says that of itself. Without a name it has that of its host.
    pub fn new(origin: &str, profile: InstanceProfile) -> Self {
        let mut profile = profile.bounded();
        if profile.name.is_empty() {
            profile.name = host(origin);
        }
        Self {
            id: Self::id_of(origin),
            origin: origin.to_owned(),
            profile,
        }
    }

    /// The ID of the instance of an origin, or of a host. It follows from the host (with its port) alone,
    /// whichever process meets it first, and has 19 digits, which no ID from a clock reaches.
    pub fn id_of(origin: &str) -> InstanceId {
        let digest = Sha256::new()
            .chain_update(b"instance:")
            .chain_update(host(origin))
            .finalize();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        Id::new(MIN_ID + (u64::from_be_bytes(first) >> 4))
    }
}

impl InstanceProfile {
    /// Within the bounds of what is stored: control characters become spaces, and texts are cut.
    #[must_use]
    pub fn bounded(self) -> Self {
        let mut extensions: Vec<String> = self
            .extensions
            .iter()
            .map(|name| bounded(name, MAX_NAME))
            .filter(|name| !name.is_empty())
            .collect();
        extensions.sort_unstable();
        extensions.dedup();
        extensions.truncate(MAX_EXTENSIONS);
        Self {
            name: bounded(&self.name, MAX_NAME),
            description: bounded(&self.description, MAX_DESCRIPTION),
            version: bounded(&self.version, MAX_NAME),
            software_name: bounded(&self.software_name, MAX_NAME),
            extensions,
            maintainer_name: bounded(&self.maintainer_name, MAX_NAME),
        }
    }

    /// What is said here, and what `other` says of the rest.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let first = |mine: String, other: String| if mine.is_empty() { other } else { mine };
        Self {
            name: first(self.name, other.name),
            description: first(self.description, other.description),
            version: first(self.version, other.version),
            software_name: first(self.software_name, other.software_name),
            extensions: [self.extensions, other.extensions].concat(),
            maintainer_name: first(self.maintainer_name, other.maintainer_name),
        }
    }
}

/// The host of an origin, with its port, in lower case.
pub fn host(origin: &str) -> String {
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    host.trim_end_matches('/').to_ascii_lowercase()
}

/// At most so many characters of a text.
fn bounded(text: &str, most: usize) -> String {
    let shown = text.chars().map(|letter| match letter {
        '\n' => '\n',
        letter if letter.is_control() => ' ',
        letter => letter,
    });
    let bounded: String = shown.take(most).collect();
    bounded.trim().to_owned()
}

const MIN_ID: u64 = 1_000_000_000_000_000_000;
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 4096;
const MAX_EXTENSIONS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_has_one_id_however_it_is_named() {
        let id = Instance::id_of("https://A.example");
        for name in ["a.example", "http://a.example/", "A.EXAMPLE"] {
            assert_eq!(Instance::id_of(name), id, "{name}");
        }
        assert_ne!(Instance::id_of("https://a.example:81"), id);
        assert_eq!(id.to_string().len(), 19);
        assert!(i64::try_from(id.raw()).is_ok());
    }

    #[test]
    fn an_instance_that_says_nothing_has_its_hosts_name() {
        let instance = Instance::new("https://a.example", InstanceProfile::default());
        assert_eq!(instance.profile.name, "a.example");
    }

    #[test]
    fn what_a_server_says_is_bounded() {
        let long = "ü\0".repeat(10_000);
        let profile = InstanceProfile {
            name: long.clone(),
            description: long.clone(),
            extensions: (0..1000).map(|n| format!("{n}{long}")).collect(),
            ..InstanceProfile::default()
        };
        let bounded = profile.bounded();
        assert!(bounded.name.chars().count() <= MAX_NAME && !bounded.name.contains('\0'));
        assert!(bounded.description.chars().count() <= MAX_DESCRIPTION);
        assert_eq!(bounded.extensions.len(), MAX_EXTENSIONS);
        assert_eq!(bounded.clone().bounded(), bounded);
    }
}
