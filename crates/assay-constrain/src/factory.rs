//! Makes constraints for one vocabulary, and keeps the latest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use assay_tokenizer::{TokenKind, Tokenizer};
use llguidance::toktrie::TokEnv;
use serde_json::{Value, json};

use crate::cache::RecentlyUsed;
use crate::compiler::Compiler;
use crate::definition;
use crate::error::ConstraintError;
use crate::schema;
use crate::source::{Shape, Source};
use crate::vocabulary::token_environment;

/// Constraints kept for requests to come.
const CACHE_CAPACITY: usize = 64;

/// Compiles schemas for one vocabulary. Cheap to share by reference; all methods take `&self`.
pub struct ConstraintFactory {
    compiler: Arc<Compiler>,
    vocabulary: Arc<Vocabulary>,
    cache: Mutex<RecentlyUsed<Constraint>>,
}

struct Vocabulary {
    environment: TokEnv,
    end_token_ids: Vec<u32>,
}

/// A compiled constraint; clones share it.
#[derive(Clone)]
pub struct Constraint {
    /// At the beginning of a reply, its first mask computed.
    start: Arc<Mutex<llguidance::Matcher>>,
    vocabulary: Arc<Vocabulary>,
    definition: Arc<str>,
}

impl ConstraintFactory {
    /// A factory for `tokenizer`'s vocabulary. Control, unknown and unused tokens never match as text.
    ///
    /// # Errors
    /// [`ConstraintError::NoEndToken`], or the vocabulary does not fit.
    pub fn new(tokenizer: &Tokenizer) -> Result<Self, ConstraintError> {
        let vocab_size = u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
        let tokens = (0..vocab_size).map(|id| {
            let spells_text =
                !tokenizer.is_special(id) && tokenizer.token_kind(id) != Some(TokenKind::Unused);
            spells_text
                .then(|| tokenizer.token_bytes(id).map(<[u8]>::to_vec))
                .flatten()
        });
        Self::from_token_bytes(tokens, tokenizer.end_token_ids())
    }

    /// A factory for tokens listed by id; `None` stands for a token that is no text.
    ///
    /// # Errors
    /// [`ConstraintError::NoEndToken`], or the vocabulary does not fit.
    pub fn from_token_bytes(
        tokens: impl IntoIterator<Item = Option<Vec<u8>>>,
        end_token_ids: &[u32],
    ) -> Result<Self, ConstraintError> {
        let environment = token_environment(tokens.into_iter().collect(), end_token_ids)?;
        Ok(Self {
            compiler: Arc::new(Compiler::new(&environment)?),
            vocabulary: Arc::new(Vocabulary {
                environment,
                end_token_ids: end_token_ids.to_vec(),
            }),
            cache: Mutex::new(RecentlyUsed::new(CACHE_CAPACITY)),
        })
    }

    /// A constraint to JSON text that is valid against `schema` (draft 2020-12; `$schema` may name an
    /// older one). Object members come in the order of `properties`.
    ///
    /// # Errors
    /// Whatever cannot be enforced in full, by keyword and path. **Cost**: milliseconds, at most
    /// seconds; blocks.
    pub fn compile_json_schema(&self, schema: &Value) -> Result<Constraint, ConstraintError> {
        // The bound comes first: it is what makes the walk over the schema cheap.
        let definition = definition::json_schema(&schema::bounded_text(schema)?);
        self.compiled(definition, || Source::json_schema(schema))
    }

    /// A constraint to text that `regex` matches as a whole. Syntax of the `regex` crate without
    /// look-around and word boundaries; `^` and `$` may stand at its ends.
    ///
    /// # Errors
    /// As [`ConstraintFactory::compile_json_schema`].
    pub fn compile_regex(&self, regex: &str) -> Result<Constraint, ConstraintError> {
        self.compiled(definition::regex(regex), || Source::regex(regex))
    }

    /// A constraint to exactly one of `options`, none of them empty.
    ///
    /// # Errors
    /// As [`ConstraintFactory::compile_json_schema`].
    pub fn compile_choice(&self, options: &[String]) -> Result<Constraint, ConstraintError> {
        self.compiled(definition::choice(options), || Source::choice(options))
    }

    /// A constraint to text that derives from `start` of a grammar in llguidance's dialect of Lark.
    /// What is not a plain language of texts (attributes, special tokens, other grammars) is refused.
    ///
    /// # Errors
    /// As [`ConstraintFactory::compile_json_schema`].
    pub fn compile_grammar(&self, grammar: &str) -> Result<Constraint, ConstraintError> {
        self.compiled(definition::grammar(grammar), || Source::lark(grammar))
    }

    /// A constraint to texts of a shape.
    ///
    /// # Errors
    /// As [`ConstraintFactory::compile_json_schema`]; paths begin with that of the shape's schema.
    pub fn compile_shape(&self, shape: &Shape) -> Result<Constraint, ConstraintError> {
        // The check comes first: it bounds the schemas, and with them the definition.
        let source = Source::shape(shape)?;
        self.compiled(definition::shape(shape), || Ok(source))
    }

    /// A constraint to any JSON object.
    ///
    /// # Errors
    /// As [`ConstraintFactory::compile_json_schema`], of the moment or the vocabulary only.
    pub fn compile_json_object(&self) -> Result<Constraint, ConstraintError> {
        self.compile_json_schema(&json!({"type": "object"}))
    }

    /// The constraint kept under its definition, or a new one from what `source` gives.
    fn compiled(
        &self,
        definition: String,
        source: impl FnOnce() -> Result<Source, ConstraintError>,
    ) -> Result<Constraint, ConstraintError> {
        if let Some(constraint) = self.cache().get(&definition) {
            return Ok(constraint);
        }
        let start = self.compiler.compile(source()?)?;
        let constraint = Constraint {
            start: Arc::new(Mutex::new(start)),
            vocabulary: Arc::clone(&self.vocabulary),
            definition: definition.as_str().into(),
        };
        self.cache().insert(definition, constraint.clone());
        Ok(constraint)
    }

    fn cache(&self) -> MutexGuard<'_, RecentlyUsed<Constraint>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Constraint {
    /// Number of ids that masks decide on.
    #[must_use]
    pub fn vocab_size(&self) -> usize {
        self.vocabulary.environment.tok_trie().vocab_size()
    }

    /// The ids that may end a reply.
    #[must_use]
    pub fn end_token_ids(&self) -> &[u32] {
        &self.vocabulary.end_token_ids
    }

    /// JSON text that [`ConstraintFactory::compile_definition`] makes the same constraint of, with any vocabulary that
    /// has tokens for it.
    #[must_use]
    pub fn definition(&self) -> &str {
        &self.definition
    }

    /// A copy of the start state that shares no cache with any other: results and limits of one reply
    /// cannot depend on what other replies did.
    pub(crate) fn start(&self) -> llguidance::Matcher {
        self.start
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .deep_clone()
    }

    pub(crate) fn spells_text(&self, token_id: u32) -> bool {
        let trie = self.vocabulary.environment.tok_trie();
        (token_id as usize) < trie.vocab_size() && trie.token_len(token_id) > 0
    }
}

impl std::fmt::Debug for ConstraintFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConstraintFactory").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Constraint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Constraint")
            .field("vocab_size", &self.vocab_size())
            .finish_non_exhaustive()
    }
}
