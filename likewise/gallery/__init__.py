"""A gallery of identities: enrol, verify, identify, forget, calibrate, upgrade."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.gallery", "torch")

from likewise.gallery.answers import Identified, Verified
from likewise.gallery.calibration import Calibration
from likewise.gallery.embedding import Embedder, module_embedder
from likewise.gallery.faces import Centre, DlibFaces, face_embedder
from likewise.gallery.gallery import Gallery
from likewise.gallery.store import Erasure, Incompatible, Limits, Store

__all__ = [
    "Calibration",
    "Centre",
    "DlibFaces",
    "Embedder",
    "Erasure",
    "Gallery",
    "Identified",
    "Incompatible",
    "Limits",
    "Store",
    "Verified",
    "face_embedder",
    "module_embedder",
]
