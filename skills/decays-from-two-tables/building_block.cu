constexpr int TILE = 64; // tokens a tile, in four blocks of 16

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// What the log gates and weights of a tile say about its decays.
struct __align__(16) DecayTables {
    float sums[TILE];     // of the log gates, to base 2
    float weighted[TILE]; // the same with the logarithm of the weight
    float rows[TILE];     // the weight and the decay since the first token of the own block of 16
    float columns[96];    // the decay to the first token of block 1, of 16 tokens; of block 2, of 32; of block 3, of 48
};

// By one warp. Tokens after the last valid one neither decay nor weigh.
__device__ __forceinline__ void fillDecayTables(DecayTables &to, const float *gates, const float *weights, size_t pitch,
                                                int valid)
{
    const int lane = threadIdx.x % 32, t = 2 * lane;
    const float toBase2 = 1.44269504f;
    const float even = t < valid ? toBase2 * gates[t * pitch] : 0.0f;
    const float odd = t + 1 < valid ? toBase2 * gates[(t + 1) * pitch] : 0.0f;
    const float weight0 = t < valid ? weights[t * pitch] : 0.0f, weight1 = t + 1 < valid ? weights[(t + 1) * pitch] : 0.0f;
    float sum = even + odd;
    for (int step = 1; step < 32; step *= 2) {
        const float other = __shfl_up_sync(~0u, sum, step);
        sum += lane >= step ? other : 0.0f;
    }
    const float before = sum - odd; // up to the even one
    const float first = __shfl_sync(~0u, before, lane / 8 * 8);
    *reinterpret_cast<float2 *>(to.sums + t) = make_float2(before, sum);
    *reinterpret_cast<float2 *>(to.weighted + t) = make_float2(before + __log2f(weight0), sum + __log2f(weight1));
    *reinterpret_cast<float2 *>(to.rows + t) = make_float2(weight0 * exp2Fast(before - first), weight1 * exp2Fast(sum - first));
#pragma unroll
    for (int block = 1; block < 4; ++block) {
        const float later = __shfl_sync(~0u, before, block * 8);
        if (lane < block * 8)
            *reinterpret_cast<float2 *>(to.columns + block * (block - 1) * 8 + t) =
                make_float2(exp2Fast(later - before), exp2Fast(later - sum));
    }
}
