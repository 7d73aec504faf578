/// The process that a window was made in.
///
/// A fork copies a window, or a generator with its state; the copy must not make the IDs that the
/// original makes. The C library calls a handler in every child that its `fork` makes; the handler counts,
/// and a generator compares the count with its window's. Where there is no `fork` this is nothing.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    #[cfg(all(unix, feature = "std"))]
    guard: forkguard::atfork::Guard,
}

impl Origin {
    /// This process. `None` if the C library has no room for the handler.
    pub(crate) fn here() -> Option<Self> {
        Some(Self {
            #[cfg(all(unix, feature = "std"))]
            guard: forkguard::atfork::Guard::try_new().ok()?,
        })
    }

    /// Whether this is a process forked since.
    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        #[cfg(all(unix, feature = "std"))]
        return self.guard.clone().detected_fork();
        #[cfg(not(all(unix, feature = "std")))]
        false
    }
}
