// Before: each of the block's warps owns output tiles of its own and walks the whole reduced dimension; few outputs give few warps.
-    const int first = (blockIdx.x * 4 + warp) * TILE;             // a tile a warp
-    for (int chunk = 0; chunk < chunks; chunk += STEP)
-        accumulate(acc, chunk);
-    store(acc);

// After: the block owns one tile; its WARPS warps take interleaved parts of the reduced dimension, and sums meet once in shared memory.
// Launch: block 32 * WARPS threads; as many more blocks as a block had tiles before.
+    __shared__ float parts[WARPS][TILE_ROWS][TILE_COLS + 1];      // the padding spreads the rows over the banks
+    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
+    const int first = blockIdx.x * TILE;                          // a tile a block; no warp may return early
+    float acc[SUMS] = {};
+#pragma unroll 2                                                  // loads of two lines under way in each warp
+    for (int line = 8 * warp; line < chunks; line += 8 * WARPS) { // every WARPS-th line of 128 bytes: 8 chunks of 16 bytes
+#pragma unroll
+        for (int chunk = 0; chunk < 8; chunk += STEP)             // STEP: chunks a call of accumulate takes (4 for two m16n8k16 steps)
+            accumulate(acc, line + chunk);                        // unchanged: loads and products
+    }
+
+    for (int i = 0; i < SUMS; ++i)                                // where a lane's sums lie in the tile depends on the instruction
+        parts[warp][rowOf(lane, i)][colOf(lane, i)] = acc[i];
+    __syncthreads();
+    for (int i = threadIdx.x; i < TILE_ROWS * TILE_COLS; i += 32 * WARPS) {
+        const int row = i / TILE_COLS, col = i % TILE_COLS;
+        float sum = 0.0f;
+        for (int part = 0; part < WARPS; ++part)                  // a fixed order, so that results repeat
+            sum += parts[part][row][col];
+        if (row0 + row < rows && first + col < cols)
+            out[size_t(row0 + row) * cols + first + col] = convert(sum);
+    }
// Adapt: for a maximum or a running softmax, combine parts by that operation, with its neutral element for warps without work.
