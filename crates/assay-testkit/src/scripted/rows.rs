//! Rows of logits for scripts.

use assay_models::TokenId;

/// A row of pseudo-random logits in −8..8 that depends on every token of the history.
pub fn background_row(vocab_size: usize, history: &[TokenId]) -> Vec<f32> {
    // FNV-1a over ids, then splitmix64 per column.
    let seed = history.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &id| {
        (hash ^ (u64::from(id) + 1)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (0..vocab_size as u64)
        .map(|column| {
            let mut bits = seed.wrapping_add((column + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            bits ^= bits >> 31;
            (bits >> 40) as f32 / (1_u32 << 20) as f32 - 8.0
        })
        .collect()
}

/// A background row in which `token_id` is the most likely by far, yet not certain.
pub fn forcing_row(vocab_size: usize, history: &[TokenId], token_id: TokenId) -> Vec<f32> {
    let mut row = background_row(vocab_size, history);
    row[token_id as usize] = 12.0;
    row
}

/// A row that no softmax exists for.
pub fn nan_row(vocab_size: usize) -> Vec<f32> {
    let mut row = vec![0.0; vocab_size];
    row[vocab_size / 2] = f32::NAN;
    row
}

/// A script that answers any prompt of `num_prompt_tokens` with `reply`, one token after the other,
/// then with the background.
pub fn replying(
    vocab_size: usize,
    num_prompt_tokens: usize,
    reply: Vec<TokenId>,
) -> impl FnMut(&[TokenId]) -> Vec<f32> + Send + 'static {
    move |history| {
        let reply_index = history.len().checked_sub(num_prompt_tokens);
        match reply_index.and_then(|index| reply.get(index)) {
            Some(&token_id) => forcing_row(vocab_size, history, token_id),
            None => background_row(vocab_size, history),
        }
    }
}
