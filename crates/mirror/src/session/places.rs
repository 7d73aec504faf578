use driftline_core::{
    answer::{Page, PageRequest},
    timeline::Places,
};
use driftline_store::entry;

use super::{Session, SessionError};

impl Session {
    /// Lists posts whose IDs change at the positions that are stored of them.
    pub(super) async fn keep_places(
        &mut self,
        page: &mut Page,
        request: &PageRequest,
    ) -> Result<(), SessionError> {
        let movable = Places::movable(page);
        if movable.is_empty() {
            return Ok(());
        }
        let source = self.source.key();
        let stored = self
            .store
            .read(move |tx| entry::positions(tx, source, &movable))
            .await?;
        self.places.keep(page, request, &stored);
        Ok(())
    }
}
