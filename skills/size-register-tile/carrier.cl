// The code does not change: a tunable does. What follows is how to choose it.

    [[tunable]]
    name = "MR"                      # rows of c that a work-item computes
-   default = 4
-   values = [2, 4, 8]
+   default = 12                     # adapt: see the budget below
+   values = [4, 6, 8, 12, 16]

// Budget, in vector registers of the target (AVX-512: 32; AVX2: 16, and a float16 takes two of them):
//
//     MR · (W / register width)     sums
//   + 1 · (W / register width)      the row of b of this step
//   + 1                             a broadcast element of a, unless it folds into the multiply-add
//   <= registers
//
// Lower bound: independent sums >= multiply-adds in flight (latency × issue rate), or the chains wait for themselves.
// Loads a multiply-add: (MR + 1) / MR, so that growing past a dozen rows brings little and spills cost much.
// Count the work-items that are left, (M / MR) · (N / W), against the cores and the work-group's size.

    float16 sum[MR];
#pragma unroll                       // both loops over i unrolled, or the sums live in memory
    for (int i = 0; i < MR; ++i)
        sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
        float16 bk = vload16(0, b + k * N);
#pragma unroll
        for (int i = 0; i < MR; ++i)
            sum[i] += a[i * K + k] * bk;
    }
