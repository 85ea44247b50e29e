"""The inverse triangular matrices of the gated delta rule, chunk by chunk."""
import numpy as np

CHUNK = 64


def run(k, g, beta):
    batches, tokens, key_heads, width = k.shape
    heads = g.shape[2]
    chunks = -(-tokens // CHUNK)

    def in_chunks(x):
        """[batches, tokens, heads, ...] to [batches, heads, chunks, CHUNK, ...], with zeros after the last token."""
        padded = np.zeros((batches, chunks * CHUNK) + x.shape[2:])
        padded[:, :tokens] = x
        return np.moveaxis(padded.reshape((batches, chunks, CHUNK) + x.shape[2:]), 3, 1)

    keys = in_chunks(k)
    products = np.repeat(keys @ np.swapaxes(keys, -1, -2), heads // key_heads, axis=1)
    sums = np.cumsum(in_chunks(g), axis=-1)
    # Only what is below the diagonal counts; above it the exponent would be positive.
    decays = np.exp(np.minimum(sums[..., :, None] - sums[..., None, :], 0.0))
    system = np.tril(in_chunks(beta)[..., None] * decays * products, -1)

    # Row by row, of all matrices at once.
    inverse = np.zeros_like(system)
    for t in range(CHUNK):
        inverse[..., t, :t] = -(system[..., t:t + 1, :t] @ inverse[..., :t, :t])[..., 0, :]
        inverse[..., t, t] = 1.0
    # A token after the last one has a unit row, which is cut off, and its column is zero above that row.
    rows = np.moveaxis(inverse, 1, 3).reshape(batches, chunks * CHUNK, heads, CHUNK)
    return rows[:, :tokens]
