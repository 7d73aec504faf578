/// Finds what an upstream refuses a batch for: halves it until the culprits stand alone.
///
/// Of a batch of n with k culprits it asks about 2 k log2 n times. Where everything is refused, the
/// upstream is to blame and not the posts: see [`Bisection::is_outage`].
#[derive(Debug, Clone)]
pub struct Bisection<T> {
    open: Vec<Vec<T>>,
    culprits: Vec<T>,
    asked: u32,
    accepted: u32,
}

impl<T> Bisection<T> {
    /// Begins with a batch that has not been asked for yet.
    pub fn new(batch: Vec<T>) -> Self {
        let open = if batch.is_empty() {
            Vec::new()
        } else {
            vec![batch]
        };
        Self {
            open,
            culprits: Vec::new(),
            asked: 0,
            accepted: 0,
        }
    }

    /// The part to ask for next; `None` when nothing is left.
    pub fn part(&self) -> Option<&[T]> {
        self.open.last().map(Vec::as_slice)
    }

    /// The part was answered; returns it.
    pub fn accepted(&mut self) -> Vec<T> {
        self.asked = self.asked.saturating_add(1);
        self.accepted = self.accepted.saturating_add(1);
        self.open.pop().unwrap_or_default()
    }

    /// The part was refused: it is halved, or it is a culprit.
    pub fn refused(&mut self) {
        self.asked = self.asked.saturating_add(1);
        let Some(mut part) = self.open.pop() else {
            return;
        };
        if part.len() == 1 {
            self.culprits.append(&mut part);
            return;
        }
        let second = part.split_off(part.len() / 2);
        self.open.push(second);
        self.open.push(part);
    }

    /// Whether so much was refused, and nothing accepted, that the upstream itself is at fault: a
    /// batch, its half, and a part of that in turn down to one.
    pub fn is_outage(&self) -> bool {
        self.accepted == 0 && self.culprits.len() >= 2
    }

    /// What was refused alone.
    pub fn culprits(&self) -> &[T] {
        &self.culprits
    }

    /// Ends it: what was refused alone, and what was not answered.
    pub fn end(self) -> (Vec<T>, Vec<T>) {
        (self.culprits, self.open.into_iter().flatten().collect())
    }
}
