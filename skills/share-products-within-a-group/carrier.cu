// Before: a block per member; the members of a group load the same operands and compute the same products, and differ
// only in an elementwise factor.
//   grid = (tiles, members, batch)
//   load(x of member / ratio); load(y of member / ratio);
//   xx = X X^T; yx = Y X^T;                         // the same for all members of the group
//   result = factor(member) * xx; ...

// After: a block per group. The products are computed once, stay in registers, and a loop over the members applies
// their factors.
// adapt: grid = (groups, tiles, batch); groups in the fastest dimension
const int group = blockIdx.x, groups = gridDim.x, tile = blockIdx.y;
const int ratio = MEMBERS / groups;                 // members of a group
__shared__ float sums[4][C], factors[4][C];         // the cheap inputs of four members at a time, a warp each

startCopies(x, y);                                  // cp.async of the common operands
float xx[8][4] = {}, yx[8][4] = {};                 // the common products, kept for the whole loop
for (int i = 0; i < ratio; ++i) {
    const int member = group * ratio + i;
    if (i % 4 == 0) {                               // uniform over the block
        if (i + warp < ratio)
            prepareFactors(sums[warp], factors[warp], member + warp); // all warps at work, under the copies at first
        asm volatile("cp.async.wait_group 0;" ::: "memory");
        __syncthreads();
    }
    if (i == 0) {
        // xx += ..., yx += ...: mma.sync over the common operands; a triangular result only up to its diagonal:
        //   if (n <= warp) { loadMatrices(...); multiply(...); }
        __syncthreads();                            // the operands' tiles become room for results
    }
    const float *sum = sums[i % 4], *factor = factors[i % 4];
    // elementwise, in the fragments: result = f(sum, factor) * xx; written to the room in shared memory
    __syncthreads();
    // results leave the staged tile coalesced, 16 bytes a thread:
    for (int j = threadIdx.x; j < C * C / 8; j += 128)
        *reinterpret_cast<uint4 *>(to + 8 * j) = *reinterpret_cast<const uint4 *>(staged + place(j / 8, j % 8));
    // ... the rest of the member's work ...
    __syncthreads();                                // before the next member takes the room
}
