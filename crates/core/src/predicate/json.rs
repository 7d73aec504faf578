use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
    ser::SerializeMap as _,
};

use super::{
    Predicate,
    condition::{Condition, ConditionError, expected_value},
    folding::Folding,
    limits::{LimitError, MAX_JSON_BYTES, MAX_TERMS},
    names::{Acct, Host},
    parser::NameContext,
    proposition::{IdMask, Proposition},
    tree::{Connective, Tree},
};

/// A problem in the JSON form.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is too long.
    #[error("the JSON is longer than {MAX_JSON_BYTES} bytes")]
    TooLong,
    /// The text is not a predicate in JSON. The error contains the line and the column.
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
}

impl Predicate {
    /// Reads the JSON form.
    ///
    /// # Errors
    ///
    /// - [`JsonError::TooLong`] if the text is too long.
    /// - [`JsonError::Malformed`] if it is not JSON, is not a predicate, or exceeds a limit.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        if text.len() > MAX_JSON_BYTES {
            return Err(JsonError::TooLong);
        }
        Ok(serde_json::from_str(text)?)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PredicateJson {
    #[serde(default = "newest_folding")]
    folding: Folding,
    tree: Tree,
}

const fn newest_folding() -> Folding {
    Folding::NEWEST
}

impl<'de> Deserialize<'de> for Predicate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let PredicateJson { folding, tree } = PredicateJson::deserialize(deserializer)?;
        Self::new(tree, folding).map_err(D::Error::custom)
    }
}

/// A tree with any number of operands for each connective.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum TreeJson {
    Atom(Proposition),
    Not(Box<TreeJson>),
    And(Vec<TreeJson>),
    Or(Vec<TreeJson>),
    Xor(Vec<TreeJson>),
}

#[derive(Debug, thiserror::Error)]
enum TreeJsonError {
    #[error("`and`, `or` and `xor` need at least one operand")]
    NoOperands,
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl TreeJson {
    /// The tree, if it has at most as many propositions as are left.
    fn into_tree(self, left: &mut usize) -> Result<Tree, TreeJsonError> {
        let (connective, operands) = match self {
            Self::Atom(proposition) => {
                *left = left.checked_sub(1).ok_or(LimitError::TooManyTerms)?;
                return Ok(Tree::Atom(proposition));
            }
            Self::Not(operand) => return Ok(operand.into_tree(left)?.negated()),
            Self::And(operands) => (Connective::And, operands),
            Self::Or(operands) => (Connective::Or, operands),
            Self::Xor(operands) => (Connective::Xor, operands),
        };
        let operands = operands.into_iter().map(|operand| operand.into_tree(left));
        let operands: Vec<Tree> = operands.collect::<Result<_, _>>()?;
        connective
            .join_all(operands)
            .ok_or(TreeJsonError::NoOperands)
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = TreeJson::deserialize(deserializer)?;
        let mut left = MAX_TERMS;
        json.into_tree(&mut left).map_err(D::Error::custom)
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Atom(proposition) => map.serialize_entry("atom", proposition)?,
            Self::Not(operand) => map.serialize_entry("not", &**operand)?,
            Self::And(..) => map.serialize_entry("and", &self.operands())?,
            Self::Or(..) => map.serialize_entry("or", &self.operands())?,
            Self::Xor(..) => map.serialize_entry("xor", &self.operands())?,
        }
        map.end()
    }
}

impl Serialize for Proposition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.terms().len()))?;
        if let Some(mask) = &self.id_mask {
            map.serialize_entry("id_mask", &IdMaskJson::from(mask))?;
        }
        if let Some(host) = &self.belonging {
            map.serialize_entry("belonging", host.as_str())?;
        }
        if let Some(word) = &self.match_word {
            map.serialize_entry("match_word", word)?;
        }
        if let Some(condition) = &self.condition {
            map.serialize_entry(condition.name(), &condition.value())?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Proposition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PropositionVisitor)
    }
}

struct PropositionVisitor;

impl<'de> Visitor<'de> for PropositionVisitor {
    type Value = Proposition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of a proposition")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Proposition, A::Error> {
        let mut proposition = Proposition::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            let is_free = match &*name {
                "id_mask" => {
                    let json: IdMaskJson = map.next_value()?;
                    let mask = json
                        .into_mask()
                        .ok_or_else(|| invalid::<A::Error>("mentions"))?;
                    proposition.id_mask.replace(mask).is_none()
                }
                "belonging" => {
                    let host: String = map.next_value()?;
                    let host = Host::new(&host).ok_or_else(|| invalid::<A::Error>("instance"))?;
                    proposition.belonging.replace(host).is_none()
                }
                "match_word" => {
                    let word = map.next_value()?;
                    proposition.match_word.replace(word).is_none()
                }
                name => {
                    let value: String = map.next_value()?;
                    let condition = Condition::read(name, &value, &NameContext::NONE);
                    let condition = condition.map_err(|error| match error {
                        ConditionError::Name => A::Error::custom(format!("unknown field `{name}`")),
                        _ => invalid(name),
                    })?;
                    proposition.condition.replace(condition).is_none()
                }
            };
            if !is_free {
                return Err(A::Error::custom(format!(
                    "`{name}` is the second condition of its kind in one proposition: use `and`"
                )));
            }
        }
        Ok(proposition)
    }
}

fn invalid<E: serde::de::Error>(name: &str) -> E {
    E::custom(format!("expected {}", expected_value(name)))
}

/// An author. The ID is a text, because many readers of JSON round large numbers.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdMaskJson {
    acct: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}

impl IdMaskJson {
    fn into_mask(self) -> Option<IdMask> {
        let id = self.id.map(|id| id.parse()).transpose();
        Some(IdMask {
            acct: Acct::new(&self.acct)?,
            id: id.ok()?,
        })
    }
}

impl From<&IdMask> for IdMaskJson {
    fn from(mask: &IdMask) -> Self {
        Self {
            acct: mask.acct.as_str().to_owned(),
            id: mask.id.map(|id| id.to_string()),
        }
    }
}
