// One output a work-item → MR rows of one column (OpenCL on a CPU); an R × C patch a thread on a GPU, below.
// Adapt: the name and height of the block, what its outputs share, the grid, the edges.

//  launch plan
-   grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
+   grid = ["ceil_div(N, 16)", "ceil_div(M, 16 * MR)"]      // the grid shrinks by the block's size
+   [[tunable]]  name = "MR"  default = 4  values = [2, 4, 8]

    int col = get_global_id(0);
-   int row = get_global_id(1);
+   int row = get_global_id(1) * MR;
    if (row >= M || col >= N)
        return;
+   row = min(row, M - MR);     // edge: slide back and store the neighbour's values again. Needs M >= MR (a second
+                               // launch takes smaller M), and stores that are final: no `c += …`

-   float sum = 0.0f;
+   float sum[MR];              // indexed by constants only, after unrolling: MR registers, MR independent chains
+   #pragma unroll
+   for (int i = 0; i < MR; ++i)
+       sum[i] = 0.0f;
    for (int k = 0; k < K; ++k) {
-       sum += a[row * K + k] * b[k * N + col];
+       float bk = b[k * N + col];                           // loaded once for MR rows
+       #pragma unroll
+       for (int i = 0; i < MR; ++i)
+           sum[i] += a[(row + i) * K + k] * bk;
    }

// The same on a GPU, operands in shared memory, blockDim 16 × 16: a thread owns rows ty + 16·i and columns tx + 16·j.
// The stride of 16 and a pitch of an odd number of 4-byte words keep the lanes of a warp in different banks.
//
//      for (int kk = 0; kk < BK; ++kk) {
//          float a[TM], b[TN];                              // TM + TN shared loads …
//          for (int i = 0; i < TM; ++i) a[i] = xs[ty + 16 * i][kk];
//          for (int j = 0; j < TN; ++j) b[j] = ws[tx + 16 * j][kk];
//          for (int i = 0; i < TM; ++i)
//              for (int j = 0; j < TN; ++j)
//                  acc[i][j] += a[i] * b[j];                // … for TM · TN products
//      }
