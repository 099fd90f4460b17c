//! Reasoning, content and tool calls, told apart to the byte, however the text is cut into tokens.

mod random;

use assay_engine::output::{Pushed, TextEnd, TextPipeline};
use assay_engine::{
    Channel, Entry, ReasoningFormat, ReasoningTags, ReplyFormat, TokenLogprobs, TokenOutput,
    ToolCallFormat, ToolCallPiece,
};

/// Stands for a control token that is no tag.
const CONTROL: u32 = 1_000;

fn thinking(is_open: bool) -> Option<ReasoningFormat> {
    Some(ReasoningFormat {
        tags: ReasoningTags::THINK,
        is_open,
        budget: None,
        open_token_ids: vec![0],
        close_token_ids: vec![0],
    })
}

fn format(reasoning: Option<ReasoningFormat>, tool_calls: Option<ToolCallFormat>) -> ReplyFormat {
    ReplyFormat {
        reasoning,
        tool_calls,
        call_constraint: None,
        at_most_one_call: false,
        control_tags: vec![(CONTROL, "<|python_tag|>")],
    }
}

fn output(token_id: u32) -> TokenOutput {
    TokenOutput {
        token_id,
        logprobs: Some(TokenLogprobs {
            logprob: -1.0 - f64::from(token_id),
            top_logprobs: Vec::new(),
            named: None,
        }),
    }
}

/// A reply as its client sees it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Parts {
    reasoning: String,
    content: String,
    /// What stands between the tags of calls.
    raw_calls: String,
    calls: Vec<(String, String)>,
    stop: Option<String>,
    entries: Vec<Entry>,
}

impl Parts {
    fn add(&mut self, entries: Vec<Entry>) {
        for entry in &entries {
            match entry.channel {
                Channel::Reasoning => self.reasoning.push_str(&entry.text),
                Channel::Content => self.content.push_str(&entry.text),
                Channel::ToolCall => self.raw_calls.push_str(&entry.text),
            }
            for piece in &entry.calls {
                match piece {
                    ToolCallPiece::Name(name) => self.calls.push((name.clone(), String::new())),
                    ToolCallPiece::Arguments(text) => {
                        self.calls
                            .last_mut()
                            .expect("a name first")
                            .1
                            .push_str(text);
                    }
                    ToolCallPiece::Argument { name, text } => {
                        let call = self.calls.last_mut().expect("a name first");
                        call.1.push_str(&format!("{name}={text};"));
                    }
                }
            }
        }
        self.entries.extend(entries);
    }
}

/// Runs tokens through a pipeline and checks what must hold of its entries whatever they spell.
fn run(format: &ReplyFormat, tokens: &[Vec<u8>], stops: &[&str], end: TextEnd) -> Parts {
    let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
    let mut pipeline = TextPipeline::with_format(&stops, format);
    let mut parts = Parts::default();
    let numbered = (0..).zip(tokens);
    for (token_id, token) in numbered {
        match pipeline.push(output(token_id), token) {
            Pushed::Continues(entries) => parts.add(entries),
            Pushed::Stopped { entries, stop } => {
                parts.add(entries);
                parts.stop = Some(stop);
                break;
            }
        }
    }
    if parts.stop.is_none() {
        match pipeline.finish(end) {
            Pushed::Continues(entries) => parts.add(entries),
            Pushed::Stopped { entries, stop } => {
                parts.add(entries);
                parts.stop = Some(stop);
            }
        }
    }
    check_entries(&parts.entries, tokens);
    parts
}

