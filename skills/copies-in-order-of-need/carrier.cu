// Before: all slabs of the large operand are asked for first, then the small operand, by the same warps:
//   if (warp < SLABS && lane == 0) copy slab warp of the large operand (TMA);
//   all threads copy rows of the small operand (cp.async);
// The small operand, without which no product can begin, waits behind all bytes of the large one.

// After: copies come in the order in which they were asked for. So ask for a few slabs of the large operand, then for all of
// the small one, then for the other slabs, as soon as the small one's first rows have landed.
constexpr int EARLY = 3;                                 // slabs that are asked for before the other operand
constexpr int COPIERS = 256;                             // threads that copy rows; the warps after them ask for slabs
const auto fetchSlabs = [&](int chunk, int from, int end) {
    if (thread >= COPIERS && lane == 0) {                // 4 warps ask, 8 begin with rows at once
#pragma unroll 1
        for (int slab = warp - COPIERS / 32; slab < end; slab += (THREADS - COPIERS) / 32) {
            if (slab < from)
                continue;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                         :: "r"(slabFull + 8 * slab), "r"(SLAB_BYTES) : "memory");
            asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%0], [%1, {%2, %3, %4}], [%5];"
                         :: "r"(slabs + slab * SLAB_BYTES), "l"(&map), "r"(column), "r"(chunk * 64), "r"(slab),
                            "r"(slabFull + 8 * slab) : "memory");        // one box here; a box for each part of a slab
        }
    }
    __syncwarp();
};
const auto copyRows = [&](int end, int chunk) {
    if (thread >= COPIERS)
        return;
    for (; row < end; row += COPIERS / 8)
        copyChunk(columnBase + row * 128, source(row, chunk), true);    // cp.async.cg.shared.global [%0], [%1], 16, %2;
};
// Start: barriers of slabs (1 arrival each) are set up by the lanes that ask for them and fenced, those of rows
// (COPIERS arrivals each) by thread 0.
fetchSlabs(0, 0, EARLY);
copyRows(FIRST_ROWS, 0);                                 // these wait for no barrier: before the block meets
__syncthreads();                                         // barriers of rows are there
copyOtherRows(0);                                        // each part ends with, in the copiers only:
//   asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull + 8 * part) : "memory");
// ... then in each chunk of the reduction:
waitPhase(rowsFull + 8 * group, parity);                 // the first rows that this warpgroup needs
fetchSlabs(chunk, EARLY, SLABS);                         // the other slabs now, behind the rows
// products of slab 0, 1, ...: each waits for slabFull + 8 * slab
// Adapt: EARLY is as many slabs as are multiplied until the first of the others can land; every slab has a place of its own.
