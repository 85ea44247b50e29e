// Before: every element is ranked against all of its row, N * N comparisons, to find out whether it is among the K.
//   for (int i = 0; i < N; ++i) rank += all[i] > mine || (all[i] == mine && i < column);
//   if (rank < K) { out[rank] = mine; position[rank] = column; }

// After: one block a row, 32 counting passes over N keys. A bit of the threshold is set when at least K keys are no
// smaller then. Adapt: the map to unsigned keys, and the bits of the type; keep the keys in registers if they fit.
__shared__ unsigned counts[32];     // keys at or above the trial of each bit: a counter of its own for each
__shared__ unsigned above, ties;
if (tid < 32)
    counts[tid] = 0;
if (tid == 0)
    above = ties = 0;
__syncthreads();

unsigned threshold = 0;
for (int bit = 31; bit >= 0; --bit) {
    const unsigned trial = threshold | 1u << bit;
    unsigned count = 0;
    for (int column = tid; column < N; column += THREADS)
        count += keyOf(values[column]) >= trial;
    count = __reduce_add_sync(0xffffffff, count);
    if (lane == 0)
        atomicAdd(&counts[bit], count);     // one atomic a warp
    __syncthreads();                        // one barrier a bit, since the next bit has another counter
    if (counts[bit] >= K)
        threshold = trial;                  // the same in all threads
}

// threshold is now the K-th largest key. What is larger is taken; of the equal ones as many as are missing.
for (int column = tid; column < N; column += THREADS)
    if (keyOf(values[column]) > threshold) {
        const unsigned place = atomicAdd(&above, 1);
        out[place] = values[column];
        position[place] = column;
    }
__syncthreads();
for (int column = tid; column < N; column += THREADS)
    if (keyOf(values[column]) == threshold) {
        const unsigned place = above + atomicAdd(&ties, 1);
        if (place < K) {                    // never without this test
            out[place] = values[column];
            position[place] = column;
        }
    }
