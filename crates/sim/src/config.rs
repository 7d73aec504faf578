//! The knobs of a world.

use smart_default::SmartDefault;

use crate::{
    faults_config::FaultsConfig, growth::Growth, lateness::Lateness, layout::IdLayout,
    quirks::Quirks, span::SpanMs,
};

/// Everything that a world is made from, besides its seed.
///
/// Shares are between 0 and 1; times are ms; presets are
/// [`WorldConfig::punctual`], [`WorldConfig::measured`], [`WorldConfig::demo`]
/// and [`WorldConfig::hard`].
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct WorldConfig {
    /// When publishing starts, Unix ms. Default 1760000000000 (October 2025);
    /// the HTTP shell sets it to its own start.
    #[default(1_760_000_000_000)]
    pub start_ms: i64,
    /// How long publishing goes on. Default: for ever.
    pub publish_for_ms: Option<i64>,
    /// Mean posts per second, arriving at random (Poisson), bursts apart.
    /// Default 10.
    #[default(10.0)]
    pub rate_per_s: f64,
    /// How IDs are made. Default Mastodon's.
    pub layout: IdLayout,
    /// ID workers, each with a clock of its own. Default 8.
    #[default(8)]
    pub workers: u16,
    /// The most that a worker's clock is ahead or behind. Default 40, so IDs
    /// from the future exist.
    #[default(40)]
    pub worker_offset_max_ms: i64,
    /// How long after its creation a post becomes visible. Default as measured.
    pub lateness: Lateness,
    /// The share of posts that come from other servers, with an ID of the
    /// time when they were written (where the layout backdates). Default 0.
    pub federated_share: f64,
    /// How long before their creation here federated posts were written.
    /// Default one to ten minutes.
    #[default(SpanMs::new(60_000, 600_000))]
    pub federated_backdate_ms: SpanMs,
    /// Bursts. Default none.
    pub bursts: Option<Bursts>,
    /// The share of posts that get deleted. Default 0.
    pub deleted_share: f64,
    /// How long after becoming visible. Default 10 s to ten minutes.
    #[default(SpanMs::new(10_000, 600_000))]
    pub deleted_after_ms: SpanMs,
    /// The share of posts that get edited, once. Default 0.
    pub edited_share: f64,
    /// How long after becoming visible. Default 10 s to ten minutes.
    #[default(SpanMs::new(10_000, 600_000))]
    pub edited_after_ms: SpanMs,
    /// The share of posts that boost an earlier one, where there is one that
    /// may be boosted. Default 0.
    pub boost_share: f64,
    /// The share of posts that this reader never sees (of muted authors, say)
    /// and that take a place in a page before it is filtered all the same: so
    /// a short or empty page is not the end. They are not part of the truth.
    /// Default 0.
    pub filtered_share: f64,
    /// The share of posts that are unlisted, private or direct. Default 0.
    pub non_public_share: f64,
    /// The share of posts that are hidden from every reader after a while,
    /// because their author became protected, say: pages and look-ups of
    /// several leave them out, a look-up of one finds nothing. They stay part
    /// of the truth. Default 0.
    pub hidden_share: f64,
    /// How long after becoming visible. Default 10 s to ten minutes.
    #[default(SpanMs::new(10_000, 600_000))]
    pub hidden_after_ms: SpanMs,
    /// How counts grow. Default: towards a small limit, half of it after ten
    /// minutes, with a boost counted apart from what it boosts.
    pub growth: Option<Growth>,
    /// How many accounts write. Default 200.
    #[default(200)]
    pub authors: u32,
    /// The one account that writes everything, for a timeline of its own.
    /// Default none.
    pub only_author: Option<u64>,
    /// The most posts on one page. Default 40; a server of another API than
    /// Mastodon's takes this default for 200.
    #[default(DEFAULT_PAGE_LIMIT)]
    pub page_limit: u16,
    /// How look-ups of several posts are answered. Default: they are.
    pub batches: Batches,
    /// Only this many of the newest posts can be read (home: 400 to 800).
    /// Default: all.
    pub reach: Option<u32>,
    /// Whether `min_id` is ignored, as by servers without it. Default false.
    pub ignores_min_id: bool,
    /// One post with an ID far in the future. Default none.
    pub dated_tomorrow: Option<DatedTomorrow>,
    /// This world's share of the ID space. Default all of it.
    pub lane: Lane,
    /// What goes wrong with answers. Default nothing.
    pub faults: FaultsConfig,
    /// What the server does otherwise than documented. Default nothing. A server of several
    /// timelines gives each the quirks of its kind; [`crate::Upstream`] is a home timeline.
    pub quirks: Quirks,
}

pub(crate) const DEFAULT_PAGE_LIMIT: u16 = 40;

/// Many posts at once, now and then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bursts {
    /// From the start of one burst to that of the next; the first comes this
    /// long after the world's start.
    pub every_ms: i64,
    /// Posts in each.
    pub posts: u32,
    /// How long a burst lasts; at most `every_ms`.
    pub span_ms: i64,
}

/// How look-ups of several posts are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batches {
    /// Whether they are. Default yes.
    pub ability: BatchAbility,
    /// The most IDs in one. Default: what the API says, 20 on Mastodon and in
    /// virtual time, 100 on X and Twitter.
    pub most: Option<u16>,
    /// Whether posts are answered in an order of their own (the same for the
    /// same IDs); else as they were asked for. Default false.
    pub shuffled: bool,
}

/// Whether a server looks up several posts at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BatchAbility {
    /// It does.
    #[default]
    Served,
    /// 404, as from servers that do not know the path.
    NotFound,
    /// 405, as from servers that know the path for other methods only.
    MethodNotAllowed,
}

/// One post whose ID lies far ahead of every clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedTomorrow {
    /// When it is published, ms after the world's start.
    pub after_ms: i64,
    /// How far its ID is ahead.
    pub ahead_ms: i64,
}

/// Which IDs a world may use, so that the worlds of one server share none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct Lane {
    /// This world's number, below `of`.
    pub number: u16,
    /// How many lanes there are; at most 4096.
    #[default(1)]
    pub of: u16,
}
