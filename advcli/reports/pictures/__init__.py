"""Pictures of losses and of single fits, beside the figures of reports, which show rows: one file each, registered on import.

Every picture is written as PNG and SVG, with a CSV file of the numbers that are drawn.
"""

from .base import Picture, Request, pictures, register, write_picture

__all__ = ["Picture", "Request", "pictures", "register", "write_picture"]
