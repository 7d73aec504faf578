//! Statements that wait to be sent, and that later members of a step may join: see [`crate::Tx::in_step`].

use std::mem;

use tokio_postgres::Row as ServerRow;
use tokio_postgres::types::Type;
use tokio_postgres::types::private::BytesMut;

use super::param::Encoded;
use super::statement::Text;
use crate::batch::{Column, Form};
use crate::error::DbError;
use crate::joint;

/// A statement that waits.
pub(super) struct WaitingStatement {
    pub(super) text: Text,
    pub(super) params: Vec<Encoded>,
    members: Vec<Member>,
    /// What it was made from, in a step.
    origin: Option<Origin>,
}

/// What becomes of what a statement gives that was sent along.
pub(super) enum Outcome {
    Ignored,
    /// It must give a row; otherwise this is the error.
    Required(DbError),
    /// Its rows are kept under that ticket.
    Kept(u64),
}

struct Member {
    /// How many elements its arrays have.
    rows: usize,
    outcome: Outcome,
}

/// A statement as the transaction was asked for it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Origin {
    sql: Box<str>,
    form: Form,
    /// How many parameters come before the batch.
    scalars: usize,
    /// What its text depends on besides.
    kinds: Vec<&'static str>,
}

impl Origin {
    pub(super) fn of(sql: &str, form: Form, scalars: usize, columns: &[Column<'_>]) -> Origin {
        Origin {
            sql: sql.into(),
            form,
            scalars,
            kinds: columns.iter().map(Column::kind).collect(),
        }
    }
}

/// The member of a step that is running.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Step {
    /// Where the step begins among what waits.
    pub(super) start: usize,
    /// From here on the member may join what waits: after what it has sent itself.
    pub(super) next: usize,
}

impl WaitingStatement {
    pub(super) fn new(
        text: Text,
        params: Vec<Encoded>,
        rows: usize,
        outcome: Outcome,
        origin: Option<Origin>,
    ) -> WaitingStatement {
        WaitingStatement {
            text,
            params,
            members: vec![Member { rows, outcome }],
            origin,
        }
    }

    /// Whether it must give a row.
    pub(super) fn is_required(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| matches!(member.outcome, Outcome::Required(_)))
    }

    /// Whether a statement of this origin with these parameters may become part of it.
    pub(super) fn takes(&self, origin: &Origin, params: &[Encoded], outcome: &Outcome) -> bool {
        let is_awaited = !matches!(outcome, Outcome::Ignored);
        let mut pairs = params.iter().zip(&self.params);
        self.origin.as_ref() == Some(origin)
            && (is_awaited || origin.form == Form::Batch)
            && pairs.all(|(new, own)| new.element_type() == own.element_type())
            && params[..origin.scalars]
                .iter()
                .all(|param| param.array_name().is_some())
    }

    /// Its text for several members, if there is one.
    pub(super) fn joint_text(
        origin: &Origin,
        params: &[Encoded],
        columns: &[Column<'_>],
    ) -> Result<Option<String>, DbError> {
        let scalars = params[..origin.scalars].iter();
        let scalars = scalars.map(Encoded::array_name).collect::<Option<Vec<_>>>();
        match scalars {
            Some(scalars) => joint::text(&origin.sql, &scalars, columns, origin.form),
            None => Ok(None),
        }
    }

    /// Whether it has the text for several members already.
    pub(super) fn is_joint(&self) -> bool {
        self.members.len() > 1
    }

    /// Adds a member's, under the text for several where it has that of one.
    pub(super) fn join(
        &mut self,
        text: Option<Text>,
        params: Vec<Encoded>,
        rows: usize,
        outcome: Outcome,
    ) {
        let scalars = self.origin.as_ref().map_or(0, |origin| origin.scalars);
        if let Some(text) = text {
            self.text = text;
            let own = self.members[0].rows;
            for param in &mut self.params[..scalars] {
                *param = param.repeated(own);
            }
        }
        for (index, (own, new)) in self.params.iter_mut().zip(params).enumerate() {
            match index < scalars {
                true => own.append(&new.repeated(rows)),
                false => own.append(&new),
            }
        }
        self.members.push(Member { rows, outcome });
    }

    /// Hands out what it gave; rows by their tickets.
    pub(super) fn hand_out(
        self,
        rows: Vec<ServerRow>,
        count: u64,
        mut keep: impl FnMut(u64, Vec<ServerRow>),
    ) -> Result<(), DbError> {
        let mut rows = rows.into_iter();
        let is_joint = self.is_joint();
        // The rows come in the order of the members, or not: each says whose it is.
        let mut of_members: Vec<Vec<ServerRow>> = Vec::new();
        let count_of = |index: usize, rows: &[ServerRow]| match is_joint {
            true => rows.len() as u64,
            false if index == 0 => count,
            false => 0,
        };
        match is_joint {
            false => of_members.push(mem::take(&mut rows).collect()),
            true => {
                let mut ends = Vec::with_capacity(self.members.len());
                let mut end = 0;
                for member in &self.members {
                    end += member.rows as i64;
                    ends.push(end);
                    of_members.push(Vec::new());
                }
                for row in rows {
                    let element: i64 = row
                        .try_get(row.len().saturating_sub(1))
                        .map_err(|error| DbError::Type(error.to_string()))?;
                    let member = ends.partition_point(|end| *end < element);
                    if let Some(of_member) = of_members.get_mut(member) {
                        of_member.push(row);
                    }
                }
            }
        }
        for (index, (member, rows)) in self.members.into_iter().zip(of_members).enumerate() {
            match member.outcome {
                Outcome::Required(missing) if count_of(index, &rows) == 0 => return Err(missing),
                Outcome::Required(_) | Outcome::Ignored => {}
                Outcome::Kept(ticket) => keep(ticket, rows),
            }
        }
        Ok(())
    }
}

