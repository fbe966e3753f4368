"""A hierarchy in the forms of other packages is the same list of edges."""

import numpy as np
import pandas as pd
import pytest

from advcli import HierarchicalClassifier
from advcli.core.errors import ConfigError, DataError
from advcli.models import read, save

EDGES = [("animal", "mammal"), ("animal", "bird"), ("mammal", "cat"), ("mammal", "dog"), ("bird", "hawk"), ("animal", "fish")]
LEVELS = [["animal", "mammal", "cat"], ["animal", "mammal", "dog"], ["animal", "bird", "hawk"], ["animal", "fish", ""]]
LEAVES = np.array(["cat", "dog", "hawk", "fish"])


def forms():
    yield "dict", {"animal": ["mammal", "bird", "fish"], "mammal": ("cat", "dog"), "bird": ["hawk"]}
    yield "frame", pd.DataFrame({"note": 1, "child": [child for _, child in EDGES], "parent": [parent for parent, _ in EDGES]})
    yield "levels", np.array(LEVELS + LEVELS)
    yield "objects", np.array([[name or None for name in row] for row in LEVELS], dtype=object)
    yield "frame of levels", pd.DataFrame(LEVELS).replace("", np.nan)


@pytest.fixture(scope="module")
def drawn():
    random = np.random.default_rng(2)
    codes = random.integers(4, size=60)
    return random.normal(size=(60, 2)) + 2.0 * np.array([[0, 0], [0, 1], [2, 0], [2, 2]])[codes], LEAVES[codes]


def same(hierarchy, drawn, tmp_path):
    X, y = drawn
    fitted = HierarchicalClassifier(hierarchy).fit(X, y)
    plain = HierarchicalClassifier(EDGES).fit(X, y)
    assert np.allclose(fitted.potentials(X), plain.potentials(X), atol=1e-2)  # nodes may be numbered otherwise
    assert set(fitted.labels()[0].edges()) == set(EDGES)
    save(fitted, tmp_path / "tree.model")
    assert np.array_equal(read(tmp_path / "tree.model").predict(X), fitted.predict(X))


@pytest.mark.parametrize("hierarchy", [form for _, form in forms()], ids=[name for name, _ in forms()])
def test_every_form_is_a_list_of_edges(hierarchy, drawn, tmp_path):
    same(hierarchy, drawn, tmp_path)


def test_a_graph_of_networkx(drawn, tmp_path):
    networkx = pytest.importorskip("networkx")
    same(networkx.DiGraph(EDGES), drawn, tmp_path)
    with pytest.raises(ConfigError, match="DiGraph"):
        HierarchicalClassifier(networkx.Graph(EDGES)).fit(*drawn)


def test_a_frame_of_polars(drawn, tmp_path):
    polars = pytest.importorskip("polars")
    same(polars.DataFrame({"parent": [parent for parent, _ in EDGES], "child": [child for _, child in EDGES]}), drawn, tmp_path)


def test_a_dict_of_names_is_refused(drawn):
    with pytest.raises(ConfigError, match="HierarchicalClassifier: hierarchy is a dict and must be one of lists"):
        HierarchicalClassifier({"cat": "mammal"}).fit(*drawn)


def test_levels_must_have_the_leaves(drawn):
    with pytest.raises((ConfigError, DataError), match="fish"):
        HierarchicalClassifier(np.array(LEVELS[:3])).fit(*drawn)
