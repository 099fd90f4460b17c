//! Tokens that were given or drawn: read again where they stand, and drawn again.

use assay_engine::{
    FinishReason as EngineFinish, OutputEvent, PromptLogprobsParams, ReplyFormat, Request,
    RequestId, SamplingParams,
};

use super::sink::{Heard, channel};
use super::{Replay, ReplayError, check_bits, different, impossible, not_taken};
use crate::hex_values::Bits;
use crate::record::{FinishReason, Output};
use crate::sampling::{Mode, Sampling};

/// One drawn choice of the receipt.
struct Choice<'a> {
    /// Index among the outputs.
    index: usize,
    token_ids: &'a [u32],
    logprob_bits: &'a [Bits],
    finish_reason: FinishReason,
}

impl Replay<'_> {
    /// Reads an output's tokens behind its prompt, in one pass, whatever drew them; how many values are the same.
    pub(super) fn read_again(self, index: usize, output: &Output) -> Result<usize, ReplayError> {
        let (token_ids, logprob_bits) = match output {
            Output::Scored {
                token_ids,
                logprob_bits,
                ..
            }
            | Output::Drawn {
                token_ids,
                logprob_bits,
                ..
            } => (token_ids, logprob_bits),
            Output::Labels { .. } => return Ok(0),
        };
        let place = format!("outputs[{index}]");
        if token_ids.is_empty() || token_ids.len() != logprob_bits.len() {
            let reason = "at least one token, and a value for each";
            return Err(impossible(place, reason));
        }
        let is_drawn = matches!(output, Output::Drawn { .. });
        let sampling = self.receipt.sampling.as_ref().filter(|_| is_drawn);
        if is_drawn && sampling.is_none() {
            return Err(impossible(
                "sampling",
                "tokens were drawn, and it does not say how",
            ));
        }
        if sampling.is_some_and(|sampling| sampling.logprobs_mode == Mode::Processed) {
            // These values are of the distribution that was drawn from: they are compared when it is drawn again.
            return Ok(0);
        }
        let prompt = self.prompt(output);
        let Some(first_position) = u32::try_from(prompt.len()).ok().filter(|num| *num > 0) else {
            return Err(impossible(place, "nothing stands before its tokens"));
        };
        let (sink, heard) = channel();
        let request = Request {
            prompt_token_ids: [&prompt[..], token_ids].concat(),
            num_choices: 1,
            max_tokens: 0,
            sampling: SamplingParams::greedy(),
            logprobs: None,
            prompt_logprobs: Some(PromptLogprobsParams {
                first_position,
                top_logprobs: 0,
            }),
            ..blank()
        };
        let submitted = self.engine.submit(request, Box::new(sink));
        submitted.map_err(|error| not_taken(&place, error))?;
        let is_greedy = sampling.is_some_and(Sampling::is_plain_greedy);
        let mut recorded = token_ids.iter().zip(logprob_bits).enumerate();
        loop {
            match heard.next()? {
                Heard::Event(OutputEvent::Prompt { tokens }) => {
                    for token in tokens {
                        let Some((at, (token_id, bits))) = recorded.next() else {
                            break;
                        };
                        let place = || format!("{place}.logprob_bits[{at}]");
                        check_bits(place, *bits, token.logprobs.logprob)?;
                        if is_greedy && token.rank != 1 {
                            return Err(different(
                                format!("outputs[{index}].token_ids[{at}]"),
                                format!("token {token_id} as the most likely one"),
                                format!("{} that are likelier", token.rank - 1),
                            ));
                        }
                    }
                }
                Heard::Event(OutputEvent::Finished { .. }) => break,
                Heard::Event(OutputEvent::Failed(error)) => return Err(error.into()),
                Heard::Event(OutputEvent::Delta { .. }) | Heard::Drawn { .. } => {}
            }
        }
        match recorded.next() {
            None => Ok(token_ids.len()),
            Some((at, _)) => {
                let place = format!("{place}.token_ids[{at}]");
                Err(impossible(place, "the model did not come to it"))
            }
        }
    }

    /// Draws what was drawn again; how many tokens are the same.
    pub(super) fn draw_again(self) -> Result<usize, ReplayError> {
        let Some(sampling) = &self.receipt.sampling else {
            return Ok(0);
        };
        let mut num_drawn = 0;
        for prompt in self.drawn_prompts(sampling)? {
            for choice in &prompt.choices {
                choice.check_end(prompt.max_tokens, &self.receipt.end_token_ids)?;
                num_drawn += choice.token_ids.len();
            }
            // That each token is the most likely one was seen when they were read.
            if !sampling.is_plain_greedy() {
                self.draw_prompt(sampling, prompt)?;
            }
        }
        Ok(num_drawn)
    }

    /// The drawn outputs by prompt: all choices of each stand together, in order.
    fn drawn_prompts(&self, sampling: &Sampling) -> Result<Vec<DrawnPrompt<'_>>, ReplayError> {
        let mut prompts: Vec<DrawnPrompt<'_>> = Vec::new();
        for (index, output) in self.receipt.outputs.iter().enumerate() {
            let Output::Drawn {
                suffix_token_ids,
                choice_index,
                max_tokens,
                token_ids,
                logprob_bits,
                finish_reason,
            } = output
            else {
                continue;
            };
            if *choice_index == 0 {
                prompts.push(DrawnPrompt {
                    suffix_token_ids,
                    max_tokens: *max_tokens,
                    choices: Vec::new(),
                });
            }
            let own = prompts.last_mut().filter(|prompt| {
                prompt.suffix_token_ids == suffix_token_ids
                    && prompt.max_tokens == *max_tokens
                    && u32::try_from(prompt.choices.len()) == Ok(*choice_index)
            });
            let Some(prompt) = own else {
                let place = format!("outputs[{index}].choice_index");
                return Err(impossible(
                    place,
                    "choices of a prompt stand together, from 0 on",
                ));
            };
            prompt.choices.push(Choice {
                index,
                token_ids,
                logprob_bits,
                finish_reason: *finish_reason,
            });
        }
        let is_whole = |prompt: &DrawnPrompt<'_>| {
            u32::try_from(prompt.choices.len()) == Ok(sampling.num_choices)
        };
        if !prompts.iter().all(is_whole) {
            let reason = "each prompt has as many drawn outputs";
            return Err(impossible("sampling.num_choices", reason));
        }
        Ok(prompts)
    }

    fn draw_prompt(self, sampling: &Sampling, prompt: DrawnPrompt<'_>) -> Result<(), ReplayError> {
        let factory = if sampling.is_constrained() {
            let made = (self.constraints)();
            Some(made.map_err(|error| impossible("sampling", error.to_string()))?)
        } else {
            None
        };
        let (constraint, format) = sampling.guides(factory.as_ref())?;
        // No choice goes further than it is recorded to have gone.
        let longest = prompt
            .choices
            .iter()
            .map(|choice| choice.token_ids.len())
            .max();
        let Some(max_tokens) = longest.and_then(|longest| u32::try_from(longest).ok()) else {
            return Err(impossible("outputs", "more tokens than a sequence has"));
        };
        let (sink, heard) = channel();
        let request = Request {
            prompt_token_ids: [&self.receipt.prompt_token_ids, prompt.suffix_token_ids].concat(),
            num_choices: sampling.num_choices,
            max_tokens,
            sampling: sampling.params(),
            logprobs: Some(sampling.logprobs()),
            prompt_logprobs: None,
            constraint,
            format,
            stop: sampling.stop.clone(),
            end_token_ids: self.receipt.end_token_ids.clone(),
            ..blank()
        };
        let submitted = self.engine.submit(request, Box::new(sink));
        submitted.map_err(|error| not_taken("sampling", error))?;
        let mut num_drawn = vec![0; prompt.choices.len()];
        let mut num_unfinished = prompt.choices.len();
        while num_unfinished > 0 {
            match heard.next()? {
                Heard::Drawn {
                    choice_index,
                    output,
                } => {
                    let at = usize::try_from(choice_index).unwrap_or(usize::MAX);
                    let found = prompt.choices.get(at).zip(num_drawn.get_mut(at));
                    let Some((choice, num_drawn)) = found else {
                        continue;
                    };
                    let logprob = output.logprobs.map(|logprobs| logprobs.logprob);
                    choice.check_token(*num_drawn, output.token_id, logprob)?;
                    *num_drawn += 1;
                }
                Heard::Event(OutputEvent::Finished {
                    choice_index,
                    reason,
                    ..
                }) => {
                    let at = usize::try_from(choice_index).unwrap_or(usize::MAX);
                    if let Some((choice, num_drawn)) = prompt.choices.get(at).zip(num_drawn.get(at))
                    {
                        choice.check_finish(*num_drawn, &reason)?;
                    }
                    num_unfinished -= 1;
                }
                Heard::Event(OutputEvent::Failed(error)) => return Err(error.into()),
                Heard::Event(OutputEvent::Delta { .. } | OutputEvent::Prompt { .. }) => {}
            }
        }
        Ok(())
    }
}

