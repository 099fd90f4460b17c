#!/usr/bin/env python3
"""The tokenizer of a GGUF file as a folder of Hugging Face's form, for clients that tokenise by themselves.

    python3 tools/tokenizer_folder.py MODEL.gguf FOLDER

Byte-level BPE that takes digits one by one (`smollm`), which is what the default model has; others are refused. Needs the
packages `gguf`, `tokenizers` and `transformers`.
"""

import sys

import gguf
import tokenizers
from transformers import PreTrainedTokenizerFast

PRE_TOKENIZERS = ("smollm",)


def write(model, folder):
    """Writes the folder; `SystemExit` for a tokenizer of another kind."""
    reader = gguf.GGUFReader(model)
    field = lambda name: reader.fields[f"tokenizer.{name}"].contents()
    if field("ggml.pre") not in PRE_TOKENIZERS:
        raise SystemExit(f"{model}: its pre-tokenizer is {field('ggml.pre')!r}; known are {', '.join(PRE_TOKENIZERS)}")
    tokens, kinds = field("ggml.tokens"), field("ggml.token_type")
    merges = [tuple(merge.split(" ")) for merge in field("ggml.merges")]
    bpe = tokenizers.Tokenizer(tokenizers.models.BPE({token: id for id, token in enumerate(tokens)}, merges))
    digits = tokenizers.pre_tokenizers.Digits(individual_digits=True)
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([digits, byte_level])
    bpe.decoder = tokenizers.decoders.ByteLevel()
    bpe.add_special_tokens([token for token, kind in zip(tokens, kinds) if kind == gguf.TokenType.CONTROL])
    PreTrainedTokenizerFast(tokenizer_object=bpe, chat_template=field("chat_template")).save_pretrained(folder)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    write(*sys.argv[1:])
