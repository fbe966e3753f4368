"""The result of a check as JUnit XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Sequence

from .check import Change, cost_warnings


def junit_xml(changes: Sequence[Change], name: str = "advcli check", *, finding: str = "") -> str:
    """Return the check as JUnit XML: moved and missing entries are failures, new ones are skipped, warnings are in ``system-err``.

    ``finding``, from `ResultsFolder.disagreement`, is a failure if it is not empty.
    """
    cases = []
    if finding:
        case = _case("folder", "runs.csv")
        ET.SubElement(case, "failure", {"type": "disagreement", "message": _clean(finding)}).text = _clean(finding)
        cases.append(case)
    # the metrics of a cell share its fits
    alike = Counter((change.dataset, change.method) for change in changes)
    for change in changes:
        seconds = change.seconds / alike[change.dataset, change.method]
        case = _case(f"{change.dataset}.{change.metric}", change.method, seconds)
        line = _clean(change.line())
        if change.failed:
            ET.SubElement(case, "failure", {"type": change.status, "message": line}).text = line
        elif change.status == "new":
            ET.SubElement(case, "skipped", {"message": line})
        cases.append(case)
    return _suite(name, cases, "\n".join(cost_warnings(changes)))


def junit_error(error: str) -> str:
    """Return JUnit XML of a check that came to no verdict, stopped by ``error``: one test case that is an error."""
    case = _case("folder", "check")
    ET.SubElement(case, "error", {"type": "error", "message": _clean(error)}).text = _clean(error)
    return _suite("advcli check", [case])


def _case(where: str, name: str, seconds: float = 0.0) -> ET.Element:
    return ET.Element("testcase", {"classname": _clean(where), "name": _clean(name), "time": f"{seconds:.6f}"})


def _suite(name: str, cases: Sequence[ET.Element], output: str = "") -> str:
    count = {kind: str(sum(case.find(tag) is not None for case in cases)) for kind, tag in _OUTCOMES.items()}
    root = ET.Element("testsuites", {"tests": str(len(cases)), **count})
    spent = f"{sum(float(case.get('time', 0)) for case in cases):.6f}"
    suite = ET.SubElement(root, "testsuite", {"name": _clean(name), "tests": str(len(cases)), "time": spent, **count})
    suite.extend(cases)
    if output:
        ET.SubElement(suite, "system-err").text = _clean(output)
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


_OUTCOMES = {"failures": "failure", "errors": "error", "skipped": "skipped"}  # attribute of a suite -> element of a case


def _clean(text: str) -> str:
    """Return text without the characters that XML 1.0 forbids even when escaped."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)
