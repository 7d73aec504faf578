/// The process in which a window was made.
///
/// A fork copies a window, or a generator with its state. The copy must not make the IDs that the
/// original makes. The C library calls a handler in each child of its `fork`. The handler counts,
/// and a generator compares the count with its window's. On systems without `fork` this does
/// nothing.
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

    /// True in a process forked since.
    #[inline]
    pub(crate) fn is_elsewhere(&self) -> bool {
        #[cfg(all(unix, feature = "std"))]
        return self.guard.clone().detected_fork();
        #[cfg(not(all(unix, feature = "std")))]
        false
    }
}
