"""What the package's registries hold, for tests that run over all of it."""

from advcli.losses import loss_class, loss_names, make_loss


def in_package(cls):
    """Whether a class is the package's own; tests of users' files may have registered others before."""
    return cls.__module__.startswith("advcli.")


def plain_losses():
    """Losses that need no options: those that do refuse to be made without."""
    found = []
    for name in sorted({loss_class(each).name for each in loss_names()}):
        try:
            make_loss(name, 3)
        except ValueError:
            continue
        found.append(name)
    return found