fn check_entries(entries: &[Entry], tokens: &[Vec<u8>]) {
    let mut last_id = None;
    for entry in entries {
        let id = entry.output.token_id;
        let logprob = entry.output.logprobs.as_ref().expect("scores").logprob;
        if entry.is_continuation {
            assert_eq!(last_id, Some(id), "a continuation follows its begin");
            assert_eq!(
                logprob.to_bits(),
                0.0_f64.to_bits(),
                "given its begin, it is certain"
            );
        } else {
            assert!(last_id < Some(id), "each token once, in order");
            assert_eq!(logprob, -1.0 - f64::from(id));
        }
        last_id = Some(id);
        let token = &tokens[id as usize];
        let is_part = entry.bytes.is_empty()
            || token
                .windows(entry.bytes.len())
                .any(|window| window == entry.bytes);
        assert!(is_part, "{entry:?} is no part of {token:?}");
    }
    for channel in [Channel::Reasoning, Channel::Content, Channel::ToolCall] {
        let own = || entries.iter().filter(|entry| entry.channel == channel);
        let bytes: Vec<u8> = own().flat_map(|entry| entry.bytes.clone()).collect();
        let text: String = own().map(|entry| entry.text.as_str()).collect();
        let decoded = String::from_utf8_lossy(&bytes).into_owned();
        let is_cut = decoded.strip_suffix('\u{FFFD}') == Some(&text);
        assert!(
            decoded == text || is_cut,
            "{channel:?}: {decoded:?} is not {text:?}"
        );
    }
}

