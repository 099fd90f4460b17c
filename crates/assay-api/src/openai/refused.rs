//! Known request fields that this server does not act on: harmless ones are accepted, and for the others
//! only the values that ask for nothing pass. Acting differently from what was asked is never an option.

use crate::error::FieldError;
use crate::fields::Fields;

/// Accepted with any value: they change neither tokens nor scores.
const HARMLESS: &[&str] = &[
    "cache_prompt",
    "metadata",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "user",
];

/// Accepted only with these values (JSON, space-separated) or null, because they ask for nothing then.
const ONLY: &[(&str, &str)] = &[
    ("add_generation_prompt", "true"),
    ("audio", ""),
    ("bad_words", "[]"),
    ("best_of", "1"),
    ("chat_template", ""),
    ("continue_final_message", "false"),
    ("documents", "[]"),
    ("dry_multiplier", "0 0.0"),
    ("dynatemp_range", "0 0.0"),
    ("echo", "false"),
    ("function_call", "\"none\""),
    ("functions", "[]"),
    ("grammar", "\"\""),
    ("guided_choice", ""),
    ("guided_grammar", ""),
    ("guided_json", ""),
    ("guided_regex", ""),
    ("ignore_eos", "false"),
    ("include_stop_str_in_output", "false"),
    ("json_schema", ""),
    ("length_penalty", "1 1.0"),
    ("logprob_token_ids", ""),
    ("min_tokens", "0"),
    ("mirostat", "0"),
    ("modalities", "[\"text\"]"),
    ("n_predict", "-1"),
    ("n_probs", "0"),
    ("prediction", ""),
    ("priority", "0"),
    ("samplers", ""),
    ("skip_special_tokens", "true"),
    ("spaces_between_special_tokens", "true"),
    ("stop_token_ids", "[]"),
    ("tfs_z", "1 1.0"),
    ("top_a", "0 0.0"),
    ("truncate_prompt_tokens", ""),
    ("typical_p", "1 1.0"),
    ("use_beam_search", "false"),
    ("verbosity", "\"medium\""),
    ("web_search_options", ""),
    ("xtc_probability", "0 0.0"),
];

/// Of completions, beside [`ONLY`]: fields of chat requests, and what is not done.
const ONLY_COMPLETION: &[(&str, &str)] = &[
    ("chat_template_kwargs", "{}"),
    ("logprobs_tool_calls", "false"),
    ("messages", "[]"),
    ("prompt_embeds", ""),
    ("suffix", ""),
    ("thinking_token_budget", ""),
    ("tool_choice", "\"none\" \"auto\""),
    ("tools", "[]"),
    ("top_logprobs", ""),
];

/// Takes all fields that a chat request may hold and nobody read.
pub(super) fn check(body: &mut Fields) -> Result<(), FieldError> {
    body.harmless(HARMLESS);
    check_table(body, ONLY)
}

/// Takes all fields that a completion request may hold and nobody read.
pub(super) fn check_completion(body: &mut Fields) -> Result<(), FieldError> {
    check(body)?;
    // Of chat requests, and harmless where there are no tools and no reasoning.
    body.harmless(&["parallel_tool_calls", "reasoning_effort"]);
    check_table(body, ONLY_COMPLETION)
}

fn check_table(body: &mut Fields, table: &[(&str, &str)]) -> Result<(), FieldError> {
    table
        .iter()
        .try_for_each(|(name, accepted)| body.only(name, accepted))
}
