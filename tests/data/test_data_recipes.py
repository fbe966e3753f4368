"""Converters of public files, on small files that are made up here; the catalogue's checksums hold them to the real ones."""

from __future__ import annotations

import gzip
import importlib
import pkgutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advcli.core.errors import DataError
from advcli.data import recipes
from advcli.data.catalogue import CATALOGUE, Upstream


def converted(format: str, *contents: str, columns: tuple[str, ...] = (), heading: int = 0, end: str = "") -> dict[str, str]:
    paths = tuple(f"file{number}{end}" for number in range(len(contents)))
    raw = [gzip.compress(text.encode()) if end == ".gz" else text.encode() for text in contents]
    return {
        file: plain.decode() for file, plain in recipes.convert(Upstream("o/r", "0", paths, format, columns, heading), raw, "toy").items()
    }


def test_every_format_of_the_catalogue_is_a_module_and_every_module_is_used() -> None:
    shared = {"rows"}
    modules = {module.name for module in pkgutil.iter_modules(recipes.__path__)} - shared
    assert {known.upstream.format for sets in CATALOGUE.values() for known in sets.values() if known.upstream is not None} == modules
    assert all(callable(importlib.import_module(f"advcli.data.recipes.{name}").tables) for name in modules)


@pytest.mark.parametrize(
    ("text", "heading"),
    [("1,2.50,x\n-3,.5,y\n", 0), ("First,2,Class\r\n1,2.50,x\r\n-3,.5,y\r\n", 1), ("1 2 3\n\n1 2.50 x\n-3 \t.5 y", 1)],
)
def test_plain_text_keeps_the_cells_as_they_are(text: str, heading: int) -> None:
    assert converted("plain", text, columns=("a", "b"), heading=heading) == {"toy.csv.gz": "a,b,target\n1,2.50,x\n-3,.5,y\n"}


def test_two_files_become_the_official_split() -> None:
    assert converted("plain", "1,x\n", "2,y\n", columns=("a",)) == {"toy.csv.gz": "a,split,target\n1,train,x\n2,test,y\n"}


ARFF = "% said\n@relation 'r'\n@attribute 'a one' real\n@ATTRIBUTE b INTEGER\n@attribute class { x, y}\n@data\n"


def test_arff_leaves_out_rows_that_miss_a_value() -> None:
    rows = "1, 2.50,x\n7,?,x\n% said\n\n7,8,?\n-3,.5,'y',\n{0 4,2 x}\n"
    assert converted("arff", ARFF + rows)["toy.csv.gz"] == "a one,b,target\n1,2.50,x\n-3,.5,y\n4,0,x\n"
    assert converted("arff", ARFF + rows, columns=("c", "d"), end=".gz")["toy.csv.gz"].startswith("c,d,target\n")


@given(st.lists(st.tuples(*[st.sampled_from(["0", "1", "2.50", "-3"])] * 3), min_size=1))
def test_sparse_and_dense_rows_of_arff_are_the_same(rows: list[tuple[str, ...]]) -> None:
    head = "@attribute a numeric\n@attribute b numeric\n@attribute t numeric\n@data\n"
    dense = head + "".join(",".join(row) + "\n" for row in rows)
    sparse = head + "".join("{" + ",".join(f"{i} {cell}" for i, cell in enumerate(row) if cell != "0") + "}\n" for row in rows)
    assert converted("arff", dense) == converted("arff", sparse)


def test_mulan_has_labels_last_and_renames_reserved_features() -> None:
    head = "@relation r\n@attribute sun {0,1}\n@attribute target numeric\n@attribute rain {0,1}\n@attribute wind numeric\n@data\n"
    labels = (
        '<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="http://x/labels">\n<label name="rain"></label><label name="sun"/></labels>'
    )
    assert converted("mulan", head + "1,.5,0,2\n", head + "{2 1}\n", labels)["toy.csv.gz"] == (
        "term_target,wind,split,label_sun,label_rain\n.5,2,train,1,0\n0,0,test,0,1\n"
    )


def test_a_tree_has_the_most_specific_node_and_counts_the_rows_below() -> None:
    head = "@RELATION r\n@ATTRIBUTE a numeric\n@ATTRIBUTE class hierarchical 1,1/b,2,1,1/a\n@DATA\n"
    found = converted("hierarchical", head + "3,1@1/b\n?,1/a@1\n", head + "4,2\n")
    assert found["toy.csv.gz"] == "a,split,target\n3,train,1/b\n,train,1/a\n4,test,2\n"
    assert found["toy.tree.csv.gz"] == ("node,parent,depth,is_leaf,n_examples\n1,root,1,0,2\n1/a,1,2,1,1\n1/b,1,2,1,1\n2,root,1,1,1\n")


def test_a_graph_keeps_all_nodes_of_a_row_and_its_edges() -> None:
    part = "@ATTRIBUTE a numeric\n@ATTRIBUTE class hierarchical root/u,u/v,root/w\n@DATA\n1,v@w\n"
    found = converted("hierarchical", part, part, part)
    assert found["toy.csv.gz"] == "a,split,target\n1,train,v@w\n1,valid,v@w\n1,test,v@w\n"
    assert found["toy.dag.csv.gz"] == "parent,child\nroot,u\nu,v\nroot,w\n"


def test_tokens_of_conll_have_the_number_of_their_sentence() -> None:
    assert converted("conll", "A\tO\n,\tB-x\n\n\nb\tO\n", "c\tO\n\n", "d\tO")["toy.csv.gz"] == (
        'sentence_id,token,split,target\n0,A,train,O\n0,",",train,B-x\n1,b,train,O\n2,c,dev,O\n3,d,test,O\n'
    )


def test_trees_of_conllu_leave_out_tokens_that_are_no_words() -> None:
    def word(number: str, form: str, head: int) -> str:
        return "\t".join([number, form, "_", "NOUN", "_", "_", str(head), "root" if head == 0 else "obj", "_", "_"])

    one = "\n".join(["# text = b", word("1-2", "bc", 0), word("1", "b", 0), word("2", "c", 1), word("2.1", "d", 1)])
    two = word("1", "a", 0)
    part = f"# newdoc id = z\n{one}\n\n# newdoc id = y\n{two}\n\n"
    assert converted("conllu", part, part, two)["toy.csv.gz"] == (
        "split,sentence,form,upos,head,deprel\ntrain,1,a,NOUN,0,root\ntrain,2,b,NOUN,0,root\ntrain,2,c,NOUN,1,obj\n"
        "valid,3,b,NOUN,0,root\nvalid,3,c,NOUN,1,obj\nvalid,4,a,NOUN,0,root\ntest,5,a,NOUN,0,root\n"
    )


def test_labelled_text() -> None:
    assert (
        converted("labelled_text", "x\ttwo words \n", "y\tthree\n")["toy.csv.gz"] == "text,split,target\ntwo words,train,x\nthree,test,y\n"
    )


@pytest.mark.parametrize("format", sorted({k.upstream.format for sets in CATALOGUE.values() for k in sets.values() if k.upstream}))
def test_another_page_is_refused_in_one_line(format: str) -> None:
    with pytest.raises(DataError, match=f"data set 'toy' is not {format} as expected") as caught:
        converted(format, "<html>\nmoved</html>", "<html>\n1\t2\t3</html>", "")
    assert "\n" not in str(caught.value)


def test_packed_files_have_no_time_and_give_their_content() -> None:
    packed = recipes.pack(b"a,target\n1,x\n")
    assert gzip.decompress(packed) == b"a,target\n1,x\n"
    assert packed[4:8] == b"\0\0\0\0"
