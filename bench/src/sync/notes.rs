//! A library of notes of about 1 kB, which replicas copy.

use std::{cell::Cell, fs, process::Stdio, rc::Rc, time::Instant};

use serde_json::{Value, json};

use super::{
    Sizes,
    device::Device,
    library::{self, long_text, set_notes, uri},
    phase::{Phase, Phases},
    server::Server,
};
use crate::{database, failure::Failure, find::corpus::Corpus, process::Driftline};

/// A server of the library.
pub(super) struct Notes {
    pub(super) server: Server,
    corpus: Rc<Corpus>,
    sizes: Sizes,
    /// The number of times that notes were changed.
    version: Cell<usize>,
}

impl Notes {
    pub(super) fn fill(database: &database::Server, sizes: Sizes) -> Result<Self, Failure> {
        let corpus = Rc::new(Corpus::new(sizes.objects as u64));
        let place = database.create("sync_notes")?;
        let text = |number| long_text(&corpus, number);
        let account = library::fill(&place, sizes.objects, text)?;
        Ok(Self {
            server: Server::start(&place, account)?,
            corpus,
            sizes,
            version: Cell::new(0),
        })
    }

    /// The notes as documents.
    pub(super) fn documents(&self) -> impl Iterator<Item = Value> {
        (0..self.sizes.objects).map(move |number| {
            let key = format!("note:{}", uri(number));
            json!({ "_id": key, "text": long_text(&self.corpus, number) })
        })
    }

    /// The texts of notes.
    pub(super) fn texts(&self) -> Box<dyn Fn(usize) -> String> {
        let corpus = Rc::clone(&self.corpus);
        Box::new(move |number| long_text(&corpus, number))
    }

    /// Synchronizes a new replica in this process.
    pub(super) fn round(&self) -> Result<Phases, Failure> {
        let device = Device::make(&self.server)?;
        let full = device.sync()?;
        self.change()?;
        let phases = Phases {
            full,
            changed: device.sync()?,
            none: device.sync()?,
            none_of_many: device.sync_many()?,
            ..Phases::UNKNOWN
        };
        device.close();
        phases.checked(self.sizes.objects, self.sizes.changes)
    }

    /// Synchronizes a new replica by commands, whose start and end count.
    pub(super) fn round_by_command(&self, program: &Driftline) -> Result<Phases, Failure> {
        let folder = tempfile::tempdir()?;
        let (token, replica) = (folder.path().join("token"), folder.path().join("replica"));
        fs::write(&token, self.server.token()?)?;
        let mut init = program.command(folder.path(), &["replica", "init", &self.server.url()]);
        init.arg("--token-file").arg(&token);
        let mut commands = [init, program.command(folder.path(), &["replica", "sync"])];
        for command in &mut commands {
            command.arg("--replica").arg(&replica).stdout(Stdio::null());
        }
        let [init, sync] = &mut commands;
        if !init.status()?.success() {
            return Err(Failure::new("`driftline replica init` failed"));
        }
        let mut measure = || -> Result<Phase, Failure> {
            let before = self.server.counted();
            let begun = Instant::now();
            let status = sync.status()?;
            let seconds = begun.elapsed().as_secs_f64();
            let after = self.server.counted();
            match status.success() {
                true => Ok(Phase {
                    seconds,
                    index_seconds: 0.0,
                    requests: after[0] - before[0],
                    bytes: after[1] - before[1],
                    read: f64::NAN,
                }),
                false => Err(Failure::new("`driftline replica sync` failed")),
            }
        };
        let full = measure()?;
        self.change()?;
        Ok(Phases {
            full,
            changed: measure()?,
            none: measure()?,
            ..Phases::UNKNOWN
        })
    }

    /// Changes notes, each of which then differs from its earlier texts.
    fn change(&self) -> Result<(), Failure> {
        let version = self.version.get() + 1;
        self.version.set(version);
        let notes = (0..self.sizes.changes).map(|number| {
            let text = format!("{version} {}", long_text(&self.corpus, number));
            (number, text)
        });
        set_notes(&self.server.store, self.server.account, notes.collect())
    }
}
