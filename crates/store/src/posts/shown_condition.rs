//! The SQL condition under which a viewer is shown a post. Statements that count posts or limit
//! their number use it, so that hidden posts change no answer. It states the decision of
//! [`super::timeline::visible`].

use driftline_core::post::Visibility;
use driftline_db::{Column, ToValue};

use crate::{
    id_types::{InstanceId, sql},
    posts::content_scope::ReadableScopes,
    viewer::{ReadableSource, ReadableSources},
};

/// The condition for one viewer.
pub(crate) struct ShownCondition {
    instance_id: i64,
    /// The sources whose public posts the viewer sees, those whose unlisted posts it sees too, and
    /// its own.
    sources: [Column<'static>; 3],
    /// The scopes whose content the viewer may read.
    scopes: Column<'static>,
}

impl ShownCondition {
    /// The condition for posts of an instance.
    pub(crate) fn of(readable: &ReadableSources, instance: InstanceId) -> ShownCondition {
        let all = readable.all();
        let that_show = |is_it: fn(Visibility) -> bool| {
            let of_instance = all.iter().filter(|of| of.key.instance == instance);
            let shown = of_instance.filter(|of: &&ReadableSource| is_it(of.shows));
            Column::i64(shown.map(|of| sql(of.key.id)))
        };
        ShownCondition {
            instance_id: sql(instance),
            sources: [
                that_show(|shows| shows == Visibility::Public),
                that_show(|shows| matches!(shows, Visibility::Unlisted | Visibility::Private)),
                that_show(|shows| shows == Visibility::Direct),
            ],
            scopes: Column::i64(ReadableScopes::of(readable.viewer()).all()),
        }
    }

    /// The parameters `$1` to `$4` of [`ShownCondition::entry`]: the instance and the sources.
    pub(crate) fn entry_params(&self) -> [&dyn ToValue; 4] {
        let [world, members, own] = &self.sources;
        [&self.instance_id, world, members, own]
    }

    /// The parameters `$1` to `$5` of [`ShownCondition::of_post`]: the instance, the sources and the scopes.
    pub(crate) fn params(&self) -> [&dyn ToValue; 5] {
        let [instance, world, members, own] = self.entry_params();
        [instance, world, members, own, &self.scopes]
    }

    /// The condition for an `entry e` of the post with an ID: it is readable, for the narrowest
    /// visibility that its post had while its source had it.
    pub(crate) fn entry(post_id: &str) -> String {
        format!(
            "(e.source_id {{in $4}} or (e.visibility <= 1 and e.source_id {{in $3}}
                 or e.visibility = 0 and e.source_id {{in $2}})
                 and not ({PUBLISHED} and exists (select 1 from post c
                     where c.id = {post_id} and c.instance_id = $1 and c.claimed)))"
        )
    }

    /// The condition for the post with an ID: a subquery of one value, so that each post is looked
    /// up by its keys.
    pub(crate) fn of_post(id: &str) -> String {
        let entry = format!(
            "e.instance_id = $1 and not e.gone and e.returns = p.returns
            and (e.source_id {{in $4}} or not (p.claimed and {PUBLISHED})
                and (e.visibility <= 1 and p.visibility in ('public', 'unlisted') and e.source_id {{in $3}}
                    or e.visibility = 0 and p.visibility = 'public' and e.source_id {{in $2}}))"
        );
        format!(
            "coalesce((select 1 from post p where p.id = {id} and p.instance_id = $1 and p.deleted_at_ms is null
                 and (p.content_scope {{in $5}} or exists (select 1 from scoped_content c
                     where c.post_id = p.id and c.instance_id = $1 and c.scope {{in $5}}))
                 and (p.listed
                     or exists (select 1 from entry e
                         where e.source_id = p.first_source_id and e.id = p.id and {entry})
                     or exists (select 1 from entry e
                         where e.post_id = p.id and e.id <> e.post_id and {entry}))), 0) = 1"
        )
    }
}

/// True if an account has published the source of `entry e`.
const PUBLISHED: &str =
    "exists (select 1 from source s where s.id = e.source_id and s.instance_id = $1
    and s.owner_id <> 0 and s.audience = 'public')";
