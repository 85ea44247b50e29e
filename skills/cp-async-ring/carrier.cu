// load, barrier, compute, barrier → a ring of STAGES slabs, filled STAGES − 1 ahead, one barrier a slab.
// Adapt: STAGES to shared memory and resident blocks; the slab's layout stays (place() as before).

+ __device__ void copyAsync(Chunk *to, const __nv_bfloat16 *from, bool inside)
+ {   // source size 0: the 16 bytes are filled with zeros and `from` is not read, but it has to be a valid address
+     asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
+                  :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 16 : 0) : "memory");
+ }

+ extern __shared__ Chunk ring[];              // launch plan: shared = "STAGES * (BM + BN) * BK * 2"
+ const auto fetch = [&](int slab) {
+     if (slab < slabs)
+         copySlab(ring + slab % STAGES * STAGE_CHUNKS, slab);   // the loop of copyAsync over this thread's chunks
+     asm volatile("cp.async.commit_group;" ::: "memory");       // empty past the end: groups are counted
+ };
+ for (int slab = 0; slab < STAGES - 1; ++slab)
+     fetch(slab);

  for (int slab = 0; slab < slabs; ++slab) {
-     load slab; __syncthreads();
+     asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
+     // After it: everyone's copies of this slab have landed, and everyone has left the slab before it …
+     __syncthreads();
+     fetch(slab + STAGES - 1);                // … whose stage is the one filled now: (slab + STAGES − 1) % STAGES
      compute(ring + slab % STAGES * STAGE_CHUNKS);
-     __syncthreads();
  }
