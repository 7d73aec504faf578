use crate::field::{Field, FieldKind};
use crate::text::TextForm;

/// The way in which a system packs time and other fields into its IDs.
///
/// The topmost used bits contain the time, and the fields follow in order. All methods take raw
/// values as `u128`; a layout of 64 bits uses the low 64 bits only. Bits above the layout's used
/// bits count as time, so the time never falls as the raw value grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    name: &'static str,
    unit: TimeUnit,
    epoch_ms: i64,
    time_bits: u8,
    fields: &'static [Field],
    width_bits: u8,
    text_form: TextForm,
    in_use_since_ms: i64,
}

/// The unit of a layout's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// 1 µs.
    Microsecond = 1,
    /// 1 ms.
    Millisecond = 1_000,
    /// 10 ms.
    TenMilliseconds = 10_000,
    /// 1 s.
    Second = 1_000_000,
}

impl Layout {
    /// Twitter and X: 41 bits of ms, datacenter 5, worker 5, sequence 12; sign bit unused.
    ///
    /// Source: twitter-archive/snowflake, tag `snowflake-2010`. In use by the end of 2010-11-04;
    /// older IDs are sequential, up to about 2^35.
    pub const TWITTER: Self = Self {
        fields: &[
            Field::node("datacenter", 5),
            Field::node("worker", 5),
            Field::sequence(12),
        ],
        in_use_since_ms: 1_288_915_200_000,
        ..Self::milliseconds("twitter", 41, 1_288_834_974_657)
    };

    /// Pulsate: 42 bits of ms since 2022-01-01, worker 10, sequence 12.
    ///
    /// Source: seed 003, where the conversion reads the wrong way round: Unix ms = time +
    /// 1640995200000. IDs pass 2^63 in 2091.
    pub const PULSATE: Self = Self {
        fields: &[Field::node("worker", 10), Field::sequence(12)],
        ..Self::milliseconds("pulsate", 42, 1_640_995_200_000)
    };

    /// Mastodon: 48 bits of Unix ms, sequence 16.
    ///
    /// Source: Mastodon's `timestamp_id` SQL function, in use since Mastodon 2.0 (2017-10-18).
    /// Older IDs are sequential; a post that arrives late has an ID of its `created_at`.
    pub const MASTODON: Self = Self {
        fields: &[Field::sequence(16)],
        in_use_since_ms: 1_508_284_800_000,
        ..Self::milliseconds("mastodon", 48, 0)
    };

    /// Discord: 42 bits of ms since 2015-01-01, worker 5, process 5, sequence 12.
    ///
    /// Source: Discord's API reference, "Snowflakes".
    pub const DISCORD: Self = Self {
        fields: &[
            Field::node("worker", 5),
            Field::node("process", 5),
            Field::sequence(12),
        ],
        ..Self::milliseconds("discord", 42, 1_420_070_400_000)
    };

    /// Instagram: 41 bits of ms, shard 13, sequence 10; all 64 bits used.
    ///
    /// Source: Instagram's engineering post "Sharding & IDs at Instagram", with the epoch of its
    /// example, 1314220021721. Systems that took the layout over chose their own:
    /// [`with_epoch`](Self::with_epoch).
    pub const INSTAGRAM: Self = Self {
        fields: &[Field::node("shard", 13), Field::sequence(10)],
        ..Self::milliseconds("instagram", 41, 1_314_220_021_721)
    };

    /// Sonyflake: 39 bits of 10 ms since 2014-09-01, sequence 8, machine 16; sign bit unused.
    ///
    /// Source: sony/sonyflake, version 1 and its default start time.
    pub const SONYFLAKE: Self = Self {
        fields: &[Field::sequence(8), Field::node("machine", 16)],
        unit: TimeUnit::TenMilliseconds,
        ..Self::milliseconds("sonyflake", 39, 1_409_529_600_000)
    };

    /// Bluesky TID: 53 bits of Unix µs, clock 10; top bit zero; written in sortable base32.
    ///
    /// Source: AT Protocol specification, "Timestamp Identifiers".
    pub const TID: Self = Self {
        fields: &[Field::node("clock_id", 10)],
        unit: TimeUnit::Microsecond,
        text_form: TextForm::SortableBase32,
        ..Self::milliseconds("tid", 53, 0)
    };

    /// Takahe: 41 bits of ms since 2022-01-01 07:00 UTC, random 19, type 3; sign bit unused.
    ///
    /// Source: jointakahe/takahe, `core/snowflake.py`. IDs of one ms are in random order.
    pub const TAKAHE: Self = Self {
        fields: &[
            Field::new("random", 19, FieldKind::Random),
            Field::new("type", 3, FieldKind::Tag),
        ],
        ..Self::milliseconds("takahe", 41, 1_641_020_400_000)
    };

    /// ULID: 48 bits of Unix ms, random 80; written in Crockford base32.
    ///
    /// Source: ulid/spec.
    pub const ULID: Self = Self {
        fields: &[Field::new("random", 80, FieldKind::Random)],
        width_bits: 128,
        text_form: TextForm::CrockfordBase32,
        ..Self::milliseconds("ulid", 48, 0)
    };

    /// UUID version 7: 48 bits of Unix ms, version 7, `rand_a` 12, variant 2, `rand_b` 62.
    ///
    /// Source: RFC 9562, section 5.7.
    pub const UUIDV7: Self = Self {
        fields: &[
            Field::new("version", 4, FieldKind::Fixed(7)),
            Field::new("rand_a", 12, FieldKind::Random),
            Field::new("variant", 2, FieldKind::Fixed(0b10)),
            Field::new("rand_b", 62, FieldKind::Random),
        ],
        width_bits: 128,
        text_form: TextForm::Uuid,
        ..Self::milliseconds("uuidv7", 48, 0)
    };

