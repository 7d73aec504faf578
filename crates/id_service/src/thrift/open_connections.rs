//! The open connections, and which of them is evicted for a new one.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
    time::Instant,
};

use driftline_runtime::metrics::{ID_CONNECTIONS, ID_CONNECTIONS_ENDED};
use tokio::sync::Notify;

/// All open connections of one thread.
#[derive(Debug, Default)]
pub(super) struct OpenConnections {
    open: RefCell<HashMap<u64, Rc<OpenConnection>>>,
    last: Cell<u64>,
    /// Notified when a connection has ended.
    pub(super) ended: Notify,
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct OpenConnection {
    opened: Instant,
    /// When its last call was answered.
    pub(super) answered: Cell<Option<Instant>>,
    /// Notified to end the connection once the calls that were sent are answered.
    pub(super) closing: Notify,
    /// Notified to end the connection at once.
    pub(super) evicted: Notify,
}

/// A slot among the open connections. Dropping it frees the slot.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    number: u64,
    pub(super) connection: Rc<OpenConnection>,
    all: Rc<OpenConnections>,
}

impl OpenConnections {
    /// Adds a connection. If there are `max` already, one is evicted: the oldest of those without any
    /// call, else the one whose last call is the longest ago. So a peer that only opens connections,
    /// or drips bytes, cannot lock out clients that send calls.
    pub(super) fn add(self: &Rc<Self>, max: usize) -> ConnectionSlot {
        if self.len() >= max {
            self.evict();
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        let connection = Rc::new(OpenConnection {
            opened: Instant::now(),
            answered: Cell::new(None),
            closing: Notify::new(),
            evicted: Notify::new(),
        });
        self.open
            .borrow_mut()
            .insert(number, Rc::clone(&connection));
        ID_CONNECTIONS.set(self.len() as f64);
        ConnectionSlot {
            number,
            connection,
            all: Rc::clone(self),
        }
    }

    /// Ends the connection that has been idle the longest.
    pub(super) fn evict(&self) {
        let open = self.open.borrow();
        let silent = open.iter().min_by_key(|(_, entry)| {
            let answered = entry.answered.get();
            (answered.is_some(), answered.unwrap_or(entry.opened))
        });
        let Some((&number, entry)) = silent else {
            return;
        };
        ID_CONNECTIONS_ENDED.with(["room"]).increment(1);
        entry.evicted.notify_one();
        drop(open);
        // The connection ends when it is polled next; it must not be chosen again until then.
        self.open.borrow_mut().remove(&number);
    }

    /// Ends all connections once the calls that were sent are answered.
    pub(super) fn end_all(&self) {
        for entry in self.open.borrow().values() {
            entry.closing.notify_one();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open.borrow().len()
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.all.open.borrow_mut().remove(&self.number);
        ID_CONNECTIONS.set(self.all.len() as f64);
        self.all.ended.notify_one();
    }
}
