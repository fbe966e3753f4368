"""The searches and pictures of benchmarks/searches: importing this module registers the searches."""

from __future__ import annotations

from pathlib import Path

from support.module_files import module_of

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "searches"

slack = module_of(FOLDER / "search" / "slack.py", "searches_slack")
pictures = module_of(FOLDER / "picture" / "searches.py", "searches_picture_searches")
bisecting, binary, sarawagi = slack.bisecting, slack.binary, slack.sarawagi
