//! Templates that would take all time or memory, and the small rules that no real template shows.

use std::time::{Duration, Instant};

use assay_tokenizer::{
    ChatTemplate, GenerationPrompt, RenderOptions, TemplateError, TemplateLimits, TemplateTokens,
};
use serde_json::{Value as Json, json};

fn render(source: &str, messages: &Json) -> Result<String, TemplateError> {
    ChatTemplate::new(source, TemplateTokens::default())?
        .render(messages, &RenderOptions::default())
}

fn check_renders(source: &str, messages: &Json, expected: &str) {
    let rendered = render(source, messages).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(rendered, expected, "{source}");
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Limit {
    Steps,
    Output,
}

/// The template fails by the limit, soon.
fn check_stopped(source: &str, limit: Limit) {
    let start = Instant::now();
    let error = render(source, &json!([{"role": "user", "content": "x"}])).expect_err(source);
    let by = match error {
        TemplateError::Steps { .. } => Limit::Steps,
        TemplateError::Output { .. } => Limit::Output,
        other => panic!("{source}: {other}"),
    };
    assert!(limit == by, "{source}: stopped by {by:?}");
    assert!(
        start.elapsed() < Duration::from_secs(20),
        "{source}: {:?}",
        start.elapsed()
    );
}

#[test]
fn endless_loops_run_out_of_steps() {
    let nested = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    check_stopped(nested, Limit::Steps);
}

#[test]
fn endless_recursion_is_an_error() {
    for source in [
        "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('ab') }}",
        "{% macro m(n) %}{% for i in range(9) %}{{ m(n + 1) }}{% endfor %}{% endmacro %}{{ m(0) }}",
        "{% for x in [[[]]] recursive %}{{ loop([x]) }}{% endfor %}",
    ] {
        let error = render(source, &json!([])).expect_err(source);
        assert!(error.to_string().contains("recursion"), "{source}: {error}");
    }
}

#[test]
fn no_way_of_growing_passes_the_output_limit() {
    for source in [
        "{% for a in range(100000) %}{% for b in range(1000) %}some text {% endfor %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=['ab']) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x=['ab']) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
        "{% set ns = namespace(x=['ab']) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x ~ '' }}",
        "{% set ns = namespace(x=['ab']) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x | replace('a', 'aa') %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x.replace('a', 'aa') %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] | join %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}{% endfor %}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = ns.x + ['a' * 99999999] %}{% endfor %}",
        "{% set n = 9999 %}{% set x = 'a' * (n * n) %}",
        "{% set x = '{:>999999999}'.format('a') %}",
        "{% set x = 'a\nb' | indent(99999999) %}{{ x }}",
    ] {
        check_stopped(source, Limit::Output);
    }
    let text = "lorem ipsum ".repeat(5000);
    check_stopped(
        &format!("{{% set x %}}{{% for a in range(100000) %}}{text}{{% endfor %}}{{% endset %}}"),
        Limit::Output,
    );
}

#[test]
fn limits_are_exact_and_large_prompts_fit() {
    let limits = TemplateLimits {
        output_bytes: 100,
        ..TemplateLimits::default()
    };
    let source = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let template = ChatTemplate::with_limits(source, TemplateTokens::default(), limits).unwrap();
    let render = |bytes: usize| {
        template.render(
            &json!([{"role": "user", "content": "x".repeat(bytes)}]),
            &RenderOptions::default(),
        )
    };
    assert_eq!(render(100).unwrap().len(), 100);
    assert!(matches!(
        render(101),
        Err(TemplateError::Output { max: 100 })
    ));

    let chatml = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}{% endfor %}";
    let messages: Json = (0..4096)
        .map(|i| json!({"role": "user", "content": format!("{i} ").repeat(100)}))
        .collect();
    let prompt = self::render(chatml, &messages).unwrap();
    assert!(prompt.len() > 2_000_000, "{}", prompt.len());
}

#[test]
fn fault_170_null_or_absent_content_is_empty() {
    let source = "{% for m in messages %}[{{ m['content'].lstrip() }}]{% endfor %}";
    check_renders(
        source,
        &json!([{"role": "user", "content": null}, {"role": "user"}]),
        "[][]",
    );
}

#[test]
fn fault_171_the_date_is_fixed() {
    let source = "{{ strftime_now('%d %b %Y') }}";
    check_renders(source, &json!([]), "01 Jan 2025");
    let template = ChatTemplate::new(source, TemplateTokens::default()).unwrap();
    let options = RenderOptions {
        date: "2026-11-30".parse().unwrap(),
        ..RenderOptions::default()
    };
    assert_eq!(
        template.render(&json!([]), &options).unwrap(),
        "30 Nov 2026"
    );
}

