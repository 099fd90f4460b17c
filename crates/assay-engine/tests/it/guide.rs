//! What may be drawn next where a reply has parts: the budget of the reasoning, and a constraint that waits for its end.
//! Here the tags are several tokens, and single bytes may close the reasoning and begin the content at once.

use assay_constrain::ConstraintFactory;
use assay_engine::{Channel, FinishReason, ReasoningFormat, ReasoningTags, ReplyFormat, Request};
use assay_models::TokenId;
use assay_testkit::scripted::{ScriptedModel, ScriptedVocab, background_row, replying};

use crate::collect::{ChoiceReply, reply_alone, request};

/// Pieces over the end of the reasoning.
const STRADDLING: [&str; 4] = ["</think>{", "nk>{\"a", ">\n\n", "></"];

fn vocabulary() -> ScriptedVocab {
    ScriptedVocab::new(STRADDLING)
}

fn bytes(text: &str) -> Vec<TokenId> {
    text.bytes().map(TokenId::from).collect()
}

fn thinking(is_open: bool, budget: Option<u32>) -> ReplyFormat {
    ReplyFormat {
        reasoning: Some(ReasoningFormat {
            tags: ReasoningTags::THINK,
            is_open,
            budget,
            open_token_ids: bytes("<think>"),
            close_token_ids: bytes("</think>"),
        }),
        ..ReplyFormat::default()
    }
}

fn text(reply: &ChoiceReply, channel: Channel) -> String {
    let own = reply
        .entries
        .iter()
        .filter(|entry| entry.channel == channel);
    own.map(|entry| entry.text.as_str()).collect()
}

fn constrain(request: &mut Request) {
    let vocabulary = vocabulary();
    let end = vocabulary.end_token_id();
    let tokens = (0..)
        .zip(vocabulary.token_bytes())
        .map(|(id, bytes)| (id != end).then(|| bytes.clone()));
    let factory = ConstraintFactory::from_token_bytes(tokens, &[end]).expect("a vocabulary");
    let constraint = factory
        .compile_regex("\\{\"a\": [0-9]\\}|\n!")
        .expect("a constraint");
    request.constraint = Some(constraint);
    request.end_token_ids = vec![end];
}

/// A model that wants to write `wish` after a prompt of one token.
fn run(wish: Vec<TokenId>, request: Request) -> ChoiceReply {
    let vocabulary = vocabulary();
    let model = ScriptedModel::new(
        vocabulary.vocab_size(),
        replying(vocabulary.vocab_size(), 1, wish),
    );
    reply_alone(model, vocabulary.token_bytes(), request).expect("a reply")
}

#[test]
fn a_spent_budget_forces_the_tag_token_by_token() {
    for budget in 0..5 {
        let mut request = request(vec![1], budget + 12);
        request.format = thinking(true, Some(budget));
        let reply = run(bytes("thoughts without an end"), request);
        let expected = &"thoughts"[..budget as usize];
        assert_eq!(text(&reply, Channel::Reasoning), expected);
        assert_eq!(
            text(&reply, Channel::Content).len(),
            4,
            "the rest is content"
        );
        let usage = reply.usage.expect("counts");
        assert_eq!(usage.reasoning_tokens, budget + 8);
        assert_eq!(usage.completion_tokens, budget + 12);
    }
    // A model that opens it itself, in several tokens.
    let mut opens = request(vec![1], 30);
    opens.format = thinking(false, Some(2));
    let reply = run(bytes("<think>thoughts without an end"), opens);
    assert_eq!(text(&reply, Channel::Reasoning), "th");
    // A budget that is not spent changes nothing.
    let mut ends = request(vec![1], 20);
    ends.format = thinking(true, Some(100));
    let reply = run(bytes("so</think>\nyes"), ends);
    assert_eq!(text(&reply, Channel::Reasoning), "so");
    assert!(text(&reply, Channel::Content).starts_with("yes"));
}

#[test]
fn a_constraint_sees_every_byte_of_the_content() {
    let piece = |index: TokenId| vec![256 + index];
    let wishes = [
        // Whole, then what the constraint wants.
        [bytes("a</think>"), bytes("{\"a\": 7}")].concat(),
        // One line break is dropped, which the constraint might take for its own.
        [bytes("a</think>"), bytes("\n\n!")].concat(),
        [bytes("a</think"), piece(2), bytes("{\"a\": 7}")].concat(),
        // Pieces that close the reasoning and go on are not drawn.
        [bytes("a"), piece(0)].concat(),
        [bytes("a</thi"), piece(1)].concat(),
        [bytes("a</think"), piece(3)].concat(),
        // The end of the reply does not come before the content.
        [bytes("a"), vec![vocabulary().end_token_id()]].concat(),
    ];
    for wish in wishes {
        let mut asked = request(vec![1], 200);
        asked.format = thinking(true, Some(40));
        constrain(&mut asked);
        let reply = run(wish.clone(), asked);
        let content = text(&reply, Channel::Content);
        let is_number = content
            .strip_prefix("{\"a\": ")
            .and_then(|rest| rest.strip_suffix('}'));
        let is_valid = content == "\n!" || is_number.is_some_and(|digit| digit.len() == 1);
        assert!(is_valid, "{content:?} of {wish:?}");
        let end = vocabulary().end_token_id();
        assert_eq!(reply.finish, Some(FinishReason::EndToken(end)), "{wish:?}");
        assert!(
            text(&reply, Channel::Reasoning).starts_with('a'),
            "{wish:?}"
        );
    }
}

#[test]
fn a_model_may_open_its_reasoning_or_answer_at_once() {
    for (wish, reasoning) in [
        ("<think>so</think>{\"a\": 1}", "so"),
        ("{\"a\": 1}", ""),
        ("anything else", ""),
    ] {
        let mut asked = request(vec![1], 200);
        asked.format = thinking(false, Some(20));
        constrain(&mut asked);
        let reply = run(bytes(wish), asked);
        if wish.starts_with(['<', '{']) {
            assert_eq!(text(&reply, Channel::Reasoning), reasoning, "{wish}");
            assert_eq!(text(&reply, Channel::Content), "{\"a\": 1}", "{wish}");
        }
        assert!(
            matches!(reply.finish, Some(FinishReason::EndToken(_))),
            "{wish}"
        );
    }
}

/// Forced tokens carry the raw value of the whole vocabulary (V7).
#[test]
fn what_is_forced_reports_its_raw_value() {
    let mut asked = request(vec![9], 12);
    asked.format = thinking(true, Some(0));
    let vocab_size = vocabulary().vocab_size();
    let model = ScriptedModel::new(vocab_size, move |history| {
        background_row(vocab_size, history)
    });
    let reply = reply_alone(model, vocabulary().token_bytes(), asked).expect("a reply");
    // The tag has no entries; what follows it was drawn given the tag.
    let history: Vec<TokenId> = [vec![9], bytes("</think>")].concat();
    let row = background_row(vocab_size, &history);
    let sum: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
    let first = &reply.entries[0];
    let chosen = f64::from(row[first.output.token_id as usize]) - sum.ln();
    let found = first.output.logprobs.as_ref().expect("scores").logprob;
    assert!((found - chosen).abs() < 1e-9, "{found} {chosen}");
}
