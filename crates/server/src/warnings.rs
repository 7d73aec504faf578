//! What tests see warned of.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use tracing::subscriber::DefaultGuard;

/// What this thread warns of from now on.
#[derive(Clone, Default)]
pub(crate) struct Warnings(Arc<Mutex<Vec<u8>>>);

impl Warnings {
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        let told = Self::default();
        let writer = told.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::WARN)
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone());
        (told, tracing::subscriber::set_default(subscriber.finish()))
    }

    /// How many lines hold this.
    pub(crate) fn times(&self, what: &str) -> usize {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().filter(|line| line.contains(what)).count()
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
