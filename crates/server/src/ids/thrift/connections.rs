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
    opened: Instant,
    /// When a call of it was last answered.
    pub(super) answered: Cell<Option<Instant>>,
    /// Told when it is to end once what was sent is answered.
    pub(super) closing: Notify,
    /// Told when it is to end at once.
    pub(super) evicted: Notify,
}

/// A place among the open connections, free again when this is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    pub(super) entry: Rc<Entry>,
    all: Rc<Connections>,
}

impl Connections {
    /// Enters a connection. Where there are `most` already, one ends for it: of those that never
    /// asked anything the oldest, else the one that asked nothing for the longest. So a peer that
    /// only opens connections, or drips bytes, shuts nobody out who asks.
    pub(super) fn enter(self: &Rc<Self>, most: usize) -> Ticket {
        if self.len() >= most {
            self.evict();
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        let entry = Rc::new(Entry {
            opened: Instant::now(),
            answered: Cell::new(None),
            closing: Notify::new(),
            evicted: Notify::new(),
        });
        self.open.borrow_mut().insert(number, Rc::clone(&entry));
        gauge!("driftline_id_connections").set(self.len() as f64);
        Ticket {
            number,
            entry,
            all: Rc::clone(self),
        }
    }

    /// Ends the connection that is missed the least.
    pub(super) fn evict(&self) {
        let open = self.open.borrow();
        let silent = open.iter().min_by_key(|(_, entry)| {
            let answered = entry.answered.get();
            (answered.is_some(), answered.unwrap_or(entry.opened))
        });
        let Some((&number, entry)) = silent else {
            return;
        };
        counter!("driftline_id_connections_ended_total", "reason" => "room").increment(1);
        entry.evicted.notify_one();
        drop(open);
        // It ends at its next turn; until then nobody chooses it again.
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