impl Encoded {
    /// The type of an array of it, if it can be in one.
    fn array_name(&self) -> Option<&'static str> {
        match self.kind {
            Type::INT8 => Some("bigint[]"),
            Type::TEXT => Some("text[]"),
            Type::BOOL => Some("boolean[]"),
            Type::BYTEA => Some("bytea[]"),
            _ => None,
        }
    }

    /// Its type, or that of its elements.
    fn element_type(&self) -> Type {
        match self.kind {
            Type::INT8_ARRAY => Type::INT8,
            Type::TEXT_ARRAY => Type::TEXT,
            Type::BOOL_ARRAY => Type::BOOL,
            Type::BYTEA_ARRAY => Type::BYTEA,
            ref kind => kind.clone(),
        }
    }

    /// An array with it in each of so many places.
    fn repeated(&self, times: usize) -> Encoded {
        let kind = match self.kind {
            Type::INT8 => Type::INT8_ARRAY,
            Type::TEXT => Type::TEXT_ARRAY,
            Type::BOOL => Type::BOOL_ARRAY,
            _ => Type::BYTEA_ARRAY,
        };
        let length = self.bytes.as_ref().map_or(0, |bytes| bytes.len());
        let mut array = BytesMut::with_capacity(ARRAY_HEADER + times * (4 + length));
        array.extend_from_slice(&1_i32.to_be_bytes());
        array.extend_from_slice(&i32::from(self.bytes.is_none()).to_be_bytes());
        array.extend_from_slice(&self.kind.oid().to_be_bytes());
        array.extend_from_slice(&(times as i32).to_be_bytes());
        array.extend_from_slice(&1_i32.to_be_bytes());
        for _ in 0..times {
            match &self.bytes {
                Some(bytes) => {
                    array.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
                    array.extend_from_slice(bytes);
                }
                None => array.extend_from_slice(&(-1_i32).to_be_bytes()),
            }
        }
        Encoded {
            kind,
            bytes: Some(array),
        }
    }

    /// Adds an array's elements to those of another.
    fn append(&mut self, other: &Encoded) {
        let (Some(own), Some(other)) = (&mut self.bytes, &other.bytes) else {
            return;
        };
        let number = |bytes: &[u8], at: usize| {
            let bytes = bytes[at..at + 4].try_into();
            bytes.map_or(0, i32::from_be_bytes)
        };
        let has_nulls = number(own, 4) | number(other, 4);
        let length = number(own, 12) + number(other, 12);
        own[4..8].copy_from_slice(&has_nulls.to_be_bytes());
        own[12..16].copy_from_slice(&length.to_be_bytes());
        own.extend_from_slice(&other[ARRAY_HEADER..]);
    }
}

/// Of an array of one dimension as it travels: how many dimensions, whether it has nulls, the type of its
/// elements, how many they are, and the number of the first.
const ARRAY_HEADER: usize = 20;