/// The choices of one prompt.
struct DrawnPrompt<'a> {
    suffix_token_ids: &'a [u32],
    max_tokens: u32,
    choices: Vec<Choice<'a>>,
}

impl Choice<'_> {
    fn place(&self, rest: &str) -> String {
        format!("outputs[{}].{rest}", self.index)
    }

    /// Whether it may have ended so where it did.
    fn check_end(&self, max_tokens: u32, end_token_ids: &[u32]) -> Result<(), ReplayError> {
        let is_full = u32::try_from(self.token_ids.len()) == Ok(max_tokens);
        let ends = |id: &u32| end_token_ids.contains(id);
        let reason = match self.finish_reason {
            FinishReason::Length if !is_full => "as many tokens as `max_tokens`",
            FinishReason::EndToken if !self.token_ids.last().is_some_and(ends) => {
                "a last token that ends a reply"
            }
            _ => return Ok(()),
        };
        Err(different(
            self.place("finish_reason"),
            format!("{:?}", self.finish_reason),
            format!("a reply without {reason}"),
        ))
    }

    /// A token that was drawn again; those behind the recorded ones belong to the end.
    fn check_token(&self, at: usize, found: u32, logprob: Option<f64>) -> Result<(), ReplayError> {
        let recorded = self.token_ids.get(at).zip(self.logprob_bits.get(at));
        let Some((token_id, bits)) = recorded else {
            return Err(different(
                self.place("token_ids"),
                format!("{} tokens", self.token_ids.len()),
                format!("token {found} behind them"),
            ));
        };
        if *token_id != found {
            return Err(different(
                self.place(&format!("token_ids[{at}]")),
                format!("token {token_id}"),
                format!("token {found} drawn"),
            ));
        }
        let place = || self.place(&format!("logprob_bits[{at}]"));
        logprob.map_or(Ok(()), |logprob| check_bits(place, *bits, logprob))
    }

    fn check_finish(&self, num_drawn: usize, reason: &EngineFinish) -> Result<(), ReplayError> {
        let found = FinishReason::of(reason);
        if num_drawn == self.token_ids.len() && found == self.finish_reason {
            return Ok(());
        }
        Err(different(
            self.place("finish_reason"),
            format!(
                "{:?} after {} tokens",
                self.finish_reason,
                self.token_ids.len()
            ),
            format!("{found:?} after {num_drawn}"),
        ))
    }
}

/// A request that is named and filled in by the caller.
fn blank() -> Request {
    Request {
        id: RequestId(0),
        prompt_token_ids: Vec::new(),
        cache_salt: None,
        num_choices: 1,
        max_tokens: 0,
        sampling: SamplingParams::greedy(),
        logprobs: None,
        prompt_logprobs: None,
        named_token_ids: Vec::new(),
        constraint: None,
        format: ReplyFormat::default(),
        stop: Vec::new(),
        end_token_ids: Vec::new(),
    }
}
