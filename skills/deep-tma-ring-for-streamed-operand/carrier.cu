// Launch plan: a box is 64 columns of 16 bits (128 bytes) wide, swizzled, so that ldmatrix reads it without conflicts.
//   [[tensormap]] name = "tm_w"  tensor = "weight"  box = [64, 64]  swizzle = "128B"  l2_promotion = "256B"
//   [[tensormap]] name = "tm_x"  tensor = "x"       box = [16, 64]  swizzle = "128B"  l2_promotion = "256B"
//   block = ["288"]   shared = "STAGES * (64 + 16) * 128 * 2 + 1024"   grid: a block a multiprocessor, in one wave
// Adapt: rows of a box (BN, BM), BK columns a slab, and STAGES so that the ring nearly fills the shared memory.
-    Line even, odd;                       // what is under way was held in registers, and asked for by every warp
-    load(even, warp);
-    for (int line = warp; line < lines; line += 2 * WARPS) { load(odd, line + WARPS); use(even, line); ... }
+constexpr int BN = 64, BM = 16, BK = 128, WARPS = BK / 16;
+constexpr unsigned W_BYTES = BN * 128, X_BYTES = BM * 128, STAGE_BYTES = 2 * (W_BYTES + X_BYTES);
+extern __shared__ unsigned char dynamicShared[];
+__shared__ unsigned long long barriers[2 * STAGES];
+const unsigned base = unsigned(__cvta_generic_to_shared(dynamicShared));
+const unsigned ring = (base + 1023) & ~1023u;                       // a swizzled box starts at a multiple of 1024
+const unsigned full = unsigned(__cvta_generic_to_shared(barriers)), empty = full + 8 * STAGES;
+const auto fetch = [&](int slab) {                                  // few large boxes, one barrier for all of them
+    const unsigned to = ring + slab % STAGES * STAGE_BYTES, barrier = full + 8 * (slab % STAGES);
+    expectBytes(barrier, STAGE_BYTES);                              // boxes over the edge count whole, filled with zeros
+    copyBox(to, mapWeight, slab * BK, col0, barrier);
+    copyBox(to + W_BYTES, mapWeight, slab * BK + 64, col0, barrier);
+    copyBox(to + 2 * W_BYTES, mapX, slab * BK, row0, barrier);
+    copyBox(to + 2 * W_BYTES + X_BYTES, mapX, slab * BK + 64, row0, barrier);
+};
+const bool producer = warp == WARPS && lane == 0;                   // a warp more than those that multiply
+if (producer) {
+    for (int stage = 0; stage < STAGES; ++stage) {
+        initBarrier(full + 8 * stage, 1);
+        initBarrier(empty + 8 * stage, WARPS);
+    }
+    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
+    for (int slab = 0; slab < min(STAGES, slabs); ++slab)
+        fetch(slab);                                                // before the others are even there
+}
+__syncthreads();
+if (producer) {
+    for (int slab = STAGES; slab < slabs; ++slab) {
+        waitPhase(empty + 8 * (slab % STAGES), slab / STAGES % 2 ^ 1);
+        fetch(slab);
+    }
+} else if (warp < WARPS) {
+    const int chunk = warp % 4 * 2;                                 // this warp's 16 columns of each slab, all rows
+    const unsigned wRow = warp / 4 * W_BYTES + place(lane % 16, chunk + lane / 16);
+    const unsigned xRow = 2 * W_BYTES + warp / 4 * X_BYTES + place(lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
+    for (int slab = 0; slab < slabs; ++slab) {
+        const unsigned stage = ring + slab % STAGES * STAGE_BYTES;
+        waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
+        unsigned w[4][4], a[4];
+        loadMatrices(a, stage + xRow);
+        for (int i = 0; i < 4; ++i) loadMatrices(w[i], stage + wRow + i * 16 * 128);   // unrolled
+        __syncwarp();                                               // all lanes have read: give the slab back at once,
+        if (lane == 0) arrive(empty + 8 * (slab % STAGES));         // the products need registers only
+        for (int i = 0; i < 4; ++i) {                               // unrolled; mma.sync m16n8k16, or what the kernel has
+            multiply(acc[i][0], w[i][0], w[i][1], w[i][2], w[i][3], a[0], a[1]);
+            multiply(acc[i][1], w[i][0], w[i][1], w[i][2], w[i][3], a[2], a[3]);
+        }
+    }
+}
+__syncthreads();                                                    // the ring rests: the warps' sums may meet in it
