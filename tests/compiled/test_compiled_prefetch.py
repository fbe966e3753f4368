"""Prefetches are instructions of the compiled loops: a compiler may take a function of nothing but prefetches for one without effects."""

import shutil
import subprocess

import pytest


@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump, which reads the instructions, is not installed")
@pytest.mark.parametrize("module", ["ascent_dense", "ascent_row_blocks"])
def test_the_loops_over_rows_ask_for_the_next_ones(kernels, module):
    said = subprocess.run(["objdump", "-d", getattr(kernels, module).__file__], capture_output=True, text=True, check=True).stdout
    if "x86-64" not in said and "aarch64" not in said:
        pytest.skip("prefetches of this processor have other names")
    assert "prefetch" in said or "\tprfm" in said
