use crate::field::FieldKind;
use crate::layout::Layout;

/// The maker of IDs: a value for the node fields of one layout, checked to fit.
///
/// Two generators with the same node make the same IDs at the same time. A
/// [`Window`](crate::Window) determines the times that each may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    layout: Layout,
    number: u64,
    /// The node fields at their position in an ID.
    pub(crate) placed: u64,
}

/// A node that the layout cannot express, or a layout that generators do not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// IDs of the layout cannot be generated.
    #[error("{0}")]
    Unfit(#[from] UnfitLayoutError),
    /// The number needs more bits than all node fields have together.
    #[error("the node {number} does not fit {layout}; give at most {max}")]
    TooLarge {
        /// The layout's name.
        layout: &'static str,
        /// The number given.
        number: u64,
        /// The largest number that fits; 0 if the layout has no node field.
        max: u64,
    },
    /// A field's value needs more bits than the field has.
    #[error("{value} does not fit the field {field}; give at most {max}")]
    FieldTooLarge {
        /// The field's name.
        field: &'static str,
        /// The value given.
        value: u64,
        /// The largest that fits.
        max: u64,
    },
    /// No value was given for a node field.
    #[error("the field {field} has no value; give it one")]
    FieldMissing {
        /// The field's name.
        field: &'static str,
    },
    /// A value was given for a field that is not a node field of the layout, or twice for one
    /// field.
    #[error(
        "the value {value} belongs to no node field of {layout}, or to one given twice; \
         name each node field once"
    )]
    FieldUnknown {
        /// The layout's name.
        layout: &'static str,
        /// The value given.
        value: u64,
    },
}

/// A layout whose IDs cannot be generated from time, node and sequence alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitLayoutError {
    /// IDs of the layout have 128 bits.
    #[error("IDs of 128 bits are not generated here; use a 64-bit layout")]
    Width,
    /// A field is neither a node nor a sequence.
    #[error(
        "the field {field} is neither a node nor a sequence, so its IDs are not \
         generated here; use a layout without it"
    )]
    Field {
        /// The field's name.
        field: &'static str,
    },
    /// The layout has more than one sequence field.
    #[error("the layout has several sequence fields; make one of them")]
    Sequences,
    /// The layout's times do not fit Unix µs in 64 signed bits.
    #[error(
        "the layout's times do not fit Unix microseconds in 64 bits; \
         give it an epoch nearer to 1970"
    )]
    Life,
}

impl Node {
    /// The node with this number, counted over all node fields from the highest bits to the lowest.
    /// In the Twitter layout it is datacenter × 32 + worker. A layout without node fields accepts
    /// only 0.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] if IDs of the layout cannot be generated, [`NodeError::TooLarge`] if
    /// the number does not fit.
    pub fn new(layout: &Layout, number: u64) -> Result<Self, NodeError> {
        check_layout(layout)?;
        let max = max_number(layout);
        if number > max {
            return Err(NodeError::TooLarge {
                layout: layout.name(),
                number,
                max,
            });
        }
        let (mut placed, mut rest_bits) = (0, node_bits(layout));
        for (field, shift) in node_fields(layout) {
            rest_bits -= u32::from(field.bits());
            placed |= ((number >> rest_bits) & field.max() as u64) << shift;
        }
        Ok(Self {
            layout: *layout,
            number,
            placed,
        })
    }

    /// The node with these field values, in any order. Each node field must be named once.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] if IDs of the layout cannot be generated. Other variants if a field is
    /// missing, unknown or named twice, or a value does not fit.
    pub fn from_fields(layout: &Layout, values: &[(&str, u64)]) -> Result<Self, NodeError> {
        check_layout(layout)?;
        let mut number = 0;
        let mut rest = values.to_vec();
        for (field, _) in node_fields(layout) {
            let given = rest.iter().position(|(name, _)| *name == field.name());
            let Some(given) = given else {
                return Err(NodeError::FieldMissing {
                    field: field.name(),
                });
            };
            let (value, max) = (rest.remove(given).1, field.max() as u64);
            if value > max {
                return Err(NodeError::FieldTooLarge {
                    field: field.name(),
                    value,
                    max,
                });
            }
            number = number << field.bits() | value;
        }
        if let Some(&(_, value)) = rest.first() {
            return Err(NodeError::FieldUnknown {
                layout: layout.name(),
                value,
            });
        }
        Self::new(layout, number)
    }

    /// The largest number that fits the layout's node fields.
    ///
    /// # Errors
    /// [`NodeError::Unfit`] if IDs of the layout cannot be generated.
    pub fn max(layout: &Layout) -> Result<u64, NodeError> {
        check_layout(layout)?;
        Ok(max_number(layout))
    }

    /// The layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The number over all node fields.
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The node fields' names and values, from the highest bits to the lowest.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
        node_fields(&self.layout)
            .map(|(field, shift)| (field.name(), self.placed >> shift & field.max() as u64))
    }
}

fn check_layout(layout: &Layout) -> Result<(), UnfitLayoutError> {
    if layout.width_bits() != 64 {
        return Err(UnfitLayoutError::Width);
    }
    let is_other = |kind| !matches!(kind, FieldKind::Node | FieldKind::Sequence);
    if let Some(field) = layout.fields().iter().find(|field| is_other(field.kind())) {
        return Err(UnfitLayoutError::Field {
            field: field.name(),
        });
    }
    let is_sequence = |field: &&crate::Field| field.kind() == FieldKind::Sequence;
    if layout.fields().iter().filter(is_sequence).count() > 1 {
        return Err(UnfitLayoutError::Sequences);
    }
    layout.life_us().map(|_| ()).ok_or(UnfitLayoutError::Life)
}

fn node_fields(layout: &Layout) -> impl Iterator<Item = (&'static crate::Field, u8)> {
    layout
        .placed_fields()
        .filter(|(field, _)| field.kind() == FieldKind::Node)
}

fn node_bits(layout: &Layout) -> u32 {
    node_fields(layout)
        .map(|(field, _)| u32::from(field.bits()))
        .sum()
}

fn max_number(layout: &Layout) -> u64 {
    (1 << node_bits(layout)) - 1
}
