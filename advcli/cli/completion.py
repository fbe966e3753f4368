"""Completion of the words that belong to actions."""

from __future__ import annotations

import os

from . import actions


def complete_action() -> bool:
    """Complete words that belong to actions, and hide those from Hydra's completion, which knows overrides only.

    Returns
    -------
    bool
        Whether the word is complete with this: no override can stand in its place.
    """
    line = os.environ.get("COMP_LINE", "")
    if not line.strip():
        return False
    program, *words = line.split()
    if line.endswith(" "):
        words.append("")
    if len(words) < 2:
        print(" ".join(name for name in actions.names() if words and name.startswith(words[0])))
        return False
    if words[0] in actions.names():
        choices, taken = actions.get(words[0]).complete(words[1:])
        if choices is not None:
            print(" ".join(sorted(name for name in choices if name.startswith(words[-1]))))
            return True
        os.environ["COMP_LINE"] = " ".join([program, *words[1 + taken :]])
    return False
