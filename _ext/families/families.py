"""Write adv_families.pxd: every function bind_NAME of the headers adv_*.pxd is a compiled surrogate, and its kind a number.

    python families.py OUTPUT HEADER...

So a new surrogate is its header and nothing else. meson.build runs this.
"""

import re
import sys
from pathlib import Path

BINDER = re.compile(r"^cdef inline int bind_([a-z0-9_]+)\(Family \*s, const double \*parameters, Py_ssize_t n_parameters\)", re.MULTILINE)


def written(headers: list[Path]) -> str:
    """Return the text of adv_families.pxd; the kinds follow the names in order."""
    homes = {name: header.stem for header in headers for name in BINDER.findall(header.read_text(encoding="utf-8"))}
    names = sorted(homes)
    lines = [
        "# Written by families.py from the functions bind_NAME of the headers; not to be edited.",
        "",
        "from adv_family cimport Family",
    ]
    lines += [f"from {homes[name]} cimport bind_{name}" for name in names]
    lines += ["", "cdef enum:"]
    lines += [f"    {name.upper()} = {kind}" for kind, name in enumerate(names)]
    lines += ["", ""]
    lines += ["cdef inline int bind_family(Family *s, int kind, const double *parameters, Py_ssize_t n_parameters) noexcept nogil:"]
    lines += ['    """Give ``s`` the functions of its kind; return what `family_new` returns."""']
    for name in names:
        lines += [f"    if kind == {name.upper()}:", f"        return bind_{name}(s, parameters, n_parameters)"]
    lines += ["    return -2", "", "", "cdef inline tuple family_names():"]
    lines += ["    return (" + ", ".join(f'"{name}"' for name in names) + ",)"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    output, *given = map(Path, sys.argv[1:])
    output.write_text(written(given), encoding="utf-8")
