"""Chains: Viterbi's algorithm in transitions a second, and certified fits on wnut17_ner against CRFsuite. CPU time.

CRFsuite is not a dependency: install python-crfsuite, and its rows appear. It gets the same attributes and the same sentences; lbfgs with
c2 = 0.1 runs to its own end, the passive-aggressive method for 20 passes. Ours is certified to a relative gap of 1e-2 at lambda = 1e-3.
"""

import importlib.util
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Row, interleaved, repeated

from advcli import metrics
from advcli.core.compiled import kernels
from advcli.learners.structured import ChainClassifier

LAMBDA, GAP = 1e-3, 1e-2
PEERS = {"lbfgs": {"c2": 0.1}, "pa": {"max_iterations": 20}}


def viterbi(options):
    """Return transitions a second at 5, 13 and 40 states, 20 positions."""
    rows, n = [], options.size(20_000, 400)
    for K in (5, 13, 40):
        random = np.random.default_rng(K)
        U, A, start = random.normal(size=(n, K)), random.normal(size=(K, K)), np.arange(0, n + 1, 20)
        labels, value = np.empty(n, np.int16), np.empty(n // 20)
        seconds = repeated(lambda U=U, A=A, start=start, labels=labels, value=value: kernels.chain.viterbi(U, A, start, labels, value))
        goals = (0.5, 2.0) if K == 13 else (None, None)
        rows.append(Row(f"viterbi, K = {K}", (n - n // 20) * K * K / seconds / 1e9, *goals, detail="1e9 transitions a second"))
    return rows


def _cpu(call):
    def timed():
        began = time.process_time()
        call()
        return float(time.process_time() - began)

    return timed


def fits(options):
    """Return CPU seconds of CRFsuite over ours, and F-measures of entities beside them."""
    folder = os.environ.get("ADVCLI_DATA")
    if not folder or not (Path(folder) / "wnut17_ner.csv.gz").exists():
        print("wnut17_ner is not here: set ADVCLI_DATA")
        return []
    from advcli.data import load

    data = load({"name": "wnut17_ner", "source": "sequences", "allow_small_classes": True}, Path(folder))
    train, test = data.official
    train = train[data.groups[train] < options.size(10**9, 200)]
    facts = {"labels": data.classes, "sequences": data.groups[test]}
    score = {}

    def judge(name, codes):
        score[name] = (
            f"entity F1 {metrics.compute('entity_f1', data.y[test], codes, 13, facts):.3f}, accuracy {np.mean(codes == data.y[test]):.4f}"
        )

    def ours(surrogate):
        def fit():
            # codes of all 13 tags: a part may lack one
            model = ChainClassifier(surrogate=surrogate, lam=LAMBDA, tol=GAP, n_classes=13)
            model.fit(data.X[train], data.y[train], groups=data.groups[train])
            judge(surrogate, model.predict_codes(data.X[test], data.groups[test]))
            score[surrogate] += f", gap {model.certificate_.relative_gap:.1e}"

        return fit

    calls = {name: _cpu(ours(name)) for name in ("margin", "maxmin")}
    if importlib.util.find_spec("pycrfsuite") is not None:
        calls |= {name: _crfsuite(name, data, train, test, judge) for name in PEERS}
    seconds = interleaved(calls, options.repeats)
    rows = [
        Row(
            "maxmin / margin",
            seconds["maxmin"] / seconds["margin"],
            10.0,
            3.0,
            larger=False,
            detail=f"{seconds['maxmin']:.2f} s, {score['maxmin']}",
        )
    ]
    for name in PEERS.keys() & seconds.keys():
        goals = (1.0, 3.0) if name == "lbfgs" else (None, None)
        detail = f"{seconds[name]:.2f} s, {score[name]}; ours {seconds['margin']:.2f} s, {score['margin']}"
        rows.append(Row(f"CRFsuite {name} / margin", seconds[name] / seconds["margin"], *goals, detail=detail))
    return rows


def _crfsuite(name, data, train, test, judge):
    """Return a call that trains CRFsuite on the same attributes and returns its CPU seconds without handing them over."""
    import pycrfsuite

    names = np.array(data.feature_names, dtype=object)

    def sentences(rows):
        ends = np.flatnonzero(np.append(data.groups[rows][1:] != data.groups[rows][:-1], True)) + 1
        for part in np.split(rows, ends[:-1]):
            pointer = data.X.indptr
            yield [list(names[data.X.indices[pointer[t] : pointer[t + 1]]]) for t in part], [str(code) for code in data.y[part]]

    def call():
        trainer = pycrfsuite.Trainer(algorithm=name, params=PEERS[name], verbose=False)
        for items, labels in sentences(train):
            trainer.append(items, labels)
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            trainer.train(f"{folder}/model")
            seconds = float(time.process_time() - began)
            tagger = pycrfsuite.Tagger()
            tagger.open(f"{folder}/model")
            judge(name, np.array([int(code) for items, _ in sentences(test) for code in tagger.tag(items)]))
            tagger.close()
        return seconds

    return call
