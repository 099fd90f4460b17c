//! Token counts of a reply, as its choices finish, and why a choice finished.

use assay_api::openai::{FinishReason, Usage};
use assay_engine as engine;

/// Counts of all choices of all prompts.
#[derive(Clone, Debug)]
pub(crate) struct UsageTotal {
    /// By prompt: the cached tokens of the choice that had the fewest; `None` before any finished.
    cached: Vec<Option<u64>>,
    usage: Usage,
}

impl UsageTotal {
    pub(crate) fn new(num_prompts: usize) -> Self {
        Self {
            cached: vec![None; num_prompts],
            usage: Usage::default(),
        }
    }

    pub(crate) fn add(&mut self, prompt_index: usize, choice: engine::Usage) {
        let usage = &mut self.usage;
        let Some(known) = self.cached.get_mut(prompt_index) else {
            return;
        };
        let cached = u64::from(choice.cached_tokens);
        let cached_total = &mut usage.prompt_tokens_details.cached_tokens;
        // The prompt counts once; choices after the first may find it cached by the first.
        match known {
            None => {
                usage.prompt_tokens += u64::from(choice.prompt_tokens);
                *cached_total += cached;
                *known = Some(cached);
            }
            Some(fewest) if cached < *fewest => {
                *cached_total -= *fewest - cached;
                *fewest = cached;
            }
            Some(_) => {}
        }
        usage.completion_tokens += u64::from(choice.completion_tokens);
        usage.completion_tokens_details.reasoning_tokens += u64::from(choice.reasoning_tokens);
        usage.total_tokens = usage.prompt_tokens + usage.completion_tokens;
    }

    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }
}

/// The reason, and the stop string where it was one, of a reply with so many tool calls.
pub(crate) fn finish(
    reason: &engine::FinishReason,
    num_calls: u32,
) -> (FinishReason, Option<String>) {
    match reason {
        engine::FinishReason::EndToken(_) if num_calls > 0 => (FinishReason::ToolCalls, None),
        engine::FinishReason::EndToken(_) => (FinishReason::Stop, None),
        engine::FinishReason::StopString(stop) => (FinishReason::Stop, Some(stop.clone())),
        engine::FinishReason::Length => (FinishReason::Length, None),
    }
}
