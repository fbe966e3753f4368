"""Cell files that were changed on purpose and are whole all the same: with the checksum of what stands in them."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def sealed(content: dict[str, Any]) -> str:
    """Return the text of a cell file, the checksum of its content last."""
    text = json.dumps({name: value for name, value in content.items() if name != "sha256"}, separators=(",", ":"))
    return f'{text[:-1]},"sha256":"{hashlib.sha256(text.encode()).hexdigest()}"}}\n'


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Change the content of a cell file in place."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(sealed(content))
