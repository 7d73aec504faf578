//! What it proves that a look-up finds nothing, as `driftline_mirror` finds it out.

use driftline_core::{answer::LookUp, post::PostKind, upstream_id::UpstreamId};
use driftline_store::{
    GoneProof,
    control_posts::{ControlPosts, control_posts},
};

use crate::simulation::Simulation;

impl Simulation {
    /// `None` if a control has no usable answer.
    pub(crate) fn proof(&mut self, id: &UpstreamId) -> Option<GoneProof> {
        let (source, asked) = (self.source, id.clone());
        let store = self.store.plain();
        let controls = store.read_blocking(move |tx| control_posts(tx, source, &asked));
        let Some(ControlPosts {
            kind,
            is_original_deleted,
            of_author,
            of_others,
        }) = controls.unwrap()
        else {
            return Some(GoneProof::Nothing);
        };
        let is_deleted = match kind {
            PostKind::Boost => is_original_deleted,
            PostKind::Post if self.finds_one(&of_author)? => return Some(GoneProof::Deleted),
            PostKind::Post => of_author.is_empty(),
        };
        Some(match (self.finds_one(&of_others)?, is_deleted) {
            (false, _) => GoneProof::Nothing,
            (true, false) => GoneProof::Hidden,
            (true, true) => GoneProof::Deleted,
        })
    }

    fn finds_one(&mut self, ids: &[UpstreamId]) -> Option<bool> {
        for id in ids {
            let access = self.drawn.access;
            let found = access.look_up(&mut self.upstream, self.now_ms, id);
            self.now_ms = self.upstream.received_at_ms();
            if let LookUp::Found(_) = found.ok()? {
                return Some(true);
            }
        }
        Some(false)
    }
}
