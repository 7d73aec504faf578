//! The stored timeline machine of a source.

use driftline_core::{
    names::audience::Audience,
    timeline::{Gap, HonouredAbilities, Lateness, Machine},
};
use driftline_db::{DbError, PendingRows, Row, Tx};

use crate::{
    error::StoreError,
    id_types::{InstanceId, SourceKey, sql},
    library::{self, Library, PendingOpening},
    mirror::gap,
    posts::content_scope::ContentScope,
    text::{from_json, to_json},
    viewer::Owner,
};

/// A source's machine, with the ranges of its ledger.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::Db`] if the database fails.
pub fn load(tx: &mut Tx<'_>, source: SourceKey) -> Result<Machine, StoreError> {
    let json = tx
        .query_opt(
            "select machine from source where id = $1 and instance_id = $2",
            &[&source.id(), &source.instance_id()],
            |row| row.text("machine"),
        )?
        .ok_or(StoreError::NoSource)?;
    let mut machine: Machine = from_json("a source's machine", &json)?;
    machine.restore_gaps(gap::load(tx, source)?);
    Ok(machine)
}

/// The lateness that other sources of an instance have measured, the source with the most posts
/// first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn lateness_of_others(tx: &mut Tx<'_>, source: SourceKey) -> Result<Vec<Lateness>, StoreError> {
    let machines = tx.query(
        &format!(
            "select machine from source s {} where s.instance_id = $1 and s.id <> $2
             order by update_count desc limit 3",
            library::OF_SOURCES
        ),
        &[&source.instance_id(), &source.id()],
        |row| {
            let machine = from_json("a source's machine", row.str("machine")?);
            Ok(machine.map(|machine: Machine| machine.lateness().clone()))
        },
    )?;
    machines.into_iter().collect()
}

/// The abilities of an instance, as learned by each of its sources: the timeline and its abilities,
/// the source with the most posts first.
///
/// # Errors
/// [`StoreError::Db`] if the database fails.
pub fn honoured_by(
    tx: &mut Tx<'_>,
    instance: InstanceId,
) -> Result<Vec<(String, HonouredAbilities)>, StoreError> {
    let machines = tx.query(
        &format!(
            "select timeline, machine from source s {} where s.instance_id = $1
             order by update_count desc, s.id",
            library::OF_SOURCES
        ),
        &[&sql(instance)],
        |row| Ok((row.text("timeline")?, row.text("machine")?)),
    )?;
    let honoured = |(timeline, json): (String, String)| {
        let machine: Machine = from_json("a source's machine", &json)?;
        Ok((timeline, machine.honoured().clone()))
    };
    machines.into_iter().map(honoured).collect()
}

/// A machine to store that changed without a page, by a failed request or a requested fill.
#[derive(Clone, Copy, Debug)]
pub struct CommitMachine<'a> {
    /// The source; the write's root is [`crate::mirror::source::root`] of it.
    pub source: SourceKey,
    /// The lease's fencing number, if there is a lease.
    pub fence: Option<i64>,
    /// The machine.
    pub machine: &'a Machine,
}

/// Stores a machine.
///
/// # Errors
/// [`StoreError::NoSource`] if the source does not exist; [`StoreError::LeaseLost`] if another
/// worker has taken over the source; [`StoreError::Unreadable`] if a stored value cannot be read;
/// [`StoreError::Db`] if the database fails.
pub fn commit_machine(tx: &mut Tx<'_>, commit: &CommitMachine<'_>) -> Result<(), StoreError> {
    let held = LockedSource::load_later(tx, commit.source)?;
    let gaps = gap::load_later(tx, commit.source)?;
    let held = held.check(tx, commit.fence)?;
    let gaps = tx.rows(gaps)?;
    held.save_over(tx, gaps, commit.machine)
}

/// A source whose row this transaction has locked.
pub(crate) struct LockedSource {
    pub(crate) id: i64,
    pub(crate) instance_id: i64,
    /// Both IDs.
    pub(crate) key: SourceKey,
    /// The time at which it was added, in Unix ms by the local clock.
    pub(crate) added_at_ms: i64,
    /// Its readers in addition to its owner.
    pub(crate) audience: Audience,
    /// True if it belongs to an account of this server.
    pub(crate) is_accounts: bool,
    /// The origin of its server.
    pub(crate) origin: String,
    /// The scope of its contents.
    pub(crate) scope: ContentScope,
    /// True if its posts are refreshed.
    pub(crate) refreshing: bool,
    /// True if another source of its instance has refreshing turned off.
    pub(crate) has_unrefreshed: bool,
    /// Its library, from which its changes take their USNs.
    pub(crate) library: Library,
}

/// A source whose row was requested, with true if it is leased and its fencing number.
pub(crate) struct PendingSource {
    row: PendingRows<'static, (LockedSource, bool, i64)>,
    opening: PendingOpening,
}

