"""Sums of the log gates within chunks of 64 tokens."""
import numpy as np

CHUNK = 64


def run(g):
    batches, tokens, heads = g.shape
    chunks = -(-tokens // CHUNK)
    padded = np.zeros((batches, chunks * CHUNK, heads))
    padded[:, :tokens] = g
    sums = np.cumsum(padded.reshape(batches, chunks, CHUNK, heads), axis=2)
    return sums.reshape(padded.shape)[:, :tokens]
