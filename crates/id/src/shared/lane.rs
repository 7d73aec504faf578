use core::ops::Deref;

use crate::clock::Clock;
use crate::refusal::NotNow;
use crate::run::Run;
use crate::shared::SharedGenerator;

/// One thread's lane through a [`SharedGenerator`], nearly as fast as a generator of its own.
///
/// A lane takes IDs of a tick from the generator up to 64 at a time, and never more than a 64th
/// of the tick's; what it has left when the tick is over is lost. IDs of one lane rise, and no two lanes get the same; but within a
/// tick an ID may be smaller than one that another lane has given before. Where that matters,
/// ask the generator itself.
///
/// `R` is a reference to the generator, an [`Arc`](alloc::sync::Arc) for example. IDs that a
/// lane has taken before the generator retired may still be used: they lie in the time that
/// [`Retired`](crate::Retired) names.
#[derive(Debug)]
pub struct Lane<R> {
    generator: R,
    run: Run,
}

impl<R, C> Lane<R>
where
    R: Deref<Target = SharedGenerator<C>>,
    C: Clock,
{
    /// A lane through that generator.
    pub fn new(generator: R) -> Self {
        Self {
            generator,
            run: Run::default(),
        }
    }

    /// An ID, if there is one at this moment. Never blocks.
    #[inline]
    pub fn try_next(&mut self) -> Result<u64, NotNow> {
        let generator = &*self.generator;
        match self.run.next(generator.clock.now_us()) {
            Some(raw) if !generator.rules.origin.is_elsewhere() => Ok(raw),
            _ => self.try_next_run(),
        }
    }

    /// An ID, after a wait if need be: for the next tick, or as long as the policy allows.
    #[cfg(feature = "std")]
    #[inline]
    pub fn next_id(&mut self) -> Result<u64, crate::Refusal> {
        match self.try_next() {
            Ok(raw) => Ok(raw),
            Err(not_now) => crate::blocking::wait(self, not_now, |lane| lane.try_next()),
        }
    }

    /// An ID before the deadline, on a Tokio runtime with its timer enabled; [`NotNow::Wait`] if
    /// the deadline comes first. Cancel-safe: an ID is taken only when it is returned.
    #[cfg(feature = "tokio")]
    pub async fn next_before(&mut self, deadline: tokio::time::Instant) -> Result<u64, NotNow> {
        crate::waiting::wait(deadline, || self.try_next()).await
    }

    #[cold]
    #[inline(never)]
    fn try_next_run(&mut self) -> Result<u64, NotNow> {
        let generator = &*self.generator;
        let plan = &generator.rules.plan;
        let grant = generator.take(run_length(plan.max_sequence()))?;
        let raw = plan.raw(grant.first);
        self.run = plan.run_after(&grant);
        Ok(raw)
    }
}

#[cfg(feature = "std")]
impl<R, C> crate::blocking::Source for &mut Lane<R>
where
    R: Deref<Target = SharedGenerator<C>>,
    C: Clock,
{
    fn limits(&self) -> (crate::ClockPolicy, u64) {
        (&*self.generator).limits()
    }

    fn fresh_us(&self) -> i64 {
        self.generator.clock.fresh_us()
    }
}

/// How many IDs a lane takes at once: so few that one lane leaves some for 63 others.
fn run_length(max_sequence: u64) -> u64 {
    ((max_sequence + 1) / 64).clamp(1, 64)
}
