//! The open connections, and which of them makes room for a new one.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Instant,
};

use metrics::{counter, gauge};
use tokio::sync::Notify;

/// All open connections of one thread.
#[derive(Debug, Default)]
pub(super) struct Connections {
    open: RefCell<HashMap<u64, Rc<Entry>>>,
    last: Cell<u64>,
    /// Told when a connection has ended.
    pub(super) ended: Notify,
}

/// What is known of one connection.
#[derive(Debug)]
pub(super) struct Entry {
    /// When it last sent something, or was opened.
    pub(super) active: Cell<Instant>,
    /// Told when it is to end.
    pub(super) closing: Notify,
}

/// A place among the open connections, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    pub(super) entry: Rc<Entry>,
    all: Rc<Connections>,
}

impl Connections {
    /// Enters a connection. Where there are `most` already, the one that has been silent for the
    /// longest ends for it: a peer that only opens connections shuts nobody out.
    pub(super) fn enter(self: &Rc<Self>, most: usize) -> Ticket {
        if self.len() >= most {
            self.end_most_silent();
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        let entry = Rc::new(Entry {
            active: Cell::new(Instant::now()),
            closing: Notify::new(),
        });
        self.open.borrow_mut().insert(number, Rc::clone(&entry));
        gauge!("driftline_id_connections").set(self.len() as f64);
        Ticket {
            number,
            entry,
            all: Rc::clone(self),
        }
    }

    /// Tells the connection that has been silent for the longest to end.
    pub(super) fn end_most_silent(&self) {
        let open = self.open.borrow();
        let silent = open.iter().min_by_key(|(_, entry)| entry.active.get());
        let Some((&number, entry)) = silent else {
            return;
        };
        counter!("driftline_id_connections_ended_total", "reason" => "room").increment(1);
        entry.closing.notify_one();
        drop(open);
        // It ends soon; until then nobody chooses it again.
        self.open.borrow_mut().remove(&number);
    }

    /// Tells all to end.
    pub(super) fn end_all(&self) {
        for entry in self.open.borrow().values() {
            entry.closing.notify_one();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.borrow().len()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.all.open.borrow_mut().remove(&self.number);
        gauge!("driftline_id_connections").set(self.all.len() as f64);
        self.all.ended.notify_one();
    }
}