impl PendingSource {
    /// Returns the source after checking the fencing number.
    pub(crate) fn check(
        self,
        tx: &mut Tx<'_>,
        fence: Option<i64>,
    ) -> Result<LockedSource, StoreError> {
        let last_opening = self.opening.read(tx)?;
        let row = tx.rows(self.row)?.pop();
        let (mut held, is_leased, last_fence) = row.ok_or(StoreError::NoSource)?;
        held.library.last_opening = last_opening;
        match fence {
            Some(fence) if !is_leased || fence != last_fence => Err(StoreError::LeaseLost),
            _ => Ok(held),
        }
    }
}

/// Returns the scope of a source's contents.
pub(crate) fn source_scope(tx: &mut Tx<'_>, source: SourceKey) -> Result<ContentScope, DbError> {
    let found = tx.query_opt(
        &format!(
            "select audience, owner_id, {IS_WITH_TOKEN} from source s where id = $1 and instance_id = $2"
        ),
        &[&source.id(), &source.instance_id()],
        scope_from_row,
    )?;
    Ok(found.unwrap_or(ContentScope::WORLD))
}

/// The scope of a source whose row has `audience`, `owner_id` and [`IS_WITH_TOKEN`].
pub(crate) fn scope_from_row(row: &Row<'_>) -> Result<ContentScope, DbError> {
    let audience = Audience::named_or_narrowest(row.str("audience")?);
    let owner = Owner::of(row.i64("owner_id")?)?;
    let is_with_token = row.bool("is_with_token")?;
    Ok(ContentScope::of_source(owner, audience, is_with_token))
}

/// True if the content of `source s` may have come with a token of its owner.
pub(crate) const IS_WITH_TOKEN: &str = "s.token is not null or s.kind <> 'polled' as is_with_token";

impl LockedSource {
    /// True if the world may read it.
    pub(crate) fn is_public(&self) -> bool {
        self.audience == Audience::Public
    }

    /// True if the world may read a post in it. Posts in an account's source are excluded if their
    /// server only claims to know them.
    pub(crate) fn shows_world(&self, is_claimed: bool) -> bool {
        self.is_public() && !(self.is_accounts && is_claimed)
    }

    /// Reads the row that the write's root has locked, and checks the fencing number.
    pub(crate) fn load(
        tx: &mut Tx<'_>,
        source: SourceKey,
        fence: Option<i64>,
    ) -> Result<LockedSource, StoreError> {
        LockedSource::load_later(tx, source)?.check(tx, fence)
    }

    /// [`LockedSource::load`], requested together with the next query.
    pub(crate) fn load_later(
        tx: &mut Tx<'_>,
        source: SourceKey,
    ) -> Result<PendingSource, StoreError> {
        let opening = PendingOpening::ask(tx)?;
        let row = tx.query_later(
            &format!(
                "select s.created_at_ms, lease_holder is not null as is_leased, lease_fence, s.audience, s.refreshing,
                     s.owner_id, {IS_WITH_TOKEN},
                     (select i.origin from instance i where i.id = $2) as origin,
                     exists (select 1 from source o where o.instance_id = $2 and o.id <> $1
                         and not o.refreshing) as has_unrefreshed, {}
                 from source s {} where s.id = $1 and s.instance_id = $2",
                library::COLUMNS,
                library::OF_SOURCES
            ),
            &[&source.id(), &source.instance_id()],
            move |row| {
                let held = LockedSource {
                    id: source.id(),
                    instance_id: source.instance_id(),
                    key: source,
                    added_at_ms: row.i64("created_at_ms")?,
                    audience: Audience::named_or_narrowest(row.str("audience")?),
                    is_accounts: Owner::of(row.i64("owner_id")?)? != Owner::Operator,
                    origin: row.text("origin")?,
                    scope: scope_from_row(row)?,
                    refreshing: row.bool("refreshing")?,
                    has_unrefreshed: row.bool("has_unrefreshed")?,
                    library: Library::from_row(row)?,
                };
                Ok((held, row.bool("is_leased")?, row.i64("lease_fence")?))
            },
        )?;
        Ok(PendingSource { row, opening })
    }

    /// Stores the machine and the USNs.
    pub(crate) fn save(&self, tx: &mut Tx<'_>, machine: &Machine) -> Result<(), StoreError> {
        let gaps = gap::load(tx, self.key)?;
        self.save_over(tx, gaps, machine)
    }

    /// [`LockedSource::save`] with the stored ranges already loaded.
    pub(crate) fn save_over(
        &self,
        tx: &mut Tx<'_>,
        stored: Vec<Gap>,
        machine: &Machine,
    ) -> Result<(), StoreError> {
        let json = to_json("a source's machine", machine)?;
        tx.execute_later(
            "update source set machine = $2, readable = (readable or $3)
             where id = $1 and instance_id = $4",
            &[&self.id, &json, &machine.is_readable(), &self.instance_id],
        )?;
        self.library.save(tx)?;
        gap::save(tx, self.key, stored, machine.ledger().gaps())
    }
}
