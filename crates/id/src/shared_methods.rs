/// Adds what all generators do alike, by their `try_next` and `reserve`: a generator for one owner takes
/// itself as `&mut self`, one for many as `&self`.
macro_rules! shared_methods {
    ($generator:ident $(, $mut:tt)?) => {
        impl<C: $crate::clock::Clock> $generator<C> {
            /// Starts the sequence of each tick elsewhere than at 0.
            #[must_use]
            pub fn with_sequence_start(mut self, start: $crate::SequenceStart) -> Self {
                self.rules.start = start;
                self
            }

            /// Fills the slice from its beginning, and returns how far: less than all of it if the tick
            /// has fewer.
            ///
            /// # Errors
            /// [`NotNow`](crate::NotNow) if not even one ID can be issued now.
            pub fn fill(&$($mut)? self, ids: &mut [u64]) -> Result<usize, $crate::NotNow> {
                if ids.is_empty() {
                    return Ok(0);
                }
                let batch = self.reserve(ids.len())?;
                let slots = ids.iter_mut().zip(batch);
                Ok(slots.map(|(slot, raw)| *slot = raw).count())
            }

            /// The node and, through it, the layout.
            pub fn node(&self) -> &$crate::Node {
                self.rules.window.node()
            }

            /// The end of the window in Unix µs, as extended so far.
            pub fn window_until_us(&self) -> i64 {
                self.rules.window.until_us()
            }

            /// The clock policy.
            pub fn policy(&self) -> $crate::ClockPolicy {
                self.rules.policy
            }
        }

        #[cfg(feature = "std")]
        impl<C: $crate::clock::Clock> $generator<C> {
            /// Returns an ID, after a wait if necessary: for the next tick, or as long as the policy allows.
            /// A waiting thread holds nothing.
            ///
            /// # Errors
            /// [`Refusal`](crate::Refusal) if the policy allows no longer wait.
            #[inline]
            pub fn next_id(&$($mut)? self) -> Result<u64, $crate::Refusal> {
                match self.try_next() {
                    Ok(raw) => Ok(raw),
                    Err(not_now) => $crate::blocking::wait(self, not_now, |ids| ids.try_next()),
                }
            }

            /// Returns up to `length` IDs of one tick, after a wait if necessary.
            ///
            /// # Errors
            /// [`Refusal`](crate::Refusal) if the policy allows no longer wait.
            pub fn reserve_waiting(
                &$($mut)? self,
                length: usize,
            ) -> Result<$crate::Batch, $crate::Refusal> {
                match self.reserve(length) {
                    Ok(batch) => Ok(batch),
                    Err(not_now) => {
                        $crate::blocking::wait(self, not_now, |ids| ids.reserve(length))
                    }
                }
            }
        }

        #[cfg(feature = "std")]
        impl<C: $crate::clock::Clock> $crate::blocking::Source for &$($mut)? $generator<C> {
            fn limits(&self) -> ($crate::ClockPolicy, u64) {
                (self.rules.policy, self.rules.plan.unit_us)
            }

            fn fresh_us(&self) -> i64 {
                self.clock.fresh_us()
            }
        }

        #[cfg(feature = "tokio")]
        impl<C: $crate::clock::Clock> $generator<C> {
            /// An ID before the deadline, on a Tokio runtime with its timer enabled;
            /// [`NotNow::Wait`](crate::NotNow::Wait) if the deadline comes first. Cancel-safe: an
            /// ID is taken only when it is returned.
            ///
            /// The runtime's timer counts whole ms, so that on a busy runtime a wait may miss a
            /// tick. Where more IDs are asked for than the layout has, take many of a tick at once,
            /// by [`reserve_before`](Self::reserve_before). Waits below 50 µs give way to the
            /// runtime's other tasks instead of sleeping.
            ///
            /// # Errors
            /// [`NotNow`](crate::NotNow) if the deadline comes first.
            pub async fn next_before(
                &$($mut)? self,
                deadline: tokio::time::Instant,
            ) -> Result<u64, $crate::NotNow> {
                $crate::waiting::wait(deadline, || self.try_next()).await
            }

            /// Up to `length` IDs of one tick before the deadline, as
            /// [`next_before`](Self::next_before). Cancel-safe.
            ///
            /// # Errors
            /// [`NotNow`](crate::NotNow) if the deadline comes first.
            pub async fn reserve_before(
                &$($mut)? self,
                length: usize,
                deadline: tokio::time::Instant,
            ) -> Result<$crate::Batch, $crate::NotNow> {
                $crate::waiting::wait(deadline, || self.reserve(length)).await
            }
        }
    };
}
pub(crate) use shared_methods;
