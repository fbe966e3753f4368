"""Tables of words with heads: codes, trees, what is refused, CoNLL-U, and models that read new sentences."""

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from support.sentences import texts, written

from advcli.cli import main
from advcli.core.errors import ConfigError, DataError
from advcli.core.text_codes import BELOW, text_codes
from advcli.data import load

DATA = Path(os.environ.get("ADVCLI_DATA", "none"))
OPTIONS = {"source": "csv", "name": "words", "sequence": "s", "tokens": "word", "head": "head"}
GOOD = "s,word,tag,head\n1,the,D,2\n1,cat,N,3\n1,sat,V,0\n2,dogs,N,2\n2,bark,V,0\n"


def loaded(tmp_path, text, **more):
    path = tmp_path / "words.csv"
    path.write_text(text)
    return load({**OPTIONS, "path": str(path), **more}, tmp_path)


def test_words_and_tags_become_codes_and_heads_the_labels(tmp_path):
    data = loaded(tmp_path, GOOD)
    assert data.y.tolist() == [2, 3, 0, 2, 0]
    assert data.classes == (0, 1, 2, 3)
    assert data.groups.tolist() == [0, 0, 0, 1, 1]
    assert data.feature_names == ("word", "tag")
    assert data.X[:, 0].tolist() == text_codes(["the", "cat", "sat", "dogs", "bark"]).tolist()
    assert data.X[:, 1].tolist() == text_codes(["D", "N", "V", "N", "V"]).tolist()
    assert data.allow_small_classes
    assert not data.encoding.learns


def test_trees_with_crossing_arcs_are_read(tmp_path):
    data = loaded(tmp_path, "s,word,tag,head\n1,a,X,3\n1,b,Y,4\n1,c,X,4\n1,d,Y,0\n")
    assert data.y.tolist() == [3, 4, 4, 0]


@pytest.mark.skipif(not (DATA / "ewt_trees.csv.gz").is_file(), reason="ewt_trees is not in the folder of data")
def test_the_english_web_treebank_has_its_official_parts():
    roles = {"sequence": "sentence", "tokens": "form", "features": ["form", "upos"], "head": "head", "relation": "deprel"}
    data = load({"name": "ewt_trees", "source": "sequences", **roles}, DATA)
    assert data.X.shape == (254_818, 2)
    assert data.classes == tuple(range(160))
    train, test = data.official
    assert (len(train), len(test)) == (204_577, 25_094)
    assert [len(np.unique(data.groups[part])) for part in (train, test)] == [12_544, 2_077]
    assert len(np.unique(data.X[:, 1])) == 17


def test_columns_with_other_roles_are_no_features(tmp_path):
    text = "s,tag,word,head,rel,lemma\n1,D,the,2,det,the\n1,N,cat,0,root,cat\n"
    data = loaded(tmp_path, text, relation="rel", drop=["lemma"])
    assert data.feature_names == ("word", "tag")
    assert data.relations.tolist() == ["det", "root"]
    plain = loaded(tmp_path, text, features=["word", "tag"])
    assert plain.feature_names == ("word", "tag")
    assert plain.relations is None
    assert plain.sha256 != data.sha256


def test_a_word_without_a_relation_is_refused(tmp_path):
    text = "s,word,tag,head,rel\n1,the,D,2,det\n1,cat,N,0,\n"
    with pytest.raises(DataError, match=r"column 'rel' has no relation in row 2 .line 3.; fill it or remove the sentence"):
        loaded(tmp_path, text, relation="rel")


def test_numbers_are_read_as_they_are_written(tmp_path):
    text = "s,word,tag,head\n1,007,1,2\n1,7.0,2,0\n"
    data = loaded(tmp_path, text)
    assert data.X[:, 0].tolist() == text_codes(["007", "7.0"]).tolist()
    assert data.X[:, 1].tolist() == text_codes(["1", "2"]).tolist()


