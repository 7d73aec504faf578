//! The clients in Python.

use std::{net::SocketAddr, path::Path, process::Command};

/// Two libraries that know nothing of each other.
#[derive(Clone, Copy, Debug)]
pub enum Library {
    Thriftpy2,
    Apache,
}

pub const LIBRARIES: [Library; 2] = [Library::Thriftpy2, Library::Apache];

impl Library {
    /// What its script prints, which calls a service with these agents.
    pub fn prints<const N: usize>(self, service: SocketAddr, agents: [&str; N]) -> Vec<u8> {
        let script = match self {
            Self::Thriftpy2 => "thriftpy2_client.py",
            Self::Apache => "thrift_client.py",
        };
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ids"));
        let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
        let output = Command::new(python)
            .arg("-B")
            .arg(folder.join(script))
            .arg(service.to_string())
            .args(agents)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "the script failed (is its library there? `cargo xtask setup` installs it):\n{said}"
        );
        output.stdout
    }
}
