"""The environment variables that the package reads; a test compares this table with the code."""

from __future__ import annotations

VARIABLES = {
    "ADVCLI_CONFIRM": "Where it is false, nothing asks before many fits (key confirm).",
    "ADVCLI_DATA": "Folder of the data sets where the key data_dir is null. Unset: the folder data of the checkout, or ./data without one.",
    "ADVCLI_DATA_URL": (
        "Address of a mirror, http:// or https://, from which `advcli data fetch` downloads. Unset: the repository of advcli and the sets'"
        " public files."
    ),
    "ADVCLI_PLUGINS": ("Folders with Python files of your own, separated as in PATH; `--config-dir FOLDER` and the key plugins add more."),
    "ADVCLI_SIMD": (
        "Instruction set of the compiled modules: portable, avx2 or avx512. Unset: the widest that the build and the processor have. "
        "Rows of portable and avx2 are the same; those of avx512 may differ in their last digits, but under arithmetic=portable."
    ),
    "ADVCLI_STARTED": (
        "Default name of the results folder. The command line sets it, so that the workers of a sweep have the name of their parent."
    ),
    "CI": "Where it is set, a sweep on a stream that is no terminal prints no line for each result, and nothing asks before many fits.",
    "COLUMNS": "Width of lists and pages of help, in characters. Unset: the width of the terminal, or 80.",
    "COMP_LINE": "The line that the shell completes. The shell sets it.",
    "GITHUB_STEP_SUMMARY": (
        "File of the page of a GitHub job: `advcli check summary=$GITHUB_STEP_SUMMARY` adds its table to it. GitHub sets it."
    ),
    "HYDRA_FULL_ERROR": "The command line sets it to 1 while Hydra runs, so that an error becomes one line, and restores it afterwards.",
    "MLFLOW_ALLOW_FILE_STORE": (
        "`advcli export mlflow` sets it to true unless it is set, because newer releases of MLflow refuse to write files without it."
    ),
    "MLFLOW_DISABLE_TELEMETRY": "`advcli export mlflow` sets it to true unless it is set, so that MLflow reports nothing to its makers.",
    "RAY_USAGE_STATS_ENABLED": "advcli sets it to 0 before it starts Ray, unless it is set, so that Ray reports nothing to its makers.",
    "SOURCE_DATE_EPOCH": (
        "Time that `advcli fit` writes into a model file, in seconds since 1970: a repeated fit gives the same file. Unset: the"
        " time of the fit."
    ),
    "TERM": "Where it is dumb, a sweep draws no progress bar.",
}
"""Name and meaning of every variable."""
