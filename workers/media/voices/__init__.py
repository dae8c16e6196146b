"""Embeddings of voices: vectors of length 1 that are near to each other if the same person speaks."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

_LEAST_LENGTH = 1e-6  # of a vector that has a direction


def unit_rows(rows: Floats) -> Floats:
    """The rows with length 1: shape (rows, values). Those without a direction, or not
    finite, get the same one.
    """
    clean = np.where(np.isfinite(rows).all(1, keepdims=True), rows, np.float32(0))
    lengths = np.linalg.norm(clean, axis=1, keepdims=True)
    same = np.float32(rows.shape[1] ** -0.5)
    return np.where(lengths > _LEAST_LENGTH, clean / np.maximum(lengths, _LEAST_LENGTH), same)
