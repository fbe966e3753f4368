"""What the package's registries hold, for tests that run over all of it."""

from advcli.losses import examples_of, loss_class, loss_names, make_loss


def in_package(cls):
    """Whether a class is the package's own; tests of users' files may have registered others before."""
    return cls.__module__.startswith("advcli.")


def canonical_losses():
    """Names of the package's losses, without aliases."""
    return sorted({loss_class(name).name for name in loss_names() if in_package(loss_class(name))})


def of_rows(kind):
    """Whether a learner takes any rows with any labels: a parser takes words with heads alone (test_learners_dependency_parser.py)."""
    return not getattr(kind, "of_trees", False)


def with_kinks(names):
    """The losses that have pieces and a block step, which smooth ones do not have."""
    return [name for name in names if not loss_class(name).estimates({})]


def examples(name, k):
    """Option sets of a loss to try with k classes, its own ``examples``."""
    return examples_of(loss_class(name), k)


def plain_losses():
    """Losses that need no options: those that do refuse to be made without."""
    found = []
    for name in canonical_losses():
        try:
            make_loss(name, 3)
        except ValueError:
            continue
        found.append(name)
    return found
