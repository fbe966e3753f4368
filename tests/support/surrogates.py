"""Every registered loss at a given k, the points of its set R(y), and scores that have broken kernels before."""

import numpy as np
from support.registered import canonical_losses, examples, with_kinks

from advcli.core.compiled import kernels
from advcli.losses import AdversarialLoss, loss_class, make_loss

SIZES = (1, 2, 3, 7, 8, 9, 16, 17, 33, 1000)


canonical_names = canonical_losses


def compiled_names():
    return [name for name in with_kinks(canonical_names()) if loss_class(name).kernel in kernels.families]


def options(name, k):
    """Option sets to try; those that leave the compiled kernels on purpose are left out."""
    return [each for each in examples(name, k) if each.get("backend") != "highs"]


def surrogates(name, k):
    return [make_loss(name, k, **each) for each in options(name, k)]


def sizes(name):
    """Sizes worth the time: the NumPy tier of a general matrix solves one linear program per row in plain Python, and matrices
    that come as lists of a million numbers take longer to read than to use."""
    listed = any("matrix" in each for each in options(name, 2))
    return SIZES[:-1] if listed or loss_class(name).kernel == "general" else SIZES


def rows(name, k):
    """How many rows to try at this size."""
    if loss_class(name).kernel == "general":
        return 12 if k > 10 else 40
    return 12 if k >= 1000 else 60


def score_rows(k, n, seed=0):
    """Scores (n, k): several scales, ties, constants, one label far ahead, ordinal shapes."""
    random = np.random.default_rng([seed, k, n])
    labels = np.arange(k) / max(1, k - 1)
    kinds = [
        lambda: random.normal(size=k),
        lambda: 0.1 * random.normal(size=k),
        lambda: 10.0 * random.normal(size=k),
        lambda: random.integers(-1, 2, size=k).astype(float),
        lambda: np.full(k, random.normal()),
        lambda: np.where(np.arange(k) == random.integers(k), 1.0, 0.2 * random.normal(size=k)),
        lambda: -(k**2) / 3.0 * (labels - random.uniform()) ** 2,
        lambda: np.sort(random.normal(size=k))[::-1].copy(),
    ]
    F = np.stack([kinds[i % len(kinds)]() for i in range(n)])
    return F, random.integers(k, size=n).astype(np.intp)


def dual_points(loss, n, seed=0):
    """Return R (n, k) inside conv R(y) and its labels: vertices, mixtures of a few vertices, and 0 (the label itself)."""
    random = np.random.default_rng([seed, loss.n_classes, n])
    k = loss.n_classes
    y = random.integers(k, size=n).astype(np.intp)
    scale = np.ptp(loss.matrix) + 1.0 if isinstance(loss, AdversarialLoss) and loss.name not in ("zero_one", "abstain") else 1.0
    corners = [loss.oracle_reference(scale * random.normal(size=(n, k)), y).R for _ in range(3)]
    weights = random.dirichlet(np.ones(3), size=n)
    weights[::4] = [1.0, 0.0, 0.0]
    R = np.einsum("ni,ink->nk", weights, np.array(corners))
    R[1::7] = 0.0
    return R, y


def distance_outside(loss, R, y):
    """Return how far R (n, k) lies outside conv R(y): what other tests hold to the hull of its corners."""
    return float(loss.infeasibility(R, y).max(initial=0.0))


def mismatch(loss, F, R, y):
    """Fenchel-Young gaps S(f, y) - c(r) - f.r >= 0 by the NumPy tier; zero exactly where r maximises c(r) + f.r."""
    top = F.max(axis=1, keepdims=True)
    F = F - top  # r sums to zero: a common level only costs digits
    return loss.oracle_reference(F, y).value - loss.offset_reference(R, y) - np.einsum("ij,ij->i", F, R)
