//! Captures warnings in tests.
#![allow(clippy::unwrap_used)]

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;

/// The warnings that this thread logs.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<u8>>>);

impl Warnings {
    /// Captures what this thread logs until the guard is dropped.
    pub fn listen() -> (Self, DefaultGuard) {
        let warnings = Self::default();
        let writer = warnings.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone());
        (
            warnings,
            tracing::subscriber::set_default(subscriber.finish()),
        )
    }

    /// How many lines contain the text.
    pub fn times(&self, expected: &str) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(expected)).count()
    }
}

impl Write for Warnings {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(part)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
