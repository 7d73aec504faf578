//! Captures warnings in tests.
#![allow(clippy::unwrap_used)]

use std::{
    cell::RefCell,
    io::{self, Write},
    rc::Rc,
    sync::Once,
};

/// The warnings that this thread logs.
#[derive(Clone, Default)]
pub struct Warnings(Rc<RefCell<Vec<u8>>>);

/// Ends the capture when it is dropped.
pub struct Capture(());

thread_local! {
    static CAPTURED: RefCell<Option<Warnings>> = const { RefCell::new(None) };
}

impl Warnings {
    /// Captures the log of this thread until the guard is dropped.
    pub fn listen() -> (Self, Capture) {
        // One subscriber for all threads. Otherwise `tracing` has wrong information about a call
        // site for a moment, while subscribers of single threads come and go.
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let subscriber = tracing_subscriber::fmt()
                .with_max_level(tracing::Level::WARN)
                .with_ansi(false)
                .without_time()
                .with_writer(|| ThreadWriter);
            tracing::subscriber::set_global_default(subscriber.finish()).unwrap();
        });
        let warnings = Self::default();
        CAPTURED.set(Some(warnings.clone()));
        (warnings, Capture(()))
    }

    /// The number of lines that contain the text.
    pub fn times(&self, expected: &str) -> usize {
        let text = String::from_utf8(self.0.borrow().clone()).unwrap();
        text.lines().filter(|line| line.contains(expected)).count()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        CAPTURED.set(None);
    }
}

struct ThreadWriter;

impl Write for ThreadWriter {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        CAPTURED.with_borrow(|captured| match captured {
            Some(warnings) => warnings.0.borrow_mut().write(part),
            None => Ok(part.len()),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
