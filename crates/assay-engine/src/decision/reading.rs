//! What the model says of a question's labels.

/// All readings of one request.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionReading {
    /// By question, in the request's order.
    pub questions: Vec<LabelReading>,
    /// Distinct prompt tokens of all questions: what they share counts once.
    pub prompt_tokens: u32,
    /// Those of them that came from the prefix cache.
    pub cached_tokens: u32,
    /// Distinct label edges of all questions.
    pub trie_edges: u32,
}

/// One question's reading. All values are of the whole vocabulary and raw: no mask, bias or temperature reaches them.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelReading {
    /// By label, in the request's order.
    pub labels: Vec<LabelScore>,
    /// Sum of the labels' probabilities, EXP64 of each joint, in the request's order.
    pub label_mass: f64,
    /// Probability of all that is none of the labels: the mass that leaves the trie, summed at each of its nodes over
    /// the ids that no label goes on with. Independent of `label_mass`; together they are 1 but for rounding.
    pub leaving_mass: f64,
    /// Natural log of the mass that reproduces the healed bytes; every joint is divided by it. `None` where nothing was
    /// healed.
    pub healed_logprob: Option<f64>,
    /// Whether the most likely token at every place, from the prompt on, spells one of the labels and ends it: greedy
    /// decoding would have answered with it.
    pub argmax_is_label: bool,
    /// Tokens of the question's prompt.
    pub prompt_tokens: u32,
    /// Leading ones of them that came from the prefix cache.
    pub cached_tokens: u32,
    /// Edges of the question's own label trie.
    pub trie_edges: u32,
}

/// One label's scores, natural logs.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelScore {
    /// `[num_tokens]` of each of the label's tokens, given the prompt and those before it; the bits that scoring the
    /// path as a prompt gives.
    pub steps: Vec<f64>,
    /// Of the terminators together, given the whole label; with a single one its own value, to the bit.
    pub end: f64,
    /// The label's: `steps` added in order, then `end`, less the healed mass where there is one.
    pub joint: f64,
}

impl LabelReading {
    /// `[num_labels]` joints, in the request's order.
    pub fn joint_logprobs(&self) -> Vec<f64> {
        self.labels.iter().map(|label| label.joint).collect()
    }
}
