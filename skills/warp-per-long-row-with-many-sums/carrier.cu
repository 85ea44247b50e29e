// Few short-side rows (queries) meet many long-side rows (the large operand); each output is a dot product along LENGTH.
// Before: a thread owns one output and walks both rows alone; lanes of a warp read rows LENGTH apart.
-    const int query = blockIdx.y * 8 + threadIdx.y, row = blockIdx.x * 32 + threadIdx.x;
-    float sum = 0.0f;
-    for (int chunk = 0; chunk < LENGTH / 8; ++chunk)
-        sum += dot(queries[size_t(query) * (LENGTH / 8) + chunk], large[size_t(row) * (LENGTH / 8) + chunk]);
-    out[size_t(query) * rows + row] = sum;

// After: a warp owns one row of the large operand and QUERIES outputs of it; its lanes lie along the reduced dimension.
// 256 threads, 8 warps a block; grid: ceil_div(rows, 8) x ceil_div(queries_total, QUERIES).
+    constexpr int QUERIES = 16;                               // sums a lane keeps in registers
+    const int lane = threadIdx.x % 32;
+    const int row = blockIdx.x * 8 + threadIdx.x / 32, query0 = blockIdx.y * QUERIES;
+    if (row >= rows)
+        return;                                               // same for the whole warp, so that the shuffles below stay sound
+    const int chunks = LENGTH / 8;                            // a chunk: 16 bytes
+    float sums[QUERIES] = {};
+    for (int chunk = lane; chunk < chunks; chunk += 32) {     // the warp reads 512 neighbouring bytes
+        const Chunk b = large[size_t(row) * chunks + chunk];  // fetched once for all QUERIES outputs
+#pragma unroll                                                // constant indices keep sums[] in registers
+        for (int q = 0; q < QUERIES; ++q) {
+            // Queries past the last repeat it; they are not stored.
+            const Chunk a = queries[size_t(min(query0 + q, queries_total - 1)) * chunks + chunk];
+#pragma unroll
+            for (int i = 0; i < 4; ++i) {                     // two bf16 a word; adapt to the element type
+                sums[q] += low_half(a.words[i]) * low_half(b.words[i]);
+                sums[q] += high_half(a.words[i]) * high_half(b.words[i]);
+            }
+        }
+    }
+#pragma unroll
+    for (int q = 0; q < QUERIES; ++q) {
+        for (int step = 16; step > 0; step /= 2)              // the lanes' parts meet once, at the end
+            sums[q] += __shfl_xor_sync(~0u, sums[q], step);
+        if (lane == 0 && query0 + q < queries_total)
+            out[size_t(query0 + q) * rows + row] = sums[q];
+    }
