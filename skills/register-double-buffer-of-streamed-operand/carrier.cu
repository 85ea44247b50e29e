// Before: a warp brings one tile of the streamed (large) operand and one of the reused (small) operand a step; both through L1.
-    for (int line = 8 * warp; line < chunks; line += 8 * WARPS)
-        for (int chunk = 0; chunk < 8; chunk += 4) {
-            const Chunk w[2] = {ws[0][line + chunk], ws[1][line + chunk]};
-            const Chunk a[2] = {xs[0][line + chunk], xs[1][line + chunk]};
-            multiply(acc, w, a);
-        }

// After: TILES = 2 tiles of streamed rows share each fragment of the reused operand, and the next line is under way in registers.
+struct alignas(16) Chunk { unsigned words[4]; };
+// 16 bytes that nobody reads a second time: they need no place in L1. Read-only for the whole kernel (.nc).
+__device__ __forceinline__ Chunk loadOnce(const Chunk *from)
+{
+    Chunk chunk;
+    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
+        : "=r"(chunk.words[0]), "=r"(chunk.words[1]), "=r"(chunk.words[2]), "=r"(chunk.words[3]) : "l"(from));
+    return chunk;
+}
+    using Line = Chunk[2][2][2];                 // [half of the line][tile][row of the fragment]: 128 bytes of each of 4 rows a lane group
+    const auto load = [&](Line &to, int line) {  // ws[4]: the lane's rows in the two tiles
+        if (line < lines)
+#pragma unroll
+            for (int i = 0; i < 8; ++i)
+                to[i % 2][i / 4][i / 2 % 2] = loadOnce(ws[i / 2] + 8 * line + 4 * (i % 2));
+    };
+    float acc[2][2][4] = {};                     // sums of each tile
+    const auto use = [&](const Line &from, int line) {
+        if (line < lines)
+#pragma unroll
+            for (int half = 0; half < 2; ++half) {
+                // Plain loads: the reused operand stays in L1.
+                const Chunk a[2] = {xs[0][8 * line + 4 * half], xs[1][8 * line + 4 * half]};
+                multiply(acc[0], from[half][0], a);   // one fragment of the reused operand, two tiles
+                multiply(acc[1], from[half][1], a);
+            }
+    };
+    Line even, odd;                              // two names, not an index, so that both stay in registers
+    load(even, warp);
+    for (int line = warp; line < lines; line += 2 * WARPS) {
+        load(odd, line + WARPS);
+        use(even, line);
+        load(even, line + 2 * WARPS);
+        use(odd, line + WARPS);
+    }
// Adapt: halve the grid along the streamed rows, widen the epilogue to both tiles; clamp row pointers past the edge and do not store them.
