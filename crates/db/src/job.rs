use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::DbError;
use crate::options::Root;
use crate::tx::Tx;

/// A caller's closure with its types hidden, so that one queue holds them all.
pub(crate) trait Job: Send {
    /// True if the caller still waits for the result.
    fn is_awaited(&self) -> bool;

    /// Runs the closure, catches a panic, and keeps the result. The transaction may commit only on
    /// [`Ran::Commit`].
    fn run(&mut self, tx: &mut Tx<'_>) -> Ran;

    /// Answers the caller with the kept result, or with the outcome of the transaction.
    fn finish(self: Box<Self>, end: Result<(), DbError>);
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Commit,
    RollBack,
    /// Roll back. Another run can help.
    Again(DbError),
}

pub(crate) struct Call<F, T, E> {
    opening: Arc<str>,
    root: Root,
    closure: F,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Call<F, T, E>
where
    F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<DbError> + Send + 'static,
{
    pub(crate) fn boxed(
        opening: Arc<str>,
        root: Root,
        closure: F,
    ) -> (Box<dyn Job>, oneshot::Receiver<Result<T, E>>) {
        let (reply, answer) = oneshot::channel();
        (
            Box::new(Call {
                opening,
                root,
                closure,
                result: None,
                reply,
            }),
            answer,
        )
    }
}

impl<F, T, E> Job for Call<F, T, E>
where
    F: FnMut(&mut Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: From<DbError> + Send,
{
    fn is_awaited(&self) -> bool {
        !self.reply.is_closed()
    }

    fn run(&mut self, tx: &mut Tx<'_>) -> Ran {
        // The closure never runs again after a panic, so its broken state is never seen.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            tx.enter(&self.opening, self.root)?;
            (self.closure)(tx)
        }));
        let Ok(result) = ran else {
            self.result = Some(Err(E::from(DbError::Panicked)));
            return Ran::RollBack;
        };
        let (result, ran) = match (result, tx.poison()) {
            (Ok(value), None) => (Ok(value), Ran::Commit),
            (_, Some(poison)) if poison.is_retryable() => return Ran::Again(poison.clone()),
            (Ok(_), Some(poison)) => {
                let poisoned = DbError::Poisoned(Box::new(poison.clone()));
                (Err(E::from(poisoned)), Ran::RollBack)
            }
            (Err(error), _) => (Err(error), Ran::RollBack),
        };
        self.result = Some(result);
        ran
    }

    fn finish(self: Box<Self>, end: Result<(), DbError>) {
        let result = match (end, self.result) {
            (Ok(()), Some(result)) => result,
            (Ok(()), None) => Err(E::from(DbError::Closed)),
            (Err(error), _) => Err(E::from(error)),
        };
        // A caller that has gone away gets no answer, although the transaction has ended.
        let _ = self.reply.send(result);
    }
}
