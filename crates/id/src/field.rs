/// A run of bits below the time of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    name: &'static str,
    bits: u8,
    kind: FieldKind,
}

/// The purpose of a [`Field`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldKind {
    /// The maker of the ID: a worker, process, datacenter, shard, machine or clock.
    Node,
    /// Counts the IDs that one node makes within one unit of time.
    Sequence,
    /// Random bits.
    Random,
    /// The kind of the object that the ID names.
    Tag,
    /// The given constant. [`compose`](crate::Layout::compose) sets it.
    Fixed(u8),
}

impl Field {
    /// A field that identifies the maker of the ID. [`Layout::custom`](crate::Layout::custom)
    /// documents the valid names and widths.
    pub const fn node(name: &'static str, bits: u8) -> Self {
        Self::new(name, bits, FieldKind::Node)
    }

    /// The field that counts the IDs of one node within one unit of time.
    pub const fn sequence(bits: u8) -> Self {
        Self::new("sequence", bits, FieldKind::Sequence)
    }

    /// The field's name, in lower case, as in the layout's own documentation.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The field's width in bits, at most 80.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// The purpose of the field.
    pub const fn kind(&self) -> FieldKind {
        self.kind
    }

    /// The largest value that fits the field's bits.
    pub const fn max(&self) -> u128 {
        u128::MAX.unbounded_shr(128_u32.saturating_sub(self.bits as u32))
    }

    /// True if the field always contains the same value.
    pub const fn is_fixed(&self) -> bool {
        matches!(self.kind, FieldKind::Fixed(_))
    }

    pub(crate) const fn new(name: &'static str, bits: u8, kind: FieldKind) -> Self {
        Self { name, bits, kind }
    }
}
