//! What a step's rows of logits become: the score of a prompt token that is known, a drawn token, or what a decision
//! asks of the row.
//!
//! A pure function of the row and of its own request: no neighbour, no clock, no shared state. So rows
//! may be read on any threads in any order, and in blocks of any size.

use assay_constrain::{MatchError, TokenMask};
use assay_kernels::Compute;
use assay_models::{Logits, TokenId};

use crate::batch::LogitRow;
use crate::decision::plan::{NodeName, Plan};
use crate::decision::read::{NodeReading, read_nodes};
use crate::draw::draw_row;
use crate::logprobs::score_row;
use crate::output::{PromptToken, RequestError, TokenOutput};
use crate::request::Request;
use crate::sampler::SeenTokens;

/// Logits held at once, in bytes: a block of rows that stays in the caches between the head that writes it and the
/// scores that read it, and is still large enough for the head to run at full speed.
const BLOCK_BYTES: usize = 16 << 20;
/// Rows of a block at least, however large the vocabulary is.
const BLOCK_LEAST_ROWS: usize = 8;

/// Rows of logits to ask of the head at once.
pub(crate) fn rows_per_block(vocab_size: usize) -> usize {
    (BLOCK_BYTES / (vocab_size * size_of::<f32>())).max(BLOCK_LEAST_ROWS)
}

/// Whose row it is, and all that it is read by.
#[derive(Clone, Copy)]
pub(crate) enum RowOwner<'a> {
    /// A choice of a request.
    Choice(ChoiceRow<'a>),
    /// Nodes of a decision's label tries.
    Nodes {
        row: LogitRow,
        plan: &'a Plan,
        names: &'a [NodeName],
    },
}

/// A choice's row.
#[derive(Clone, Copy)]
pub(crate) struct ChoiceRow<'a> {
    pub(crate) row: LogitRow,
    pub(crate) request: &'a Request,
    /// Tokens that penalties look at.
    pub(crate) seen: &'a SeenTokens,
    /// What a constraint allows, if there is one.
    pub(crate) mask: Option<&'a Result<TokenMask, MatchError>>,
}

impl ChoiceRow<'_> {
    /// The prompt token that follows the row's; `None` if the next one is to be drawn.
    fn known_successor(&self) -> Option<TokenId> {
        let prompt = &self.request.prompt_token_ids;
        prompt.get(self.row.position as usize + 1).copied()
    }
}

/// What a row told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowOutput {
    /// The next token, drawn.
    Drawn(TokenOutput),
    /// The next token of the prompt, scored.
    Scored(PromptToken),
    /// What it says of labels.
    Nodes(Vec<NodeReading>),
}

/// Reads rows of `logits` over all threads: each owner's with its index there.
pub(crate) fn read_rows(
    compute: &Compute,
    logits: &Logits,
    owners: &[(usize, RowOwner<'_>)],
) -> Vec<Result<RowOutput, RequestError>> {
    // One row is read by all threads together: inside a task of the pool its sums would not be split.
    if let [(row_index, owner)] = owners {
        return vec![read_row(compute, logits, *row_index, owner)];
    }
    let mut outputs: Vec<Option<Result<RowOutput, RequestError>>> = vec![None; owners.len()];
    compute
        .pool
        .for_each_chunk(&mut outputs, 1, |index, output| {
            let (row_index, owner) = &owners[index];
            output[0] = Some(read_row(compute, logits, *row_index, owner));
        });
    outputs
        .into_iter()
        .map(|output| output.expect("every row was read"))
        .collect()
}

fn read_row(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    owner: &RowOwner<'_>,
) -> Result<RowOutput, RequestError> {
    match *owner {
        RowOwner::Choice(ref owner) => read_choice_row(compute, logits, row_index, owner),
        RowOwner::Nodes { row, plan, names } => read_nodes(compute, logits, row_index, plan, names)
            .map(RowOutput::Nodes)
            .map_err(|_| RequestError::NumericalError {
                position: row.position,
            }),
    }
}

fn read_choice_row(
    compute: &Compute,
    logits: &Logits,
    row_index: usize,
    owner: &ChoiceRow<'_>,
) -> Result<RowOutput, RequestError> {
    let Some(token_id) = owner.known_successor() else {
        return draw_row(compute, logits, row_index, owner).map(RowOutput::Drawn);
    };
    let position = owner.row.position;
    let num_top = owner
        .request
        .prompt_logprobs
        .map_or(0, |params| params.top_logprobs as usize);
    let named = &owner.request.named_token_ids;
    score_row(compute, logits, row_index, token_id, num_top, named)
        .map(|(logprobs, rank)| {
            RowOutput::Scored(PromptToken {
                position: position + 1,
                token_id,
                logprobs,
                rank,
            })
        })
        .map_err(|_| RequestError::NumericalError { position })
}
