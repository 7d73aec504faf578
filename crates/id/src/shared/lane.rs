use core::ops::Deref;

use crate::clock::Clock;
use crate::refusal::NotNow;
use crate::run::Run;
use crate::shared::SharedGenerator;
use crate::typed::Id;

/// One thread's lane through a [`SharedGenerator`], nearly as fast as a generator of its own.
///
/// A lane takes IDs of a tick from the generator some dozens at a time; what it has left when
/// the tick is over is lost. IDs of one lane rise, and no two lanes get the same; but within a
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
            run: Run::empty(),
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

    /// [`try_next`](Self::try_next) as an ID of `T`.
    #[inline]
    pub fn try_next_as<T>(&mut self) -> Result<Id<T>, NotNow> {
        self.try_next().map(Id::new)
    }

    #[cold]
    #[inline(never)]
    fn try_next_run(&mut self) -> Result<u64, NotNow> {
        let generator = &*self.generator;
        let grant = generator.take(RUN_LENGTH)?;
        let plan = &generator.rules.plan;
        let raw = plan.raw(grant.first);
        self.run = plan.run_after(&grant);
        Ok(raw)
    }
}

#[cfg(feature = "std")]
impl<R, C> Lane<R>
where
    R: Deref<Target = SharedGenerator<C>>,
    C: Clock,
{
    /// An ID, after a wait if need be: for the next tick, or as long as the policy allows.
    #[inline]
    pub fn next_id(&mut self) -> Result<u64, crate::Refusal> {
        match self.try_next() {
            Ok(raw) => Ok(raw),
            Err(not_now) => {
                let policy = self.generator.policy();
                crate::blocking::wait(policy, not_now, || self.try_next())
            }
        }
    }
}

const RUN_LENGTH: u64 = 64;
