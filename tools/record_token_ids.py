#!/usr/bin/env python3
"""Record the ids that llama.cpp gives for texts made to be hard.

Needs the package `llama-cpp-python`. Texts are drawn with a fixed seed from scripts, blanks, marks, digits,
code and the vocabularies' own special texts; they and a hash of their ids for each vocabulary go to
`crates/assay-tokenizer/tests/data/token_ids.json`.
"""

import hashlib
import json
import pathlib
import random

from llama_cpp import Llama

from fetch_vocab_vectors import vectors_dir

DATA = pathlib.Path(__file__).parent.parent / "crates/assay-tokenizer/tests/data"
VOCABULARIES = (
    "gpt-2 llama-bpe llama-spm qwen2 qwen35 gemma-4 phi-3 command-r starcoder refact mpt falcon "
    "deepseek-coder deepseek-llm baichuan"
).split()
MODELS = {"smollm2": "SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3": "gemma-3-270m-q4_k_m.gguf"}
SPECIAL = (
    "<s> </s> <unk> <bos> <eos> <pad> <|im_start|> <|im_end|> <|endoftext|> <|begin_of_text|> <|eot_id|> "
    "<|user|> <|assistant|> <|end|> <start_of_turn> <end_of_turn> <|turn> <turn|> <table> <0x41> <unused7> "
    "<|START_OF_TURN_TOKEN|> <fim_prefix> [INST] <mask>"
).split()
ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", "etaoinshrdlu",
    "àâçéèêëîïôûùüÿñæœßøåÀÉÖ", "абвгдежзийклмнопрстуфхцчшщъыьэюя", "αβγδεζηθικλμνξοπρστυφχψω", "אבגדהוזחט",
    "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "कखगघङचछजझञटठडढणािीुूेैोौं", "กขคงจฉชซญดตถทนบปผพภมยรลวสหอ",
    "的一是不了人我在有他这中大来上国", "あいうえおかきくけこアイウエオガギグ", "가나다라마바사아자차카타파하한글",
    "🦀😀👍🏽❤️👨‍👩‍👧‍👦🇨🇭", "\u0301\u0308\u0327\u20dd", "٠١٢٣४५६७⅓½²₃Ⅷ①", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "«»“”‘’…—–•·¿¡。、「」％", "±×÷∑∫√∞≠≤→⇒€£¥©™", "\t\n\r ", " \u00a0\u2003\u3000\u200b\u200d\ufeff", "\x01\x07\x1b\x7f\u0085",
]
FIXED = [
    "", " ", "  ", "\n", "\n\n", " \n", "\n ", "\r\n\r\n", "\t\tx", "a\n\n\n b", " Hello", "Hello ", "don't DON'T I'Ll we've", "3.14159 1,000,000 0x1F",
    "<s>G", "<s> G", "</s>Hello", "</s> Hello", "x<s>y</s>z", " <s> ", "<|user|>\n Hi<|end|>\n<|assistant|>", "<|im_start|>user\nHi<|im_end|>\n",
    "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "<s></s>", "<|im_end|", "<|im_end|>|>", "<<s>>", "a" * 300, "ab" * 150, " " * 300, "\n" * 70, "=" * 100,
    "    def f(x):\n        return x\t# ok\n", "https://example.org/a?b=c&d=%20e#f", "\\n is not a newline", "▁x ▁▁y", "Ġx Ċ", "<0x0A>", "[multimodal]", "`` ''",
]


def random_text(rng):
    parts = []
    for _ in range(rng.randint(1, 9)):
        choice = rng.random()
        if choice < 0.12:
            parts.append(rng.choice(SPECIAL))
        elif choice < 0.3:
            parts.append(rng.choice([" ", "  ", "\n", " \n", "'s ", "'LL", ". ", "\t"]))
        else:
            alphabet = rng.choice(ALPHABETS)
            parts.append("".join(rng.choice(alphabet) for _ in range(rng.randint(1, 8))))
    return "".join(parts)


def fingerprint(ids):
    return hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()[:8]


def main():
    rng = random.Random(20250101)
    texts = FIXED + [random_text(rng) for _ in range(200)]
    paths = {name: vectors_dir() / f"ggml-vocab-{name}.gguf" for name in VOCABULARIES}
    paths |= {name: vectors_dir().parent / "models" / file for name, file in MODELS.items()}
    recorded = {}
    for name, path in paths.items():
        model = Llama(str(path), vocab_only=True, verbose=False)
        for special in (False, True):
            hashes = [fingerprint(model.tokenize(text.encode(), add_bos=True, special=special)) for text in texts]
            recorded[f"{name} {'parse' if special else 'literal'}"] = " ".join(hashes)
    lines = ['{"texts": ' + json.dumps(texts)]
    lines += [f"{json.dumps(name)}: {json.dumps(hashes)}" for name, hashes in recorded.items()]
    (DATA / "token_ids.json").write_text(",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
