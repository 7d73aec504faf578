use stateright::{Model, Property};

use crate::protocol::{Bound, Clock, GivenUp, Protocol, Visibility};

const WRITERS: usize = 3;
const READERS: usize = 2;
/// How many IDs are taken in all. A writer may take several, one after the other.
const IDS: u8 = 3;

/// IDs from 1, as bits.
type Ids = u16;

const fn bit(id: u8) -> Ids {
    1 << id
}

/// The highest of these IDs; 0 without any.
fn highest(ids: Ids) -> u32 {
    ids.checked_ilog2().unwrap_or(0)
}

pub(crate) struct World {
    pub(crate) protocol: Protocol,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// The clock's row as it is committed.
    last_id: u8,
    /// The writer that holds the row.
    clock_held_by: Option<usize>,
    /// IDs whose reservation is recorded.
    reserved: Ids,
    /// Reservations whose writer's root has been fenced since.
    fenced: Ids,
    writers: [Writer; WRITERS],
    /// What readers of each node see.
    visible: [Ids; 2],
    /// What is committed and not shown yet, by node.
    late: [Ids; 2],
    readers: [Reader; READERS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Writer {
    Idle,
    /// It has an ID, and has written nothing.
    Reserved {
        id: u8,
        is_fenced: bool,
    },
    /// Its transaction has written the row and holds its root.
    Written {
        id: u8,
    },
    /// Its commit has returned.
    Committed {
        id: u8,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Reader {
    /// What it has shown.
    seen: Ids,
    /// Whether something appeared below what it had shown.
    is_broken: bool,
    round: Option<Round>,
}

/// A read under way: one node after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Round {
    /// The highest ID to show, where it was read first.
    settled: Option<u8>,
    nodes_read: usize,
    found: Ids,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Take(usize),
    Write(usize),
    Commit(usize),
    Settle(usize),
    Crash(usize),
    /// A node shows a committed row.
    Arrive(u8),
    /// The root of a reservation's writer is fenced, since the lease is over.
    Fence(u8),
    /// The reservation is given up.
    GiveUp(u8),
    ReadSettled(usize),
    /// Reads the next node, and shows what was found after the last one.
    ReadNode(usize),
}

impl State {
    fn settled(&self) -> u8 {
        match self.reserved {
            0 => self.last_id,
            reserved => reserved.trailing_zeros() as u8 - 1,
        }
    }

    /// The writer that reserved an ID and has not gone on to another.
    fn owner(&self, id: u8) -> Option<usize> {
        self.writers.iter().position(|writer| match writer {
            Writer::Idle => false,
            Writer::Reserved { id: its, .. }
            | Writer::Written { id: its }
            | Writer::Committed { id: its } => *its == id,
        })
    }

    /// Whether the transaction that reserved an ID holds its root: from then on to its end.
    fn is_row_held(&self, id: u8) -> bool {
        let writer = self.owner(id).map(|writer| self.writers[writer]);
        matches!(
            writer,
            Some(Writer::Reserved { .. } | Writer::Written { .. })
        )
    }

    fn end_reservation(&mut self, id: u8) {
        self.reserved &= !bit(id);
        self.fenced &= !bit(id);
    }
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            last_id: 0,
            clock_held_by: None,
            reserved: 0,
            fenced: 0,
            writers: [Writer::Idle; WRITERS],
            visible: [0; 2],
            late: [0; 2],
            readers: Default::default(),
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (writer, its) in state.writers.iter().enumerate() {
            match its {
                Writer::Idle => actions.push(Action::Take(writer)),
                Writer::Reserved { .. } => {
                    actions.extend([Action::Write(writer), Action::Crash(writer)]);
                }
                Writer::Written { .. } => {
                    actions.extend([Action::Commit(writer), Action::Crash(writer)]);
                }
                Writer::Committed { .. } => {
                    actions.extend([Action::Settle(writer), Action::Crash(writer)]);
                }
            }
        }
        for id in 1..=IDS {
            if (state.late[0] | state.late[1]) & bit(id) != 0 {
                actions.push(Action::Arrive(id));
            }
            if state.reserved & bit(id) != 0 {
                actions.extend([Action::Fence(id), Action::GiveUp(id)]);
            }
        }
        for (reader, its) in state.readers.iter().enumerate() {
            actions.push(match (&its.round, self.protocol.bound) {
                (None, Bound::SettledFirst) => Action::ReadSettled(reader),
                _ => Action::ReadNode(reader),
            });
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Take(writer) => self.take(&mut state, writer)?,
            Action::Write(writer) => {
                let Writer::Reserved { id, is_fenced } = state.writers[writer] else {
                    return None;
                };
                state.writers[writer] = match is_fenced {
                    true => Writer::Idle,
                    false => Writer::Written { id },
                };
            }
            Action::Commit(writer) => self.commit(&mut state, writer)?,
            Action::Settle(writer) => {
                let Writer::Committed { id } = state.writers[writer] else {
                    return None;
                };
                state.end_reservation(id);
                state.writers[writer] = Writer::Idle;
            }
            Action::Crash(writer) => {
                if state.clock_held_by == Some(writer) {
                    state.clock_held_by = None;
                }
                state.writers[writer] = Writer::Idle;
            }
            Action::Arrive(id) => {
                for (late, visible) in state.late.iter_mut().zip(&mut state.visible) {
                    *visible |= *late & bit(id);
                    *late &= !bit(id);
                }
            }
            Action::Fence(id) => self.fence(&mut state, id)?,
            Action::GiveUp(id) => {
                let is_decided = match self.protocol.given_up {
                    GivenUp::AtOnce => true,
                    GivenUp::WhenFenced => state.fenced & bit(id) != 0,
                    GivenUp::WhenRowIsFree => !state.is_row_held(id),
                };
                if !is_decided {
                    return None;
                }
                state.end_reservation(id);
            }
            Action::ReadSettled(reader) => {
                let settled = Some(state.settled());
                let round = Round {
                    settled,
                    ..Round::default()
                };
                state.readers[reader].round = Some(round);
            }
            Action::ReadNode(reader) => {
                let visible = state.visible;
                let round = state.readers[reader].round.get_or_insert_default();
                round.found |= visible[round.nodes_read];
                round.nodes_read += 1;
                if round.nodes_read == self.protocol.nodes {
                    self.show(&mut state, reader)?;
                }
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("order seen is order kept", |_, state: &State| {
                state.readers.iter().all(|reader| !reader.is_broken)
            }),
            // Or the law would hold because nothing is ever shown.
            Property::sometimes("everything is seen", |_, state: &State| {
                state
                    .readers
                    .iter()
                    .all(|reader| reader.seen.count_ones() == u32::from(IDS))
            }),
        ]
    }
}

impl World {
    fn take(&self, state: &mut State, writer: usize) -> Option<()> {
        let is_held = state.clock_held_by.is_some();
        if is_held || state.last_id == IDS {
            return None;
        }
        let id = state.last_id + 1;
        match self.protocol.clock {
            // The row itself changes with the commit.
            Clock::HeldToCommit => state.clock_held_by = Some(writer),
            Clock::FreeOnceTaken => state.last_id = id,
            Clock::Reserved => {
                state.last_id = id;
                state.reserved |= bit(id);
            }
        }
        state.writers[writer] = Writer::Reserved {
            id,
            is_fenced: false,
        };
        Some(())
    }

    fn commit(&self, state: &mut State, writer: usize) -> Option<()> {
        let Writer::Written { id } = state.writers[writer] else {
            return None;
        };
        let shown = match self.protocol.visibility {
            Visibility::AtCommit => &mut state.visible,
            Visibility::NodeByNode => &mut state.late,
        };
        shown[writer % self.protocol.nodes] |= bit(id);
        if self.protocol.clock == Clock::HeldToCommit {
            state.last_id = id;
            state.clock_held_by = None;
        }
        state.writers[writer] = Writer::Committed { id };
        Some(())
    }

    /// Waits for the root, as anyone does while a transaction that has written holds it.
    fn fence(&self, state: &mut State, id: u8) -> Option<()> {
        if self.protocol.given_up != GivenUp::WhenFenced || state.fenced & bit(id) != 0 {
            return None;
        }
        if let Some(writer) = state.owner(id) {
            match &mut state.writers[writer] {
                Writer::Written { .. } => return None,
                Writer::Reserved { is_fenced, .. } => *is_fenced = true,
                Writer::Committed { .. } | Writer::Idle => {}
            }
        }
        state.fenced |= bit(id);
        Some(())
    }

    fn show(&self, state: &mut State, reader: usize) -> Option<()> {
        let settled = state.settled();
        let reader = &mut state.readers[reader];
        let round = reader.round.take()?;
        let bound = match self.protocol.bound {
            Bound::None => IDS,
            Bound::SettledFirst => round.settled?,
            Bound::SettledLast => settled,
        };
        let shown = round.found & (bit(bound + 1) - 1);
        let new = shown & !reader.seen;
        reader.is_broken |= new != 0 && new.trailing_zeros() < highest(reader.seen);
        reader.seen |= shown;
        Some(())
    }
}
