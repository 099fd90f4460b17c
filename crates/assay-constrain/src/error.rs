//! Why a constraint is refused, and why a matcher gives up.

use thiserror::Error;

/// Why a schema, regular expression, choice or grammar did not become a constraint.
///
/// Paths are written as a program would: `.properties.a.items`, `.anyOf[1]`; the root's is empty.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConstraintError {
    /// A keyword whose meaning cannot be enforced while generating.
    #[error("`{keyword}` {} cannot be enforced: {reason}", place(path))]
    Unsupported {
        /// The keyword.
        keyword: String,
        /// Path of the schema that holds it.
        path: String,
        /// What is missing.
        reason: String,
    },
    /// A keyword with a value that JSON Schema does not allow.
    #[error("`{keyword}` {} is not valid: {reason}", place(path))]
    Invalid {
        /// The keyword.
        keyword: String,
        /// Path of the schema that holds it.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Longer than the limit; a schema as compact JSON.
    #[error("the {what} has {bytes} bytes; the limit is {limit}")]
    TooLarge {
        /// What is too long.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The schema is nested deeper than the limit, references followed.
    #[error("the schema is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// No text satisfies it.
    #[error("nothing satisfies it: {reason}")]
    Unsatisfiable {
        /// As far as it is known.
        reason: String,
    },
    /// The grammar compiler refused it as a whole.
    #[error("it cannot be enforced: {reason}")]
    Rejected {
        /// Its own words.
        reason: String,
    },
    /// Compiling takes too long; nothing was kept.
    #[error("it takes longer than {seconds} s to compile")]
    TooSlow {
        /// The limit.
        seconds: u64,
    },
    /// Too many constraints are being compiled at once.
    #[error("too many constraints are being compiled; try again")]
    Busy,
    /// The vocabulary has no token that ends a reply.
    #[error("the vocabulary has no token that ends a reply")]
    NoEndToken,
    /// The vocabulary does not fit the matcher's tables.
    #[error("the vocabulary is not usable: {reason}")]
    Vocabulary {
        /// What is wrong with it.
        reason: String,
    },
}

impl ConstraintError {
    /// Path of the schema at fault, empty for the root or the schema as a whole.
    #[must_use]
    pub fn path(&self) -> &str {
        match self {
            Self::Unsupported { path, .. } | Self::Invalid { path, .. } => path,
            _ => "",
        }
    }

    /// The error of a schema that stands at `place` of something larger.
    pub(crate) fn below(mut self, place: &str) -> Self {
        if let Self::Unsupported { path, .. } | Self::Invalid { path, .. } = &mut self {
            path.insert_str(0, place);
        }
        self
    }

    /// Whether the request is at fault, rather than the moment or the model.
    #[must_use]
    pub fn is_callers_fault(&self) -> bool {
        !matches!(
            self,
            Self::Busy | Self::NoEndToken | Self::Vocabulary { .. }
        )
    }
}

/// Why a reply cannot go on under its constraint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MatchError {
    /// The token was not allowed here.
    #[error("token {token_id} is not allowed here")]
    NotAllowed {
        /// The token.
        token_id: u32,
    },
    /// No token of the vocabulary may come next.
    #[error("no token may come next")]
    EmptyMask,
    /// A limit of the matcher was passed, such as states or work per step.
    #[error("the constraint could not be followed: {reason}")]
    Limit {
        /// Which one.
        reason: String,
    },
}

/// The refusal of a keyword that cannot be enforced.
pub(crate) fn unsupported(keyword: &str, path: &str, reason: &str) -> ConstraintError {
    ConstraintError::Unsupported {
        keyword: keyword.to_owned(),
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The refusal of a keyword with a wrong value.
pub(crate) fn invalid(keyword: &str, path: &str, reason: &str) -> ConstraintError {
    ConstraintError::Invalid {
        keyword: keyword.to_owned(),
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

fn place(path: &str) -> String {
    if path.is_empty() {
        "at the top".to_owned()
    } else {
        format!("at `{path}`")
    }
}
