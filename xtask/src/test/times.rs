//! How long test programs took when they last succeeded.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::error::TaskError;
use crate::workspace::Workspace;

/// The times of programs, by name.
pub(super) struct Times(BTreeMap<String, Duration>);

impl Times {
    /// None where none were kept.
    pub(super) fn read(workspace: &Workspace) -> Times {
        let kept = workspace.shell.read_file(FILE).unwrap_or_default();
        Times(parse(&kept))
    }

    /// Unknown is long: it may be.
    pub(super) fn of(&self, name: &str) -> Duration {
        self.0.get(name).copied().unwrap_or(Duration::MAX)
    }

    pub(super) fn set(&mut self, name: &str, took: Duration) {
        self.0.insert(name.to_owned(), took);
    }

    pub(super) fn write(&self, workspace: &Workspace) -> Result<(), TaskError> {
        let line = |(name, took): (&String, &Duration)| format!("{} {name}\n", took.as_millis());
        let text: String = self.0.iter().map(line).collect();
        Ok(workspace.shell.write_file(FILE, text)?)
    }
}

fn parse(text: &str) -> BTreeMap<String, Duration> {
    let one = |line: &str| {
        let (ms, name) = line.split_once(' ')?;
        Some((name.to_owned(), Duration::from_millis(ms.parse().ok()?)))
    };
    text.lines().filter_map(one).collect()
}

/// Milliseconds and a name, a line each.
const FILE: &str = "target/test-times";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_read_are_passed_over() {
        let times = Times(parse("1200 core/laws\nx y\n\n7\n15 cli/demo tests\n"));
        assert_eq!(times.0.len(), 2);
        assert_eq!(times.of("core/laws"), Duration::from_millis(1_200));
        assert_eq!(times.of("cli/demo tests"), Duration::from_millis(15));
        assert_eq!(times.of("unknown"), Duration::MAX);
    }
}