fn tokens(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The entries as channel, text and whether they go on with their token.
fn spelled(parts: &Parts) -> Vec<(Channel, &str, bool)> {
    let entries = parts.entries.iter();
    entries
        .map(|entry| (entry.channel, entry.text.as_str(), entry.is_continuation))
        .collect()
}

#[test]
fn s5_a_token_over_two_fields_is_cut() {
    use Channel::{Content, Reasoning};
    let parts = run(
        &format(thinking(true), None),
        &tokens(&["so", " it</think>\n\nis", " 4"]),
        &[],
        TextEnd::Complete,
    );
    assert_eq!(
        spelled(&parts),
        [
            (Reasoning, "so", false),
            (Reasoning, " it", false),
            (Content, "is", true),
            (Content, " 4", false),
        ]
    );
}

#[test]
fn s8_tags_and_separators_have_no_entries() {
    use Channel::{Content, Reasoning};
    let parts = run(
        &format(thinking(false), None),
        &tokens(&[
            "<think>", "\n", "hm", "\n", "</th", "ink>", "\n\n", "x", "\n",
        ]),
        &[],
        TextEnd::Complete,
    );
    assert_eq!(
        spelled(&parts),
        [
            (Reasoning, "hm", false),
            (Reasoning, "\n", false),
            (Content, "x", false),
            (Content, "\n", false),
        ]
    );
    // A token whose first visible part comes after syntax keeps its own score.
    let parts = run(
        &format(thinking(false), None),
        &tokens(&["<think>hm</think>x"]),
        &[],
        TextEnd::Complete,
    );
    assert_eq!(
        spelled(&parts),
        [(Reasoning, "hm", false), (Content, "x", true)]
    );
}

struct Case {
    reasoning: Option<ReasoningFormat>,
    tools: Option<ToolCallFormat>,
    text: &'static str,
    expected: (
        &'static str,
        &'static str,
        &'static [(&'static str, &'static str)],
    ),
}

/// However a text is cut, its parts are the same.
fn check_case(case: &Case) {
    let format = format(case.reasoning.clone(), case.tools.clone());
    let whole = tokens(&[case.text]);
    let bytes: Vec<Vec<u8>> = case.text.bytes().map(|byte| vec![byte]).collect();
    let pairs: Vec<Vec<u8>> = case.text.as_bytes().chunks(2).map(<[u8]>::to_vec).collect();
    let fives: Vec<Vec<u8>> = case.text.as_bytes().chunks(5).map(<[u8]>::to_vec).collect();
    for cut in [whole, bytes, pairs, fives] {
        let parts = run(&format, &cut, &[], TextEnd::Complete);
        let calls: Vec<(&str, &str)> = parts
            .calls
            .iter()
            .map(|(name, arguments)| (name.as_str(), arguments.as_str()))
            .collect();
        let found = (
            parts.reasoning.as_str(),
            parts.content.as_str(),
            calls.as_slice(),
        );
        assert_eq!(found, case.expected, "{:?} cut to {cut:?}", case.text);
    }
}

#[test]
fn texts_have_their_parts() {
    let hermes = || Some(ToolCallFormat::Hermes);
    let xml = || Some(ToolCallFormat::QwenXml);
    let llama = || {
        Some(ToolCallFormat::Llama3Json {
            names: vec!["f".to_owned(), "g".to_owned()],
        })
    };
    let case = |reasoning, tools, text, expected| Case {
        reasoning,
        tools,
        text,
        expected,
    };
    #[rustfmt::skip]
    let cases = [
        // Reasoning.
        case(thinking(false), None, "plain", ("", "plain", &[])),
        case(thinking(false), None, " \n<think>a</think>b", ("a", "b", &[])),
        case(thinking(false), None, " \n<thin", ("", " \n<thin", &[])),
        case(thinking(false), None, "x<think>a</think>", ("", "x<think>a</think>", &[])),
        case(thinking(false), None, "<think>a</think>b<think>c</think>", ("a", "b<think>c</think>", &[])),
        case(thinking(false), None, "<think>é</thin</think></think>", ("é</thin", "</think>", &[])),
        case(thinking(false), None, "<think></think>", ("", "", &[])),
        case(thinking(true), None, "\na<</think>\r\n\nb", ("a<", "b", &[])),
        case(thinking(true), None, "never closed </thi", ("never closed </thi", "", &[])),
        case(None, None, "<think>a</think>", ("", "<think>a</think>", &[])),
        // Hermes.
        case(None, hermes(), "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, \"}</tool_call>\\\"\"]}}\n</tool_call>\nx",
            ("", "x", &[("f", "{\"a\": [1, \"}</tool_call>\\\"\"]}")])),
        case(None, hermes(), "go <tool_call>{\"arguments\": {\"é\": {}}, \"name\": \"f\"}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
            ("", "go ", &[("f", "{\"é\": {}}"), ("g", "{}")])),
        case(None, hermes(), "<tool_call>{\"id\": 12, \"name\": \"f\", \"arguments\": {}",
            ("", "", &[("f", "{}")])),
        case(None, hermes(), "<tool_call>no json</tool_call>", ("", "<tool_call>no json</tool_call>", &[])),
        case(None, hermes(), "<tool_call><tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
            ("", "<tool_call>", &[("f", "{}")])),
        case(None, hermes(), "<tool_call>{\"name\": \"f\", \"arg", ("", "<tool_call>{\"name\": \"f\", \"arg", &[])),
        case(None, hermes(), "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call>x",
            ("", "x", &[("f", "{\"a\": 1")])),
        case(None, hermes(), "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
            ("", "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>", &[])),
        case(thinking(true), hermes(), "<tool_call>{</think>\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
            ("<tool_call>{", "", &[("f", "{}")])),
        // XML.
        case(None, xml(), "a<tool_call>\n<function=f>\n<parameter=x>\n1 < 2\n</tool_call>\n</parameter>\n<parameter=y>z</parameter>\n</function>\n</tool_call>",
            ("", "a", &[("f", "x=1 < 2\n</tool_call>;y=z;")])),
        case(None, xml(), "<tool_call>\n<function=f></function></tool_call>b", ("", "b", &[("f", "")])),
        case(None, xml(), "<tool_call>{\"name\"", ("", "<tool_call>{\"name\"", &[])),
        // Llama.
        case(None, llama(), "{\"name\": \"f\", \"parameters\": {\"a\": {}}}", ("", "", &[("f", "{\"a\": {}}")])),
        case(None, llama(), "<|python_tag|> {\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"parameters\": {}}\n",
            ("", "", &[("f", "{}"), ("g", "{}")])),
        case(None, llama(), "{\"name\": \"h\", \"parameters\": {}}", ("", "{\"name\": \"h\", \"parameters\": {}}", &[])),
        case(None, llama(), "text {\"name\": \"f\", \"parameters\": {}}", ("", "text {\"name\": \"f\", \"parameters\": {}}", &[])),
        case(None, llama(), "{\"name\": \"f\", \"parameters\": {}} and text", ("", "and text", &[("f", "{}")])),
        case(None, llama(), "{\"answer\": [1, 2]}", ("", "{\"answer\": [1, 2]}", &[])),
    ];
    for case in &cases {
        check_case(case);
    }
}

#[test]
fn stop_strings_end_content_alone() {
    let format = format(thinking(false), Some(ToolCallFormat::Hermes));
    let call = "<tool_call>{\"name\": \"END\", \"arguments\": {\"END\": 1}}</tool_call>";
    let text = format!("<think>END</think>EN{call}D x END y");
    for size in [1, 2, 3, 7, 200] {
        let cut: Vec<Vec<u8>> = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
        let parts = run(&format, &cut, &["END", "K</"], TextEnd::Complete);
        assert_eq!(parts.reasoning, "END", "{size}");
        assert_eq!(parts.content, "END x ", "{size}");
        assert_eq!(parts.calls.len(), 1, "{size}");
        assert_eq!(parts.stop.as_deref(), Some("END"), "{size}");
    }
    // What turns out to be no tag is content, and may hold a stop.
    let parts = run(
        &format,
        &tokens(&["a<tool", "_cat>"]),
        &["<tool_c"],
        TextEnd::Complete,
    );
    assert_eq!(
        (parts.content.as_str(), parts.stop.as_deref()),
        ("a", Some("<tool_c"))
    );
    let parts = run(&format, &tokens(&["a<tool"]), &["<t"], TextEnd::Complete);
    assert_eq!(
        (parts.content.as_str(), parts.stop.as_deref()),
        ("a", Some("<t"))
    );
}

#[test]
fn what_cannot_be_a_tag_any_more_leaves_at_once() {
    let format = format(thinking(true), Some(ToolCallFormat::Hermes));
    let mut pipeline = TextPipeline::with_format(&[], &format);
    let mut push = |token_id, text: &str| match pipeline.push(output(token_id), text.as_bytes()) {
        Pushed::Continues(entries) => entries.iter().map(|entry| entry.text.clone()).collect(),
        stopped => panic!("{stopped:?}"),
    };
    let steps: [(&str, &[&str]); 9] = [
        ("a", &["a"]),
        ("b<", &[]),
        ("c", &["b<", "c"]),
        ("</think>", &[]),
        ("d<tool_", &[]),
        ("x", &["d<tool_", "x"]),
        ("<tool_call>{\"name\": \"f\", ", &[]),
        (
            "\"arguments\": {",
            &["{\"name\": \"f\", ", "\"arguments\": {"],
        ),
        ("}", &["}"]),
    ];
    for (token_id, (text, expected)) in (0..).zip(steps) {
        let released: Vec<String> = push(token_id, text);
        assert_eq!(released, expected, "{text:?}");
    }
}

#[test]
fn a_control_tag_is_a_tag_or_nothing() {
    let names = vec!["f".to_owned()];
    let format = format(None, Some(ToolCallFormat::Llama3Json { names }));
    let push_all = |tokens: &[(u32, &str)]| {
        let mut pipeline = TextPipeline::with_format(&["a".to_owned()], &format);
        let mut parts = Parts::default();
        for (token_id, text) in tokens {
            match pipeline.push(output(*token_id), text.as_bytes()) {
                Pushed::Continues(entries) => parts.add(entries),
                Pushed::Stopped { entries, .. } => {
                    parts.add(entries);
                    return parts;
                }
            }
        }
        if let Pushed::Continues(entries) = pipeline.finish(TextEnd::Complete) {
            parts.add(entries);
        }
        parts
    };
    let call = "{\"name\": \"f\", \"parameters\": {}}";
    let parts = push_all(&[(CONTROL, ""), (1_001, call)]);
    assert_eq!(parts.calls, [("f".to_owned(), "{}".to_owned())]);
    assert_eq!(parts.entries.len(), 1, "a tag has no entry");
    let parts = push_all(&[(CONTROL, ""), (1_001, "plot"), (1_002, "a")]);
    assert_eq!(parts.content, "plot");
    assert_eq!(parts.entries[0].bytes, [0_u8; 0]);
    assert_eq!(parts.entries.len(), 2);
}
