//! Random replies, cut into tokens anywhere.

use proptest::prelude::*;

use super::*;

/// Text with everything that tags are made of, but no whole tag.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "<",
        "</",
        "think",
        ">",
        "<thin",
        "</think",
        "tool_call",
        "<tool_call",
        "{\"",
        "é",
        "日本",
        "🙂",
        "\n",
        " ",
        "\u{FFFD}",
        "stop",
    ]);
    prop::collection::vec(piece, 0..8).prop_map(|pieces| {
        let mut text = pieces.concat();
        while let Some(tag) = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
            .iter()
            .find(|tag| text.contains(**tag))
        {
            text = text.replace(tag, "");
        }
        text
    })
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Call { name: String, arguments: String },
}

fn any_part() -> impl Strategy<Value = Part> {
    let value = prop::sample::select(vec![
        "1",
        "\"</tool_call>\"",
        "{\"b\": [\"\\\"}\"]}",
        "\"é🙂\"",
        "null",
    ]);
    prop_oneof![
        any_text().prop_map(Part::Text),
        ("[a-z_]{1,8}", prop::collection::vec(value, 0..3)).prop_map(|(name, values)| {
            let members: Vec<String> = (0..)
                .zip(values)
                .map(|(index, value)| format!("\"k{index}\": {value}"))
                .collect();
            Part::Call {
                name,
                arguments: format!("{{{}}}", members.join(", ")),
            }
        }),
    ]
}

fn cut(text: &str, sizes: &[usize]) -> Vec<Vec<u8>> {
    let mut rest = text.as_bytes();
    let mut tokens = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (token, after) = rest.split_at((*size).min(rest.len()));
        tokens.push(token.to_vec());
        rest = after;
    }
    tokens
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// Replies whose parts are known, cut anywhere.
    #[test]
    fn any_cut_gives_the_parts_that_were_put_together(
        reasoning in prop::option::of(any_text()),
        is_open in any::<bool>(),
        parts in prop::collection::vec(any_part(), 0..4),
        sizes in prop::collection::vec(0..9_usize, 1..6).prop_filter("some", |sizes| sizes.iter().any(|size| *size > 0)),
        stop in prop::option::of(prop::sample::select(vec!["stop", "日", "<", ">a", "🙂\n"])),
    ) {
        let mut text = String::new();
        let mut expected = Parts::default();
        let is_open = is_open && reasoning.is_some();
        let mut after_tag = false;
        if let Some(reasoning) = &reasoning {
            text.push_str(if is_open { "" } else { "<think>" });
            text.push_str(reasoning);
            text.push_str("</think>");
            expected.reasoning = reasoning.trim_start_matches(['\n', '\r']).to_owned();
            after_tag = true;
        }
        // A stop ends the content's run in which it is whole; tags end runs.
        let mut run_text = String::new();
        let stop_in = |run_text: &str| stop.and_then(|stop| run_text.find(stop));
        let mut stopped = false;
        for part in &parts {
            match part {
                Part::Text(more) => {
                    text.push_str(more);
                    if stopped { continue; }
                    let mut more = more.as_str();
                    if after_tag {
                        more = more.trim_start_matches(['\n', '\r']);
                        after_tag = more.is_empty();
                    }
                    run_text.push_str(more);
                    if let Some(at) = stop_in(&run_text) {
                        run_text.truncate(at);
                        stopped = true;
                    }
                }
                Part::Call { name, arguments } => {
                    text.push_str(&format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n</tool_call>"));
                    if stopped { continue; }
                    expected.content.push_str(&std::mem::take(&mut run_text));
                    expected.calls.push((name.clone(), arguments.clone()));
                    after_tag = true;
                }
            }
        }
        expected.content.push_str(&run_text);
        // Texts side by side may have made a tag that nobody put there.
        let num_tags = |tag: &str| text.matches(tag).count();
        let num_calls = parts.iter().filter(|part| matches!(part, Part::Call { .. })).count();
        prop_assume!(num_tags("<tool_call>") == num_calls);
        prop_assume!(num_tags("</think>") == usize::from(reasoning.is_some()));
        prop_assume!(num_tags("<think>") == usize::from(reasoning.is_some() && !is_open));

        let format = format(reasoning.as_ref().and_then(|_| thinking(is_open)), Some(ToolCallFormat::Hermes));
        let stops: Vec<&str> = stop.into_iter().collect();
        let found = run(&format, &cut(&text, &sizes), &stops, TextEnd::Complete);
        prop_assert_eq!(&found.reasoning, &expected.reasoning, "{}", text);
        prop_assert_eq!(&found.content, &expected.content, "{}", text);
        prop_assert_eq!(&found.calls, &expected.calls, "{}", text);
        prop_assert_eq!(found.stop.is_some(), stopped, "{}", text);
    }

    /// Anything at all, in any format: nothing panics, nothing is lost in a reply without syntax.
    #[test]
    fn any_bytes_are_taken(
        tokens in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec!["<think>", "</think>", "<tool_call>", "</tool_call>", "<function=f>", "<parameter=p>",
                    "</parameter>", "{\"name\": \"f\", ", "\"arguments\": {", "\"parameters\": {", "}", "\"", "\\", "\n", "<|python_tag|>"])
                    .prop_map(|text| text.as_bytes().to_vec()),
                prop::collection::vec(any::<u8>(), 0..4),
            ],
            0..16,
        ),
        is_open in any::<bool>(),
        tools in 0..4_usize,
        end in prop::sample::select(vec![TextEnd::Complete, TextEnd::Truncated]),
    ) {
        let tools = [None, Some(ToolCallFormat::Hermes), Some(ToolCallFormat::QwenXml),
            Some(ToolCallFormat::Llama3Json { names: vec!["f".to_owned()] })][tools].clone();
        let _ = run(&format(thinking(is_open), tools), &tokens, &["\"}"], end);
    }
}
