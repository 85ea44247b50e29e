# SPDX-License-Identifier: GPL-3.0-or-later
"""A top_k with two backends, one of them without a sort of its own."""
import os

import torch

__version__ = "1.2.3"


def top_k(rows, k, sorted=False, deterministic=False):
    (count, length), numbers = rows.shape, rows.numbers()
    if k >= length:
        raise ValueError("k is not below the row's length")
    if deterministic:
        raise RuntimeError("this device has no such kernel")
    torch.cuda.kernel(2 if os.environ["FLASHINFER_TOPK_ALGO"] == "cub" else 5)
    values, indices = torch.empty((count, k)), torch.empty((count, k), dtype=torch.int64)
    for row in range(count):
        chosen = list(range(row * length, (row + 1) * length))
        chosen.sort(key=lambda place: -numbers[place])
        for i, place in enumerate(chosen[:k]):
            values.numbers()[row * k + i], indices.numbers()[row * k + i] = numbers[place], place - row * length
    return values, indices
