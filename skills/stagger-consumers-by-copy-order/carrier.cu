// Before: the slabs of two consumer warpgroups (halves of the output) are copied in turn, so that both run in step, end
// together, and store together while the tensor cores are idle; and a fence stands before the products of each slab.
//   for (int i = 0; i < 2 * SLABS; ++i) { const int half = i % 2, slab = i / 2; copy(half * SLABS + slab); }
//   for (slab) { wait for the slab; wgmma.fence.sync.aligned; 4 products; wgmma.commit_group.sync.aligned; }

// After, the copier: all slabs of the first half, then those of the second; an mbarrier for each slab.
for (int i = 0; i < 2 * SLABS; ++i) {
    const int half = i / SLABS, slab = i % SLABS, slot = half * SLABS + slab;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(full + 8 * slot), "r"(SLAB_BYTES) : "memory");
    copySlab(stages + slot * SLAB_BYTES, half, slab, full + 8 * slot);      // TMA, completes on this barrier
}

// After, a consumer: it now multiplies alone for a while, and has to keep the tensor cores busy by itself.
// So wait for several slabs first, then one fence and one long chain (here 3 slabs, 12 products).
#pragma unroll
for (int group = 0; group < SLABS / CHAIN; ++group) {
    const int slot = half * SLABS + CHAIN * group;
    for (int s = 0; s < CHAIN; ++s)
        waitPhase(full + 8 * (slot + s), parity);        // loop over mbarrier.try_wait.parity.shared::cta.b64
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int s = 0; s < CHAIN; ++s) {
        const unsigned long long rows = describe(stages + (slot + s) * SLAB_BYTES);
        const unsigned long long columns = describe(sharedOperand(CHAIN * group + s));   // both halves read this one
#pragma unroll
        for (int k = 0; k < 64; k += 16)
            multiply(sums, rows + (k * 128 >> 4), columns + (k * 2 >> 4));
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Address work of the epilogue stands here, while products run.
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

// The epilogue meets only its own warpgroup, and stages sums over its own slabs, never over those of the other half,
// whose products are still running.
asm volatile("bar.sync %0, 128;" :: "r"(half + 1) : "memory");
stageSums(stages + half * SLABS * SLAB_BYTES, sums);
asm volatile("bar.sync %0, 128;" :: "r"(half + 1) : "memory");
// then wide stores of this half
// Adapt: the number of halves, CHAIN (it divides SLABS), the widths of the products.
