// Launch: block = (32, ROWS), grid = ceil_div(R, ROWS); before: block = (128), grid = ceil_div(R, 128).
// ADAPT: ROWS (4 here) small enough that the grid has many blocks.
 constexpr int ROWS = 4;                       // rows, and so warps, a block

// One such function for each operator (max, sum, min, product, ...). Every lane gets the result.
// ADAPT: IDENTITY and combine(): -inf and fmaxf for a maximum, 0 and + for a sum.
// A butterfly of __shfl_xor_sync over all lanes may stand here in place of the shared array.
 __device__ float warpReduce(float v, volatile float *partial)
 {
     partial[threadIdx.x] = v;
     __syncwarp();                             // all partials are written
     v = IDENTITY;
     for (int i = 0; i < 32; ++i)
         v = combine(v, partial[i]);
     __syncwarp();                             // all have read before the array is used again
     return v;
 }

-    const int row = blockIdx.x * ROWS + threadIdx.x;
+    __shared__ float partial[ROWS][32];       // a slice of its own for each warp
+    const int row = blockIdx.x * ROWS + threadIdx.y, lane = threadIdx.x;
     if (row >= R) return;                     // sound: the same for the whole warp; no __syncthreads() after it
     // each reducing pass over the row: start every lane from IDENTITY
-    for (int c = 0; c < C; ++c)
+    for (int c = lane; c < C; c += 32)        // neighbouring lanes, neighbouring elements
         acc = combine(acc, f(x[c]));
+    acc = warpReduce(acc, partial[threadIdx.y]);  // before any later pass uses acc
     // each elementwise pass: only the stride changes
-    for (int c = 0; c < C; ++c)
+    for (int c = lane; c < C; c += 32)
         y[c] = g(x[c], acc);
     // ADAPT: a result of one value a row is stored by lane 0 alone.
     // ADAPT: an initial value or bias enters once, after warpReduce, not in every lane.
