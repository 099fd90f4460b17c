#!/usr/bin/env python3
"""llama.cpp behind one model file, through `llama-cpp-python`'s low-level functions: the peer's side of run.py.

    python3 llama_cpp_worker.py MODEL.gguf THREADS

Reads one request a line from standard input and answers each with one line of JSON:

    {"figure": "prefill", "tokens": 512}             -> {"seconds": ...}
    {"figure": "decode", "tokens": 128, "batch": 8}  -> {"seconds": ...}

The first line it writes says what it is: version and build of the library. Token ids are those of `assay bench`: how
long a pass takes does not depend on them. Everything but threads and sizes is the library's default, flash attention
included.
"""

import ctypes
import json
import sys
import time

import llama_cpp

LONGEST_PROMPT = 2048
# Sequences at once, and room for each.
MOST_SEQUENCES = 8
SEQUENCE_TOKENS = 256


@llama_cpp.llama_log_callback
def silent(_level, _text, _user_data):
    """The library's log is not part of the protocol."""


def fail(what):
    sys.exit(f"llama.cpp: {what}")


class Peer:
    """A loaded model with one context for a single sequence and one for several."""

    def __init__(self, path, num_threads):
        llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        params = llama_cpp.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            fail(f"cannot load {path}")
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self.vocab_size = llama_cpp.llama_vocab_n_tokens(vocab)
        self.num_threads = num_threads
        self.single = self.context(LONGEST_PROMPT + SEQUENCE_TOKENS, 1)
        self.several = self.context(MOST_SEQUENCES * SEQUENCE_TOKENS, MOST_SEQUENCES)

    def context(self, num_tokens, num_sequences):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = num_tokens
        params.n_batch = LONGEST_PROMPT
        params.n_seq_max = num_sequences
        params.n_threads = self.num_threads
        params.n_threads_batch = self.num_threads
        context = llama_cpp.llama_init_from_model(self.model, params)
        if not context:
            fail("no context")
        return context

    def batch(self, positions, num_sequences, wants_logits):
        """The tokens at `positions` of each sequence; logits of each sequence's last one."""
        batch = llama_cpp.llama_batch_init(len(positions) * num_sequences, 0, 1)
        row = 0
        for sequence in range(num_sequences):
            for position in positions:
                batch.token[row] = position * 7 % min(self.vocab_size, 1000)
                batch.pos[row] = position
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = sequence
                batch.logits[row] = int(wants_logits and position == positions[-1])
                row += 1
        batch.n_tokens = row
        return batch

    def run(self, context, batch):
        if llama_cpp.llama_decode(context, batch) != 0:
            fail("llama_decode failed")

    def clear(self, context):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)

    def prefill(self, num_tokens):
        self.clear(self.single)
        batch = self.batch(range(num_tokens), 1, True)
        started = time.perf_counter()
        self.run(self.single, batch)
        llama_cpp.llama_synchronize(self.single)
        seconds = time.perf_counter() - started
        llama_cpp.llama_batch_free(batch)
        return seconds

    def decode(self, num_steps, num_sequences):
        context = self.single if num_sequences == 1 else self.several
        self.clear(context)
        # Built beforehand: only the library is timed.
        batches = [
            self.batch(range(position, position + 1), num_sequences, position > 0)
            for position in range(num_steps + 1)
        ]
        self.run(context, batches[0])
        llama_cpp.llama_synchronize(context)
        started = time.perf_counter()
        for batch in batches[1:]:
            self.run(context, batch)
        llama_cpp.llama_synchronize(context)
        seconds = time.perf_counter() - started
        for batch in batches:
            llama_cpp.llama_batch_free(batch)
        return seconds


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    peer = Peer(sys.argv[1], int(sys.argv[2]))
    about = {
        "llama_cpp_python": llama_cpp.__version__,
        "system_info": llama_cpp.llama_print_system_info().decode(),
    }
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["figure"] == "prefill":
            seconds = peer.prefill(request["tokens"])
        else:
            seconds = peer.decode(request["tokens"], request["batch"])
        print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
