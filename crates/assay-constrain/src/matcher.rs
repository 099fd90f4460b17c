//! Follows one reply through a constraint, token by token.

use llguidance::api::StopReason;

use crate::error::MatchError;
use crate::factory::Constraint;
use crate::mask::TokenMask;
use crate::overtime::Overtime;

/// State of one reply under its constraint.
pub struct Matcher {
    inner: llguidance::Matcher,
    constraint: Constraint,
    has_ended: bool,
    overtime: Overtime,
}

impl Matcher {
    /// A matcher at the beginning of a reply; shares no state with other matchers.
    #[must_use]
    pub fn new(constraint: &Constraint) -> Self {
        Self {
            inner: constraint.start(),
            constraint: constraint.clone(),
            has_ended: false,
            overtime: Overtime::default(),
        }
    }

    /// The tokens that may come next; end tokens are among them exactly where the reply may end.
    ///
    /// # Errors
    /// [`MatchError::EmptyMask`] where nothing may come, [`MatchError::Limit`] past a bound. Never an
    /// empty mask.
    pub fn compute_mask(&mut self) -> Result<TokenMask, MatchError> {
        let vocab_size = self.constraint.vocab_size();
        if self.is_finished() {
            let end_token_ids = self.constraint.end_token_ids();
            return Ok(TokenMask::of(vocab_size, end_token_ids.iter().copied()));
        }
        let Self {
            inner, overtime, ..
        } = self;
        let allowed =
            overtime
                .count(|| inner.compute_mask())?
                .map_err(|error| match limit(&error) {
                    // The only name that this end has: the parser's state is a plain error by now.
                    MatchError::Limit { reason }
                        if reason == StopReason::NoExtensionBias.to_string() =>
                    {
                        MatchError::EmptyMask
                    }
                    other => other,
                })?;
        let mask = TokenMask::from_words(allowed.as_slice(), vocab_size);
        if mask.is_empty() {
            return Err(MatchError::EmptyMask);
        }
        Ok(mask)
    }

    /// Takes the token that was drawn.
    ///
    /// # Errors
    /// [`MatchError::NotAllowed`] for a token outside the mask; the state is as before. Or
    /// [`MatchError::Limit`] past a bound.
    pub fn accept(&mut self, token_id: u32) -> Result<(), MatchError> {
        let not_allowed = MatchError::NotAllowed { token_id };
        if self.constraint.end_token_ids().contains(&token_id) {
            if !self.is_accepting()? {
                return Err(not_allowed);
            }
            self.has_ended = true;
            return Ok(());
        }
        if self.is_finished() || !self.constraint.spells_text(token_id) {
            return Err(not_allowed);
        }
        let Self {
            inner, overtime, ..
        } = self;
        match overtime.count(|| inner.try_consume_tokens(&[token_id]))? {
            Ok(1) => Ok(()),
            Ok(_) => Err(not_allowed),
            Err(error) => Err(limit(&error)),
        }
    }

    /// Whether the text so far is complete; more may follow unless [`Matcher::is_finished`].
    ///
    /// # Errors
    /// [`MatchError::Limit`] past a bound.
    pub fn is_accepting(&mut self) -> Result<bool, MatchError> {
        if self.is_finished() {
            return Ok(true);
        }
        self.inner.is_accepting().map_err(|error| limit(&error))
    }

    /// Whether the text is complete and nothing but an end token may follow.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.has_ended || (self.inner.is_stopped() && self.inner.stop_reason().is_ok())
    }
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}

/// The first line: what follows is the parser's own state.
fn limit(error: &impl std::fmt::Display) -> MatchError {
    let text = error.to_string();
    MatchError::Limit {
        reason: text.lines().next().unwrap_or_default().to_owned(),
    }
}
