"""Words of reports: counts, names of files."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.reports.formats.document import Document, ReportTable, Section, TableField, counted, file_word, metric_word
from advcli.reports.formats.markdown import markdown


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [(1, ("data set",), "1 data set"), (0, ("cell",), "0 cells"), (2, ("fit has", "fits have"), "2 fits have"), (1, ("a", "b"), "1 a")],
)
def test_counted(count: int, words: tuple[str, ...], text: str) -> None:
    assert counted(count, *words) == text


@given(st.text(max_size=20))
def test_a_name_of_a_file_is_a_word(text: str) -> None:
    word = file_word(text)
    assert re.fullmatch(r"[^\W_]+(-[^\W_]+)*", word)
    assert file_word(word) == word


def test_files_are_named_by_the_metric_that_is_shown() -> None:
    assert (metric_word("error"), metric_word("accuracy"), metric_word("abstention_loss"), metric_word("")) == (
        "accuracy",
        "accuracy",
        "abstention-loss",
        "none",
    )


@pytest.mark.parametrize("text", ["<img src=x>", "</table>", "<!-- a", "&lt;b&gt;", "a|b", "*x*", "p < 0.05 & q", "<=50K"])
def test_markdown_shows_a_text_as_it_is(text):
    """No tag, entity, emphasis or end of a field begins in a name, a note or a title; plain signs stay readable."""
    table = ReportTable("t", text, ("dataset", text), ((TableField(text), TableField(text, strong=True, suffix=text)),), notes=(text,))
    made = markdown(Document(text, (text,), (Section("s", text, (text,), (table,), details=(("key", f"`{text}`"),)),)))
    code = "``" + f" `{text}` " + "``"
    assert code in made
    made = made.replace(code, "")
    assert not re.search(r"<[A-Za-z/!?]", made)
    plain = re.sub(r"\\([|*])", r"\1", made).replace("&lt;", "<").replace("&amp;", "&")
    assert plain.count(text) == 10
    if not re.search(r"[|*]|<[A-Za-z/!?]|&\w+;", text):
        assert made.count(text) == 10, "nothing to escape"