#[test]
fn content_takes_the_form_the_template_reads() {
    let parts = json!([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
    let text = json!([{"role": "user", "content": "a"}]);
    let reads_text = "{% for m in messages %}{{ m.content.strip() }}{% endfor %}";
    check_renders(reads_text, &parts, "a\nb");
    let reads_parts =
        "{% for m in messages %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endfor %}";
    check_renders(reads_parts, &parts, "<a><b>");
    check_renders(reads_parts, &text, "<a>");
    let image =
        json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]);
    let error = render(reads_text, &image).unwrap_err().to_string();
    assert!(
        error.contains("messages[0].content[0].type") && error.contains("`image_url`"),
        "{error}"
    );
    for (messages, named) in [
        (json!({}), "messages"),
        (json!([1]), "messages[0]"),
        (json!([{"content": 5}]), "messages[0].content"),
    ] {
        let error = render(reads_text, &messages).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn tool_arguments_take_the_form_the_template_reads() {
    let messages = json!([{"role": "assistant", "content": null, "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1, \"b\": [true, null]}"}},
    ]}]);
    let begin = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}";
    let end = "{% endfor %}{% endfor %}";
    let as_object = format!("{begin}{{{{ c.function.arguments | tojson }}}}{end}");
    check_renders(&as_object, &messages, "{\"a\": 1, \"b\": [true, null]}");
    let as_text = format!("{begin}{{{{ '<' + c.function.arguments + '>' }}}}{end}");
    check_renders(&as_text, &messages, "<{\"a\": 1, \"b\": [true, null]}>");
}

#[test]
fn values_print_as_python_prints_them() {
    let source = "{{ [1, 2.0, 'a', \"it's\", true, none] }} {{ {'k': [1]} }} {{ true }} {{ x }}{{ 'a\"b' | tojson }}";
    check_renders(
        source,
        &json!([]),
        "[1, 2.0, 'a', \"it's\", True, None] {'k': [1]} True \"a\\\"b\"",
    );
    let json = "{{ {'b': 'é<', 'a': [1, {}]} | tojson }} {{ {'b': 1, 'a': []} | tojson(indent=2, sort_keys=true) }}";
    check_renders(
        json,
        &json!([]),
        "{\"b\": \"é<\", \"a\": [1, {}]} {\n  \"a\": [],\n  \"b\": 1\n}",
    );
    check_renders(
        "{{ {'k': 'é'} | tojson(ensure_ascii=true, separators=(',', ':')) }}",
        &json!([]),
        "{\"k\":\"\\u00e9\"}",
    );
    check_renders(
        "{{ 'ab' * 3 }}{{ 2 * 3 }}{{ [0] * 2 }}{{ 'x'.removeprefix('x') }}",
        &json!([]),
        "ababab6[0, 0]",
    );
}

#[test]
fn a_template_refuses_with_its_own_words() {
    let error = render("{{ raise_exception('roles must alternate') }}", &json!([])).unwrap_err();
    assert!(
        matches!(&error, TemplateError::Refused { message } if message == "roles must alternate"),
        "{error}"
    );
    let nested =
        "{% macro m() %}{{ raise_exception('no') }}{% endmacro %}{% if true %}{{ m() }}{% endif %}";
    assert!(matches!(
        render(nested, &json!([])).unwrap_err(),
        TemplateError::Refused { .. }
    ));
}

#[test]
fn broken_and_huge_sources_are_refused() {
    for source in [
        "{% if %}",
        "{{ a",
        "{% for x in y %}",
        "{{ x | no_such_filter }}",
    ] {
        let error = ChatTemplate::new(source, TemplateTokens::default())
            .and_then(|template| template.render(&json!([]), &RenderOptions::default()))
            .unwrap_err();
        assert!(
            matches!(
                error,
                TemplateError::Syntax { line: 1, .. } | TemplateError::Render { line: 1, .. }
            ),
            "{source}: {error}"
        );
    }
    let huge = "x".repeat(300 << 10);
    let error = ChatTemplate::new(&huge, TemplateTokens::default()).unwrap_err();
    assert!(
        matches!(error, TemplateError::SourceTooLong { .. }),
        "{error}"
    );
}

#[test]
fn a_request_cannot_take_the_templates_own_names() {
    let template = ChatTemplate::new("{{ messages }}", TemplateTokens::default()).unwrap();
    for name in [
        "messages",
        "tools",
        "bos_token",
        "strftime_now",
        "add_generation_prompt",
    ] {
        let arguments = [(name.to_owned(), json!("x"))].into_iter().collect();
        let options = RenderOptions {
            arguments,
            ..RenderOptions::default()
        };
        let error = template
            .render(&json!([]), &options)
            .unwrap_err()
            .to_string();
        assert!(error.contains(name), "{error}");
    }
    let omit = RenderOptions {
        generation_prompt: GenerationPrompt::Omit,
        ..RenderOptions::default()
    };
    let template = ChatTemplate::new(
        "{{ add_generation_prompt }}{{ tools }}",
        TemplateTokens::default(),
    )
    .unwrap();
    assert_eq!(template.render(&json!([]), &omit).unwrap(), "FalseNone");
}
