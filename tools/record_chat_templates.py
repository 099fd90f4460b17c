#!/usr/bin/env python3
"""Record what Jinja2 renders for the fetched chat templates.

Needs `jinja2`; the settings are those Hugging Face's `apply_chat_template` uses. For each template and each
conversation of `crates/assay-tokenizer/tests/data/conversations.json` the length and SHA-256 of the prompt go
to `chat_templates.json` beside it, or "refused" where the template raises, or "failed" where Jinja2 cannot run it. With `--show TEMPLATE CONVERSATION` the
prompt itself is printed instead.
"""

import datetime
import hashlib
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

from fetch_vocab_vectors import vectors_dir

DATA = pathlib.Path(__file__).parent.parent / "crates/assay-tokenizer/tests/data"
DATE = datetime.datetime(2025, 1, 1)


class Generation(jinja2.ext.Extension):
    """`{% generation %}` prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = DATE.strftime
    return env


def render(template, conversation, arguments_as_text):
    """The prompt as bytes, or "refused" or "failed"."""
    messages = json.loads(json.dumps(conversation["messages"]))
    for message in messages:
        for call in message.get("tool_calls", []):
            if arguments_as_text:
                function = call["function"]
                function["arguments"] = json.dumps(function["arguments"], separators=(",", ":"), ensure_ascii=False)
    try:
        return template.render(
            messages=messages,
            tools=conversation.get("tools"),
            documents=None,
            add_generation_prompt=True,
            bos_token="<BOS>",
            eos_token="<EOS>",
            **conversation.get("arguments", {}),
        ).encode()
    except jinja2.exceptions.UndefinedError:
        return "failed"
    except jinja2.exceptions.TemplateError as error:
        return "refused" if type(error) is jinja2.exceptions.TemplateError else "failed"
    except Exception as error:  # noqa: BLE001 (templates fail in every way Python has)
        if sys.argv[1:2] == ["--show"] and template.name == sys.argv[2]:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return "failed"


def prompt(template, conversation):
    """With tool arguments as an object, or as text where the template was written for text."""
    as_object = render(template, conversation, arguments_as_text=False)
    calls = any("tool_calls" in message for message in conversation["messages"])
    if calls and (isinstance(as_object, str) or b"{'city': 'Z" in as_object):
        as_text = render(template, conversation, arguments_as_text=True)
        return as_object if isinstance(as_text, str) else as_text
    return as_object


def main():
    conversations = json.loads((DATA / "conversations.json").read_text())
    recorded = {}
    for path in sorted((vectors_dir() / "templates").glob("*.jinja")):
        try:
            template = environment().from_string(path.read_text())
            template.name = path.stem
        except jinja2.TemplateSyntaxError as error:
            recorded[path.stem] = f"syntax: {error}"
            continue
        recorded[path.stem] = {}
        for name, conversation in conversations.items():
            text = prompt(template, conversation)
            if sys.argv[1:] == ["--show", path.stem, name]:
                print(text if isinstance(text, str) else text.decode())
            is_prompt = isinstance(text, bytes)
            recorded[path.stem][name] = [len(text), hashlib.sha256(text).hexdigest()] if is_prompt else text
    if "--show" not in sys.argv:
        rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in recorded.items())
        (DATA / "chat_templates.json").write_text("{\n" + rows + "\n}\n")


if __name__ == "__main__":
    main()
