//! Reads what `tools/oracle.py record` wrote; the layout stands in that script's header.

use std::path::PathBuf;

/// Everything recorded for one model.
pub(crate) struct Recording {
    pub(crate) vocab_size: usize,
    pub(crate) prompts: Vec<RecordedPrompt>,
}

/// One prompt with its greedy continuation.
pub(crate) struct RecordedPrompt {
    pub(crate) name: String,
    /// Prompt, then continuation.
    pub(crate) token_ids: Vec<u32>,
    pub(crate) num_prompt_tokens: usize,
    /// One for each token but the last.
    pub(crate) positions: Vec<RecordedPosition>,
    /// Positions with every logprob of the vocabulary.
    pub(crate) full_rows: Vec<(usize, Vec<f32>)>,
}

/// The f32 reference's distribution over the next token.
pub(crate) struct RecordedPosition {
    /// Of the token that follows.
    pub(crate) logprob: f32,
    /// Best first.
    pub(crate) top: Vec<(u32, f32)>,
}

impl Recording {
    /// Reads `tests/data/real/{name}.oracle.bin`.
    pub(crate) fn read(name: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/real")
            .join(format!("{name}.oracle.bin"));
        let bytes = std::fs::read(&path).unwrap();
        let mut reader = Reader(&bytes);
        assert_eq!(reader.take(8), b"ASSAYOR1", "{}", path.display());
        let vocab_size = reader.u32() as usize;
        let num_top = reader.u32() as usize;
        let num_prompts = reader.u32();
        let prompts = (0..num_prompts)
            .map(|_| reader.prompt(vocab_size, num_top))
            .collect();
        assert!(reader.0.is_empty(), "{}: bytes left over", path.display());
        Self {
            vocab_size,
            prompts,
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn u32s(&mut self, len: usize) -> Vec<u32> {
        (0..len).map(|_| self.u32()).collect()
    }

    fn f32s(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| f32::from_bits(self.u32())).collect()
    }

    fn prompt(&mut self, vocab_size: usize, num_top: usize) -> RecordedPrompt {
        let name_len = self.u32() as usize;
        let name = String::from_utf8(self.take(name_len).to_vec()).unwrap();
        let num_tokens = self.u32() as usize;
        let num_prompt_tokens = self.u32() as usize;
        let token_ids = self.u32s(num_tokens);
        let logprobs = self.f32s(num_tokens - 1);
        let positions = logprobs
            .into_iter()
            .map(|logprob| {
                let ids = self.u32s(num_top);
                let top = ids.into_iter().zip(self.f32s(num_top)).collect();
                RecordedPosition { logprob, top }
            })
            .collect();
        let num_full = self.u32();
        let full_rows = (0..num_full)
            .map(|_| (self.u32() as usize, self.f32s(vocab_size)))
            .collect();
        RecordedPrompt {
            name,
            token_ids,
            num_prompt_tokens,
            positions,
            full_rows,
        }
    }
}
