// Before: tiles of a power of two, 2 blocks a multiprocessor, a ring of few stages; the number of blocks lies between one
// and two a multiprocessor, so that some multiprocessors have twice the work; each slab waits for its products:
//   grid = ceil_div(POSITIONS, 128); __launch_bounds__(256, 2);
//   for (slab) { wait for the slab; products; wait for the products; refill the stage that became free }

// After: 1. Choose the tile on paper: the smallest N, a multiple of 8 up to 256, with
//   groups * ceil_div(POSITIONS_PER_GROUP, N) * ceil_div(ROWS, 128) <= multiprocessors (132 on an H200),
// so that all blocks run at once, one a multiprocessor, and little of the device is idle. One step too narrow leaves a few
// blocks that run alone after all others: compute the number of blocks for each candidate before writing the kernel.
constexpr int TILE = 200;                                // 128 blocks; 192 would be 136
// 2. Alone, a block may take almost all shared memory: as many stages as a chunk of the reduction has slabs (9 here).
//   shared = SLABS * STAGE_BYTES + window bytes + 1024; __launch_bounds__(256, 1): 100 sums a thread fit in registers.
// 3. Start all copies of the chunk at once, a group a slab; products follow one another, without a wait for products,
// because no stage is refilled before the chunk ends.
for (int chunk = 0; chunk < chunks; ++chunk) {
    if (chunk > 0)
        __syncthreads();                                 // everyone has left the chunk before
    fetchWindow(chunk);                                  // part of the first group
    for (int slab = 0; slab < 9; ++slab) {
        fetchSlab(chunk * 9 + slab);                     // stage = slab
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
#pragma unroll
    for (int slab = 0; slab < 9; ++slab) {
        switch (slab) {                                  // the number is an immediate: groups that may still be missing
        case 0: waitCopies<8>(); break;                  // waitCopies<P>: asm volatile("cp.async.wait_group %0;" :: "n"(P) : "memory");
        case 1: waitCopies<7>(); break;
        case 2: waitCopies<6>(); break;
        case 3: waitCopies<5>(); break;
        case 4: waitCopies<4>(); break;
        case 5: waitCopies<3>(); break;
        case 6: waitCopies<2>(); break;
        case 7: waitCopies<1>(); break;
        default: waitCopies<0>(); break;
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");   // copies become visible to wgmma
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 64; k += 16)
            multiply(sums, rowsDescriptor(slab) + (k * 128 >> 4), columnsDescriptor(slab) + (k * 2 >> 4));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");     // once a chunk, before stages are refilled
}
// 4. A tile of an odd number of eights has a tail in an epilogue that turns 16 columns at a time:
asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" :: "r"(to), "r"(p0), "r"(p1) : "memory");
// Adapt: N in the instruction's name and its N / 2 sums; the number of slabs; the epilogue's stage lies over the slabs.
