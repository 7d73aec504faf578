use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use crate::stats::Counters;

/// The random name of an opening of a database. After a lost connection the name is another one: a server that took
/// over may lack what the lost one committed.
pub(crate) struct Opening {
    counters: Arc<Counters>,
    /// The number of reconnections at which the name was made, and the name.
    named: Mutex<(u64, Arc<str>)>,
}

impl Opening {
    pub(crate) fn new(counters: Arc<Counters>) -> Opening {
        let named = Mutex::new((0, random_name()));
        Opening { counters, named }
    }

    /// 32 hexadecimal digits.
    pub(crate) fn name(&self) -> Arc<str> {
        let reconnects = self.counters.lock().reconnects;
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.0 != reconnects {
            *named = (reconnects, random_name());
        }
        Arc::clone(&named.1)
    }
}

fn random_name() -> Arc<str> {
    let random = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", random(), random()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_connection_changes_the_name() {
        let counters: Arc<Counters> = Arc::default();
        let opening = Opening::new(Arc::clone(&counters));
        let first = opening.name();
        assert_eq!(first.len(), 32);
        assert_eq!(opening.name(), first);
        counters.lock().reconnects += 1;
        let second = opening.name();
        assert_ne!(second, first);
        assert_eq!(opening.name(), second);
    }
}
