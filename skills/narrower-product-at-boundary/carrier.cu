// before: the block that the boundary goes through is multiplied whole, and what lies beyond is masked
//   { float score[64]; product128(score); mask(score); weigh(score, weights); add(result, weights, 128 rows); }

// after: a warpgroup of which no row reaches the upper half of the block multiplies the lower half only, by a narrower
// instruction, in code and with arrays of its own. The step is a template over the number of sums a lane.
if (most - block * BN <= BN / 2) {      // `most`: elements that the warpgroup's last row takes part in; uniform in it
    float score[32];
    unsigned weights[16];
    firstBlock(score, weights);
} else {
    float score[64];
    unsigned weights[32];
    firstBlock(score, weights);
}
// loop over the other blocks: float score[64] declared inside, code apart from both branches

template <int N>                        // N sums a lane: 2 N columns
__device__ __forceinline__ void multiplyScores(float (&score)[N], unsigned long long a, unsigned long long b)
{
    pin(score);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 8; ++i) {       // adapt: steps of 16 along the rows, of two boxes of 64 columns
        const unsigned long long x = a + (i / 4 * A_BOX + i % 4 * 32 >> 4), y = b + (i / 4 * B_BOX + i % 4 * 32 >> 4);
        if constexpr (N == 32)
            multiplyHalf(score, x, y, i > 0);    // wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
        else
            multiplyShared(score, x, y, i > 0);  // wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    pin(score);
}
// The second product is shorter, not narrower: N / 4 steps of 16 rows instead of 8, the same instruction.
#pragma unroll
for (int i = 0; i < N / 4; ++i)         // N words of packed weights
    multiplyRegisters(result, weights + 4 * i, value + (i * 2048 >> 4), !first || i > 0);
// mask, maximum and weights take float (&)[N] likewise. Slabs are waited for and left as before, whole.
