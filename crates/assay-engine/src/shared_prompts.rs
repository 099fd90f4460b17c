//! Prompts that would compute the same tokens in the same step: one does, the others wait for it and take
//! the block from the cache.
//!
//! Nobody waits for a dearer prompt, nor for a later one as dear, nor a short one for a long one, and the
//! oldest prompt waits for nobody: so whatever a prompt waits for gets rows no later than it would, and the
//! scheduler's bounds hold as they are. Where only the leader's rows are scored, its turn comes as early but
//! holds fewer rows, by what their logits cost. Knows token ids, blocks and the order of sharing; nothing of
//! limits.

use crate::prefill::UnfinishedPrompt;
use crate::sequence::Sequence;

/// An unfinished prompt and its sequence.
pub(crate) type Candidate<'a> = (UnfinishedPrompt, &'a Sequence);

/// The prompts that do not wait, in their order. `prompts` is in order of arrival.
pub(crate) fn without_followers(
    prompts: &[Candidate<'_>],
    block_size_tokens: usize,
) -> Vec<UnfinishedPrompt> {
    let rank = |&(prompt, _): &Candidate<'_>| (prompt.rows.cost_of_rows(), prompt.seq_id);
    let waits = |follower: &Candidate<'_>| {
        prompts.iter().any(|leader| {
            let is_no_slower = follower.0.is_long || !leader.0.is_long;
            is_no_slower
                && rank(leader) < rank(follower)
                && computes_next(leader.1, follower.1, block_size_tokens)
        })
    };
    let oldest_first = prompts.iter().enumerate();
    oldest_first
        .filter(|&(index, candidate)| index == 0 || !waits(candidate))
        .map(|(_, &(prompt, _))| prompt)
        .collect()
}

/// Whether `leader` is about to compute all that `follower` lacks of its next block and may reuse. Both
/// hold the cache's block wherever they have computed a whole one, so equal blocks are equal tokens.
fn computes_next(leader: &Sequence, follower: &Sequence, block_size_tokens: usize) -> bool {
    let index = follower.num_computed_tokens / block_size_tokens;
    let begin = index * block_size_tokens;
    let end = (begin + block_size_tokens).min(follower.max_reused_tokens());
    let same_place = leader.num_computed_tokens / block_size_tokens == index
        && leader.num_computed_tokens >= follower.num_computed_tokens;
    let starts_alike = || match index.checked_sub(1) {
        None => leader.cache_salt == follower.cache_salt,
        Some(before) => leader.block_table[before] == follower.block_table[before],
    };
    end > follower.num_computed_tokens
        && same_place
        && starts_alike()
        && leader.token_ids.get(begin..end) == follower.token_ids.get(begin..end)
}
