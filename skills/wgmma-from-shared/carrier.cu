// ldmatrix and mma.sync → wgmma on the swizzled slab. sm_90a. Adapt: N of the instruction (a multiple of 8, up to 256)
// to the sums a thread can hold: 64 × N / 128. Two warpgroups, 64 rows each, for a tile of 128 × 256.

- __launch_bounds__(256, 2)
+ __launch_bounds__(256, 1)                    // 128 sums a thread; the ring takes the multiprocessor's shared memory

+ // K-major rows of 128 swizzled bytes: start address, 1024 bytes from one group of 8 rows to the next, swizzle code 1.
+ __device__ unsigned long long describe(unsigned address)
+ {
+     return (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
+ }

+ float acc[128] = {};
  for (int slab = 0; slab < slabs; ++slab) {
      waitPhase(full + 8 * (slab % STAGES), slab / STAGES % 2);
+     const unsigned xs = stage + warpgroup * 64 * BK * 2, ws = stage + X_BYTES;
+     asm volatile("wgmma.fence.sync.aligned;" ::: "memory");            // orders earlier accesses to acc
+ #pragma unroll
+     for (int k = 0; k < BK; k += 16)         // 16 numbers of K: 32 bytes further in the swizzled row
+         multiply(acc, describe(xs + k * 2), describe(ws + k * 2));     // wgmma.mma_async … m64n256k16.f32.bf16.bf16
+     asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
+     asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");     // products read shared memory until here
+     __syncthreads();                         // both warpgroups have
+     fetch(slab + STAGES);                    // only now may this very stage be filled again
+     // Lookahead: with wait_group 1 it is the stage of the slab *before* that is free: fetch(slab + STAGES − 1).
  }
  // Sums: in every 8 columns the layout of a 16 × 8 tile of mma.sync, one warp for 16 of the 64 rows.
