# SPDX-License-Identifier: GPL-3.0-or-later
"""The chunked forward pass of the gated delta rule, chunk after chunk, all heads of a sequence at once."""
import numpy as np

CHUNK = 64


def run(q, k, v, g, beta, a, initial_state):
    batches, length, key_heads, size = q.shape
    heads = v.shape[2]
    of_key = np.arange(heads) // (heads // key_heads)
    output = np.empty((batches, length, heads, size))
    final_state = np.array(initial_state)
    for batch in range(batches):
        state = final_state[batch]
        for start in range(0, length, CHUNK):
            rows = min(CHUNK, length - start)

            def heads_first(x):
                return x[batch, start:start + rows].swapaxes(0, 1)

            keys, queries = heads_first(k)[of_key], heads_first(q)[of_key]
            values, matrix = heads_first(v), heads_first(a)[:, :, :rows]
            gates = np.cumsum(heads_first(g), axis=1)[:, :, None]
            weights = heads_first(beta)[:, :, None]

            from_values = matrix @ (weights * values)
            from_keys = matrix @ (weights * np.exp(gates) * keys)
            updates = from_values - from_keys @ state
            # Above the diagonal the exponent may be large: it is cut before exp sees it.
            decay = np.tril(np.exp(np.tril(gates - gates.swapaxes(1, 2))))
            scores = queries @ keys.swapaxes(1, 2) * decay
            out = (queries * np.exp(gates)) @ state + scores @ updates
            output[batch, start:start + rows] = out.swapaxes(0, 1) / np.sqrt(size)
            last = gates[:, -1:]
            state = np.exp(last) * state + (keys * np.exp(last - gates)).swapaxes(1, 2) @ updates
        final_state[batch] = state
    return output, final_state
