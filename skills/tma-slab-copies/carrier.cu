// cp.async by every thread → one thread asks the copy engine for boxes. Adapt: box sides, STAGES, element size.

+ [[tensormap]]  name = "tm_x"  tensor = "x"  box = [128, 64]  swizzle = "128B"  l2_promotion = "256B"
- args = ["x", "weight", …]        shared = "STAGES * SLAB"
+ args = ["tm_x", "tm_weight", …]  shared = "STAGES * SLAB + 1024"      // room to align

+ // 64 bf16 = 128 bytes: the box's inner side is the swizzle's width. The engine keeps chunk c of row r at c ^ (r % 8):
+ // readers that swizzled so already stay as they are. A swizzled box starts at a multiple of 1024 bytes.
+ const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
+ __shared__ unsigned long long barriers[STAGES];
+ if (thread == 0) {
+     for (int stage = 0; stage < STAGES; ++stage)
+         initBarrier(full + 8 * stage, 1);                              // one arrival: expectBytes below
+     asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); // for the engine to see them
+ }
+ __syncthreads();

  const auto fetch = [&](int slab) {
+     if (thread == 0 && slab < slabs) {
+         const int stage = slab % STAGES;
+         expectBytes(full + 8 * stage, STAGE_BYTES);                    // all boxes, clipped ones at full size
+         copyBox(ring + stage * STAGE_BYTES, mapX, slab * BK, row0, full + 8 * stage);
+         copyBox(ring + stage * STAGE_BYTES + X_BYTES, mapWeight, slab * BK, col0, full + 8 * stage);
+     }
  };
  for (int slab = 0; slab < slabs; ++slab) {
-     waitCopies<STAGES - 2>();
+     waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);          // the parity flips when the ring wraps
      __syncthreads();                                                   // everyone has left the slab before
      fetch(slab + STAGES - 1);                                          // … whose stage may be filled