def test_codes_are_equal_for_equal_texts_alone_and_never_change():
    words = [f"word {i}" for i in range(20_000)]
    codes = text_codes(words)
    assert len(set(codes.tolist())) == 20_000
    assert (codes >= 0.0).all()
    assert (codes < BELOW).all()
    assert (codes == np.floor(codes)).all()
    assert text_codes(["the"])[0] == 0x5EDAAB6C9097  # as on every machine
    assert text_codes([]).tolist() == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1,a,X,2\n1,b,Y,7\n", "column 'head', row 2 .line 3.: the head 7 of word 2 is not in its sentence of 2 words"),
        ("1,a,X,1\n1,b,Y,0\n", "row 1 .line 2.: word 1 is its own head"),
        ("1,a,X,2\n1,b,Y,1\n1,c,Z,0\n", "row 1 .line 2.: the heads from word 1 on go round in a cycle"),
        ("1,a,X,0\n2,b,Y,0\n2,c,Z,0\n", "row 2 .line 3.: the sentence has 2 words with the head 0"),
        ("1,a,X,0\n2,b,Y,2\n2,c,Z,1\n", "row 2 .line 3.: the sentence has no word with the head 0"),
        ("1,a,X,2\n1,b,Y,1e300\n", "row 2 .line 3.: 1e.300 is no number of a word"),
        ("1,a,X,2\n1,b,Y,1.5\n", "row 2 .line 3.: 1.5 is no number of a word"),
        ("1,a,X,2\n1,b,Y,top\n", "column 'head' holds text .'top' in row 2 .line 3...* give 0 for the root"),
        ("1,a,X,2\n1,b,Y,\n", "column 'head' has no value in row 2 .line 3."),
        ("1,a,X,2\n1,,Y,0\n", "column 'word' has no text in row 2 .line 3."),
        ("1,a,X,2\n,b,Y,0\n", "column 's' names no sequence in row 2 .line 3."),
        ("1,a,X,0\n2,b,Y,0\n1,c,Z,0\n", "goes on in row 3 .line 4. after another has begun"),
    ],
)
def test_words_that_make_no_trees_are_refused(tmp_path, rows, said):
    with pytest.raises(DataError, match=said):
        loaded(tmp_path, f"s,word,tag,head\n{rows}")


def test_a_sentence_of_more_than_a_thousand_words_is_refused(tmp_path):
    rows = "".join(f"1,w,X,{i}\n" for i in range(1001))
    with pytest.raises(DataError, match=r"row 1 .line 2.: the sentence has 1001 words, more than the 1000"):
        loaded(tmp_path, f"s,word,tag,head\n{rows}")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sequence": None}, "dataset.head=head needs dataset.sequence, the column of the sentence"),
        ({"tokens": None}, "dataset.head=head needs dataset.tokens, the column of the words"),
        ({"target": "tag"}, "dataset.target=tag and dataset.head=head are both the target"),
        ({"head": None, "relation": "tag"}, "dataset.relation=tag is the relation to a head"),
        ({"cut": "equal_width", "n_classes": 3}, "is about labels, and dataset.head=head has trees"),
        ({"order": [0, 1]}, "dataset.order is about labels"),
        ({"features": ["word"]}, r"one of tags; there are word: dataset.features=\[word,TAGS\]"),
        ({"features": ["tag"]}, r"there are tag: dataset.features=\[word,TAGS\]"),
    ],
)
def test_options_that_do_not_go_with_heads_are_refused(tmp_path, options, said):
    with pytest.raises(ConfigError, match=said):
        loaded(tmp_path, GOOD, **options)


CONLLU = """# newdoc id = one
# sent_id = 1
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tP\t_\t3\tcase\t_\t_
2\tle\tle\tDET\tD\t_\t3\tdet\t_\t_
3\tchat\tchat\tNOUN\tN\t_\t0\troot\t_\t_
3.1\tnul\t_\t_\t_\t_\t_\t_\t_\t_

# sent_id = 2
1\t"\t"\tPUNCT\tF\t_\t2\tpunct\t_\t_
2\tdort\tdormir\tVERB\tV\t_\t0\troot\t_\t_
"""


