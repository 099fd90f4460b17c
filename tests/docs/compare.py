"""Whether what a page shows is what came out. `…` stands for anything; everything else has to be so to the letter."""

import difflib
import json
import re

ANYTHING = "…"


def output_fault(shown, printed):
    """Why `shown` does not describe `printed`; None where it does. White space at the ends of lines is not compared."""
    shown, printed = ([line.rstrip() for line in text.rstrip().splitlines()] for text in (shown, printed))
    pattern = re.escape("\n".join(shown)).replace("\\\n", "\n")
    # Alone on its line it stands for any number of lines, else for a part of its own.
    pattern = re.sub(rf"\n{ANYTHING}(?=\n|$)", r"(?:\\n[\\s\\S]*?)?", pattern)
    pattern = re.sub(rf"^{ANYTHING}$", r"[\\s\\S]*", pattern)
    pattern = re.sub(rf"^{ANYTHING}\n", r"(?:[\\s\\S]*?\\n)?", pattern)
    pattern = pattern.replace(ANYTHING, r"[^\n]*?")
    if re.fullmatch(pattern, "\n".join(printed)):
        return None
    return "\n".join(difflib.unified_diff(shown, printed, "the page", "what came out", lineterm=""))


def reply_fault(shown, answered, path="$"):
    """The first place where the JSON value `shown` does not describe `answered`; None where it does."""
    if shown == ANYTHING:
        return None
    if isinstance(shown, dict) and isinstance(answered, dict):
        for name, value in shown.items():
            if name not in answered:
                return f"{path}.{name} is shown and was not answered"
            if fault := reply_fault(value, answered[name], f"{path}.{name}"):
                return fault
        return None
    if isinstance(shown, list) and isinstance(answered, list):
        more = shown[-1:] == [ANYTHING]
        shown = shown[: len(shown) - more]
        if len(answered) < len(shown) or len(answered) > len(shown) and not more:
            return f"{path} has {len(answered)} elements, shown are {len(shown)}"
        pairs = zip(shown, answered)
        return next(filter(None, (reply_fault(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(pairs))), None)
    if type(shown) is type(answered) and shown == answered:
        return None
    return f"{path} is shown as {json.dumps(shown)}, answered was {json.dumps(answered)}"
