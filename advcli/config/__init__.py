"""The configuration: its schema, the words that set it, and how words become checked settings.

`schema` checks composed values, `words` reads and writes overrides, `composing` composes cells, many from few compositions, `explaining`
turns Hydra's errors into one line.
"""

from .schema import GROUPS, STARTED, Settings, check, first_line, keys, plain, register_resolver, validate

__all__ = ["GROUPS", "STARTED", "Settings", "check", "first_line", "keys", "plain", "register_resolver", "validate"]