def test_conll_u_is_read_as_it_is(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(CONLLU)
    data = load({"source": "csv", "name": "trees", "path": str(path), "format": "conllu"}, tmp_path)
    assert data.y.tolist() == [3, 3, 0, 2, 0]
    assert data.groups.tolist() == [0, 0, 0, 1, 1]
    assert data.relations.tolist() == ["case", "det", "root", "punct", "root"]
    assert data.feature_names == ("form", "upos")
    assert data.X[:, 0].tolist() == text_codes(["de", "le", "chat", '"', "dort"]).tolist()
    fine = load({"source": "csv", "name": "trees", "path": str(path), "format": "conllu", "features": ["form", "xpos"]}, tmp_path)
    assert fine.X[:, 1].tolist() == text_codes(["P", "D", "N", "F", "V"]).tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1\ta\tb\n", "line 1 has 3 fields, and a line of CoNLL-U has 10"),
        (CONLLU.replace("\t0\troot", "\t9\troot"), "row 3 .line 6.: the head 9 of word 3 is not in its sentence"),
        (CONLLU.replace("2\tle", "5\tle"), "line 5: the word 5 stands where word 2 of its sentence is expected"),
        (CONLLU.replace("2\tle", "²\tle"), "line 5 begins with '²', which numbers no word"),
        ("# nothing\n", "the sentence that begins in line 1 has no words"),
        (f"{CONLLU}\n# sent_id = 3\n# text =\n\n{CONLLU}", "the sentence that begins in line 13 has no words"),
    ],
)
def test_files_that_are_no_conll_u_are_refused(tmp_path, text, said):
    path = tmp_path / "trees.conllu"
    path.write_text(text)
    with pytest.raises(DataError, match=said):
        load({"source": "csv", "name": "trees", "path": str(path), "format": "conllu"}, tmp_path)


def test_a_model_parses_new_sentences_of_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.csv").write_text(written(*texts(0, sentences=40)))
    words = ["dataset=csv", "dataset.path=train.csv", "dataset.sequence=s", "dataset.tokens=word", "dataset.head=head"]
    words += ["loss=dependency_trees", "loss.hash_bits=12", "hyper.C=10", "protocol.standardise=none"]
    assert main(["fit", *words, "out=words.model"]) == 0
    X, y, groups = texts(1, sentences=6)
    lines = ["s,word,tag", *(f"{s},{word},{tag}" for (word, tag), s in zip(X, groups, strict=True)), ""]
    (tmp_path / "new.csv").write_text("\n".join(lines))
    assert main(["predict", "model=words.model", "input=new.csv", "out=heads.csv"]) == 0
    found = list(csv.DictReader(io.StringIO((tmp_path / "heads.csv").read_text())))
    heads = np.array([int(row["label"]) for row in found])
    assert len(heads) == len(y)
    for s in range(6):
        own = heads[groups == s]
        assert (own == 0).sum() == 1
        assert (own <= len(own)).all()
    capsys.readouterr()
    # a sentence that is longer than all that were learned from
    long = [f"1,w{i % 8},{'ABC'[i % 3]}" for i in range(20)]
    (tmp_path / "long.csv").write_text("\n".join(["s,word,tag", *long, ""]))
    assert main(["predict", "model=words.model", "input=long.csv", "out=long_heads.csv"]) == 0
    lines = (tmp_path / "long_heads.csv").read_text().splitlines()
    assert lines[0] == "label"
    assert sorted(map(int, lines[1:])).count(0) == 1
    assert max(map(int, lines[1:])) > 5
    for changed, said in (
        ("protocol.standardise=fold", "words and tags of csv are codes, which have no mean: give protocol.standardise=none"),
        ("loss=zero_one", "csv has heads of words: choose loss=dependency_trees"),
        ("noise=uniform", "noisy labels are for classes, csv has heads of words"),
    ):
        own = [word for word in words if not (changed == "loss=zero_one" and word.startswith("loss"))]
        assert main([*own, changed, "name=other"]) == 2
        assert said in capsys.readouterr().err
    assert main(["dataset=iris", "loss=dependency_trees", "hyper.C=1", "name=other"]) == 2
    assert "iris has none: give dataset.head=COLUMN, or another loss" in capsys.readouterr().err
