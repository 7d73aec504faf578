//! The progress of a copy, shown while it is made and can be stopped.

use driftline_store::backup::{Progress as Step, Watch};
use tokio::sync::watch;

use crate::{
    error::CliError,
    progress::{End, Progress},
};

/// Does work on a thread that may block, shows its progress, and ends it when a signal says so.
///
/// # Errors
/// Those of the work.
pub async fn watched<T: Send + 'static>(
    stop: watch::Receiver<bool>,
    verb: &'static str,
    work: impl FnOnce(Box<Watch>) -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let mut shown = Bars::default();
    let watch = Box::new(move |step: Step| {
        shown.show(step, verb);
        !*stop.borrow()
    });
    let done = tokio::task::spawn_blocking(move || work(watch)).await;
    done.map_err(CliError::failed)?
}

/// The progress of a copy, and then of its proof.
#[derive(Default)]
struct Bars {
    copying: Option<Progress>,
    reading: Option<Progress>,
}

impl Bars {
    fn show(&mut self, step: Step, verb: &str) {
        match step {
            Step::Copied { bytes, of } => {
                let end = of.map_or(End::Unknown, |of| End::Count(of / MEGABYTE));
                let progress = self.copying.get_or_insert_with(|| Progress::start(end));
                progress.show(bytes / MEGABYTE, "megabyte", || vec![verb.to_owned()]);
            }
            Step::Read { rows } => {
                drop(self.copying.take());
                let progress = self
                    .reading
                    .get_or_insert_with(|| Progress::start(End::Unknown));
                progress.show(rows, "row", || vec!["read to prove them".to_owned()]);
            }
        }
    }
}
const MEGABYTE: u64 = 1_000_000;
