// Before: one rank-one update of the state S (rows x columns) a step, by scalar arithmetic.
//   for (int t = 0; t < steps; ++t) {
//       S *= exp(g[t]);                          // decay by a log gate
//       u = b[t] * (v[t] - x[t] . S);            // the update asks the state
//       S += outer(x[t], u);
//       out[t] = scale * (y[t] . S);
//   }
//
// After: C steps at once. Within a chunk, G[t] = g[0] + .. + g[t]; S is the state before the chunk.
//   (I + L) U = diag(b) (V - diag(exp G) X S),   L[t][s] = b[t] exp(G[t] - G[s]) x[t] . x[s]   for s < t, else 0
//   out[t]    = scale * (exp(G[t]) y[t] S + sum over s <= t of exp(G[t] - G[s]) (y[t] . x[s]) U[s])
//   S         = exp(G[C-1]) S + sum over s of exp(G[C-1] - G[s]) x[s] U[s]^T
// adapt: where the update does not ask the state, L = 0, and the solution is diag(b).
// Always take exp(G[t] - G[s]) with s <= t, never exp(G[t]) * exp(-G[s]): the second overflows.

// Launch 1, grid (chunks, heads, batch): what needs no state, for all chunks at once.
//   xx = X X^T, yx = Y X^T by mma.sync
for (each element (t, s) of this thread's fragments) {
    const float decay = s <= t ? expf(sums[t] - sums[s]) : 0.0f;
    scores[t][s] = scale * decay * yx(t, s);                      // bf16, to the workspace
    system[t][s] = s < t ? b[t] * decay * xx(t, s) : 0.0f;        // float, in shared memory
}
__syncthreads();
if (thread < C)                                                   // a column of the inverse a thread, from the top down
    for (int t = 0; t < C; ++t) {
        float sum = t == thread ? 1.0f : 0.0f;
        for (int s = 0; s < t; ++s)
            sum -= system[t][s] * inverse[s][thread];
        inverse[t][thread] = sum;
    }
__syncthreads();
// solution[t][s] = inverse[t][s] * b[s], as bf16 to the workspace; factors = exp(G[t]) and exp(G[C-1] - G[t])

// Launch 2, grid (column blocks, heads, batch): from chunk to chunk. A warp owns 16 columns of S as rows of S^T:
// the accumulators of mma are S^T, and the result of a product has the layout of the left operand of the next.
float state[ROWS / 8][4];                                         // S^T in float, kept for the whole loop
for (int chunk = 0; chunk < chunks; ++chunk) {
    // copy X, Y, V, solution, scores and the factors of the chunk to shared memory (zeros past the last step)
    // updates = S^T X^T, out = S^T Y^T:
    for (int step = 0; step < ROWS / 16; ++step) {
        unsigned left[4];
        packOperand(left, state[2 * step], state[2 * step + 1]);  // bf16 copies of the float state
        // for each 16 steps of the chunk: ldmatrix the right operand, then
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(b0), "r"(b1));
    }
    // updates = V^T - exp(G) * updates;  out *= scale * exp(G)   (elementwise, in the fragments)
    // rest = packOperand(updates);       updates = rest * solution^T   (only blocks with step <= n are not zero)
    // rest = packOperand(updates);       out += rest * scores^T        (only blocks with step <= n are not zero)
    // store out for the valid steps
    // state *= exp(G[C-1]);  rest = packOperand(updates * exp(G[C-1] - G));  state += rest * X  (ldmatrix with .trans)
    __syncthreads();                                              // the next chunk overwrites the tiles
}
