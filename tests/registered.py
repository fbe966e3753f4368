"""What the package's registries hold, for tests that run over all of it."""

from advcli.losses import loss_class, loss_names, make_loss


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