    /// snac: 10 digits of Unix seconds and 32 hexadecimal digits of a hash.
    ///
    /// Source: snac 2, whose IDs in the Mastodon API are the ctime of a post's file and the MD5 of
    /// its URL. Raw values hold the first 95 bits of the hash, and print zeros for the rest: they
    /// bound the IDs of a second, and are no IDs. Posts of one second are listed in any order.
    pub const SNAC: Self = Self {
        fields: &[Field::new("hash", 95, FieldKind::Random)],
        unit: TimeUnit::Second,
        width_bits: 128,
        text_form: TextForm::SecondsAndHash,
        ..Self::milliseconds("snac", 33, 0)
    };

    /// All layouts above.
    pub const ALL: &'static [Self] = &[
        Self::TWITTER,
        Self::PULSATE,
        Self::MASTODON,
        Self::DISCORD,
        Self::INSTAGRAM,
        Self::SONYFLAKE,
        Self::TID,
        Self::TAKAHE,
        Self::ULID,
        Self::UUIDV7,
        Self::SNAC,
    ];

    /// The layout with this [`name`](Self::name), in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|layout| layout.name.eq_ignore_ascii_case(name))
    }

    /// The same layout, which counts from another epoch in Unix ms and is in use since then.
    #[must_use]
    pub const fn with_epoch(mut self, epoch_ms: i64) -> Self {
        self.epoch_ms = epoch_ms;
        self.in_use_since_ms = epoch_ms;
        self
    }

    /// The layout's name, in lower case.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The unit of the time.
    pub const fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// The Unix ms at which the time is zero.
    pub const fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// The number of bits of the time.
    pub const fn time_bits(&self) -> u8 {
        self.time_bits
    }

    /// The fields below the time, from the highest bits to the lowest.
    pub const fn fields(&self) -> &'static [Field] {
        self.fields
    }

    /// The width of an ID: 64 or 128 bits.
    pub const fn width_bits(&self) -> u8 {
        self.width_bits
    }

    /// True if the topmost bit is always zero, so that IDs fit a signed integer.
    pub const fn sign_bit_unused(&self) -> bool {
        self.used_bits() < self.width_bits
    }

    /// The text form of these IDs.
    pub const fn text_form(&self) -> TextForm {
        self.text_form
    }

    /// The Unix ms since which every new ID has this layout. Equal to the epoch if the system had
    /// no earlier IDs.
    pub const fn in_use_since_ms(&self) -> i64 {
        self.in_use_since_ms
    }

    /// The largest ID of this layout.
    pub fn max(&self) -> u128 {
        self.fill(self.max_ticks(), true)
    }

    /// True if an ID of this layout can have this value: no bit above the used ones is set, and
    /// fixed fields contain their constants.
    pub fn contains(&self, raw: u128) -> bool {
        raw <= self.max()
            && self
                .placed_fields()
                .all(|(field, shift)| match field.kind() {
                    FieldKind::Fixed(value) => (raw >> shift) & field.max() == u128::from(value),
                    _ => true,
                })
    }

    pub(crate) const fn used_bits(&self) -> u8 {
        self.time_bits + self.time_shift()
    }

    pub(crate) const fn time_shift(&self) -> u8 {
        let mut shift = 0;
        let mut rest = self.fields;
        while let [field, tail @ ..] = rest {
            shift += field.bits();
            rest = tail;
        }
        shift
    }

    pub(crate) const fn max_ticks(&self) -> u128 {
        (1 << self.time_bits) - 1
    }

    pub(crate) const fn within_width(&self, raw: u128) -> u128 {
        raw & (u128::MAX >> (128 - self.width_bits))
    }

    /// Each field with the distance of its lowest bit from the ID's lowest.
    pub(crate) fn placed_fields(&self) -> impl Iterator<Item = (&'static Field, u8)> {
        self.fields.iter().scan(self.time_shift(), |shift, field| {
            *shift -= field.bits();
            Some((field, *shift))
        })
    }

    /// An ID of the given tick with all free fields ones or zeros.
    pub(crate) fn fill(&self, ticks: u128, ones: bool) -> u128 {
        self.placed_fields()
            .fold(ticks << self.time_shift(), |raw, (field, shift)| {
                let value = match field.kind() {
                    FieldKind::Fixed(value) => u128::from(value),
                    _ if ones => field.max(),
                    _ => 0,
                };
                raw | (value << shift)
            })
    }

    /// A layout of 64 bits, written in decimal.
    pub(crate) const fn from_parts(
        name: &'static str,
        unit: TimeUnit,
        epoch_ms: i64,
        time_bits: u8,
        fields: &'static [Field],
    ) -> Self {
        Self {
            name,
            unit,
            epoch_ms,
            time_bits,
            fields,
            width_bits: 64,
            text_form: TextForm::Decimal,
            in_use_since_ms: epoch_ms,
        }
    }

    const fn milliseconds(name: &'static str, time_bits: u8, epoch_ms: i64) -> Self {
        Self::from_parts(name, TimeUnit::Millisecond, epoch_ms, time_bits, &[])
    }
}

const _: () = {
    let mut rest = Layout::ALL;
    while let [layout, tail @ ..] = rest {
        let unused_bits = layout.width_bits - layout.used_bits();
        assert!(unused_bits <= 1, "the fields leave a hole in the ID");
        rest = tail;
    }
};

impl TimeUnit {
    /// The unit's length in µs.
    pub const fn us(self) -> u32 {
        self as u32
    }
}
