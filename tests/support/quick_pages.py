"""Reports without their figures, which take as long as all the rest of a small sweep.

Drawn are those of tests/reports, and of tests that ask for them by the fixture `drawn_figures`.
"""

import os
from typing import Any

import pytest

DRAWN = "ADVCLI_TEST_FIGURES"


def patch(patched: pytest.MonkeyPatch) -> None:
    """Leave figures out of reports unless the environment asks for them, so that command lines of the nursery know it, too."""
    from advcli.reports.sections import content

    drawn = content.drawn

    def asked(section: str, material: Any) -> Any:
        return drawn(section, material) if DRAWN in os.environ else ()

    patched.setattr(content, "drawn", asked)
