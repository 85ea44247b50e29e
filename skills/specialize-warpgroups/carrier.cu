// Everyone copies and multiplies in step → a producer and two consumers. Adapt: registers to the roles, arrivals to
// the consumers' warps, STAGES to how far the producer may run ahead.

- block = ["256"]
+ block = ["384"]                              // warpgroup 0 produces, 1 and 2 consume 64 rows each

+ __shared__ unsigned long long barriers[2 * STAGES];                  // full and empty, a pair a stage
+ initBarrier(full + 8 * stage, 1);                                    // the producer's expectBytes
+ initBarrier(empty + 8 * stage, 8);                                   // one arrival a warp of the consumers

+ if (warpgroup == 0) {
+     giveRegisters<40>();                                             // setmaxnreg.dec, by the whole warpgroup
+     if (thread == 0)
+         for (int slab = 0; slab < slabs; ++slab) {
+             const int stage = slab % STAGES;
+             waitPhase(empty + 8 * stage, slab / STAGES % 2 ^ 1);     // the parity before the first: passes at once
+             expectBytes(full + 8 * stage, STAGE_BYTES);
+             copy both boxes of the slab to the stage, counted by full + 8 * stage
+         }
+ } else {
+     takeRegisters<232>();                                            // setmaxnreg.inc
+     for (int slab = 0; slab < slabs; ++slab) {
+         waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
+         fence, products of this consumer's rows, commit
+         waitProducts<0>();                                           // this warp's reads of the stage have ended
-         __syncthreads();
-         fetch(slab + STAGES);
+         if (lane == 0)
+             arrive(empty + 8 * (slab % STAGES));
+     }
+     store this consumer's sums
+ }
// No __syncthreads() after the roles part: they never meet again as a block.
