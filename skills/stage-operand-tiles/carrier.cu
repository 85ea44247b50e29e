// One element of y a thread, both operands from global memory → tiles of both operands in shared memory.
// Adapt: TILE to threads and shared memory, PITCH to the element's size, the layout (here both K-major).

+ // An odd number of 4-byte words a row: 32 rows, 32 different banks. For bf16, two elements of padding.
+ constexpr int PITCH = TILE + 2;
+ __shared__ __nv_bfloat16 xs[TILE][PITCH], ws[TILE][PITCH];

  float sum = 0.0f;
- for (int k = 0; k < K; ++k)
-     sum += float(x[size_t(row) * K + k]) * float(weight[size_t(col) * K + k]);
+ for (int k0 = 0; k0 < K; k0 += TILE) {
+     // Lanes run along k, the contiguous axis, for both operands: coalesced, whatever axis they own in y.
+     // Zeros past the edges add nothing to a sum: the inner loop needs no guard, and all threads reach the barriers.
+     const int k = k0 + tx;
+     xs[ty][tx] = row0 + ty < M && k < K ? x[size_t(row0 + ty) * K + k] : __nv_bfloat16(0.0f);
+     ws[ty][tx] = col0 + ty < N && k < K ? weight[size_t(col0 + ty) * K + k] : __nv_bfloat16(0.0f);
+     __syncthreads();                         // before the tile is read
+     for (int kk = 0; kk < TILE; ++kk)
+         sum += __bfloat162float(xs[ty][kk]) * __bfloat162float(ws[tx][kk]);
+     __syncthreads();                         // before it is overwritten
+ }
- if (row >= M || col >= N) return;            // no early exit: it would leave a barrier one thread short
+ if (row < M && col < N)
      y[size_t(row) * N + col] = __float2bfloat16(sum);
