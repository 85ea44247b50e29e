// Stores from the accumulator layout → stmatrix into swizzled boxes → TMA stores. Adapt: box (64 bf16 = 128 bytes wide),
// the number of boxes a warpgroup, named barriers that nothing else uses.

+ [[tensormap]]  name = "tm_y"  tensor = "y"  box = [64, 64]  swizzle = "128B"
- shared = "RING + 1024"
+ shared = "RING + 2 * 2 * 64 * 64 * 2 + 1024"                         // two warpgroups, two boxes each

+ const int row = thread / 32 * 16 + lane % 16;                        // of this warpgroup's 64; thread is within it
+ #pragma unroll
+ for (int col = 0; col < BN; col += 64) {
+     const unsigned box = boxes + col / 64 % 2 * BOX_BYTES;           // two boxes take turns
+     if (thread == 0)
+         waitStoresRead<1>();                                         // cp.async.bulk.wait_group.read: this box is free
+     syncWarpgroup();                                                 // bar.sync id, 128
+ #pragma unroll
+     for (int chunk = 0; chunk < 8; chunk += 2) {                     // 16 columns: four 8 × 8 matrices
+         const float *d = acc + col / 2 + 4 * chunk;
+         const unsigned packed[4] = {pack(d[0], d[1]), pack(d[2], d[3]), pack(d[4], d[5]), pack(d[6], d[7])};
+         storeMatrices(box + row * 128 + ((chunk + lane / 16) ^ (row % 8)) * 16, packed);   // stmatrix.x4
+     }
+     // By every thread that wrote, before the barrier: the engine reads by another path. Tests may pass without it.
+     asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
+     syncWarpgroup();
+     if (thread == 0)
+         storeBox(mapY, col0 + col, row0, box);                       // bulk_group store, commit; clipped at the edges
+ }
+ if (thread == 0)
+     waitStoresRead<0>();                                             // shared memory goes away with the block
