//! The clients in Python.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

/// Two libraries that know nothing of each other.
#[derive(Clone, Copy, Debug)]
pub enum Library {
    Thriftpy2,
    Apache,
}

pub const LIBRARIES: [Library; 2] = [Library::Thriftpy2, Library::Apache];

impl Library {
    /// Starts its script with a task.
    pub fn start<'a>(self, task: impl IntoIterator<Item = &'a str>) -> Script {
        let script = match self {
            Self::Thriftpy2 => "thriftpy2_client.py",
            Self::Apache => "thrift_client.py",
        };
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ids"));
        let python = std::env::var("DRIFTLINE_PYTHON").unwrap_or_else(|_| "python3".into());
        let child = Command::new(python)
            .arg("-B")
            .arg(folder.join(script))
            .args(task)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Script { child: Some(child) }
    }
}

/// A running script, killed when it is dropped.
pub struct Script {
    child: Option<Child>,
}

impl Script {
    /// What it printed.
    pub fn output(mut self) -> Vec<u8> {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "the script failed (is its library there? `cargo xtask setup` installs it):\n{said}"
        );
        output.stdout
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
