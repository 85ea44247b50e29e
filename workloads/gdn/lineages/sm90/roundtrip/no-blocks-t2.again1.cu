/*klineage
surface = "cuda"

[[workspace]]
name = "records"
dtype = "bf16"
shape = ["B", "HV", "ceil_div(T, 64)", "8448"]
init = "poison"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "35328"
args = ["tm_q", "tm_k", "g", "beta", "records", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "records", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the sums of the log gates within a chunk and S the state before it,
//   (I + L) U = diag(beta) (V - diag(exp G) K S),   L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s]   for s < t
//   out[t]    = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// prepare: (I + L)^-1 diag(beta), the scores, exp(G[t]) and exp(G[63] - G[t]) of all chunks. walk: the rest, in order.

#include <cuda_bf16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// A record: the solution, 64 rows of 128 bytes whose 16-byte chunk c lies at c ^ (row % 8); the scores likewise; two
// times 64 floats of decays.
constexpr int TILE_BYTES = 8192, RECORD_BYTES = 2 * TILE_BYTES + 512;

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred complete;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, complete;\n"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int d, int head, int token, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(barrier)
                 : "memory");
}

// What is read or written once is evicted first, so that the records and the shared operands stay in L2.
constexpr unsigned long long EVICT_FIRST = 0x12F0000000000000ull;

__device__ __forceinline__ void copyBoxOnce(unsigned to, const TensorMap *map, int d, int head, int token, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(map)), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(barrier),
                    "l"(EVICT_FIRST)
                 : "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap *map, int d, int head, int token, int batch, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2, %3, %4}], [%5], %6;"
                 :: "l"(reinterpret_cast<unsigned long long>(map)), "r"(d), "r"(head), "r"(token), "r"(batch), "r"(from),
                    "l"(EVICT_FIRST)
                 : "memory");
}

__device__ __forceinline__ void storeBytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float roundTf32(float x)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return __uint_as_float(bits);
}

__device__ __forceinline__ void loadMatrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ float2 loadPair(unsigned address)
{
    float2 v;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(address) : "memory");
    return v;
}

// ---------------------------------------------------------------------------------------------------------------------
// prepare: a block of four warps takes the value heads that share q and k, for one chunk.

constexpr int PITCH = 68;                                  // floats a row of the system

// d (16 x 8) += a (16 x 16) * b (16 x 8), bf16
__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d (16 x 8) += a (16 x 8) * b (8 x 8), tf32
__device__ __forceinline__ void multiplyTf32(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
                   "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
}

// A tile of 64 rows of 128 bf16 lies as two boxes of 64 columns.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + ((chunk % 8) ^ (row % 8)) * 16;
}

// The inverses of the 16 x 16 blocks of the diagonal in place and, times beta, in the solution. A lane takes a column; a
// warp takes the two blocks of one half of the diagonal.
__device__ __forceinline__ void invertDiagonal(float *m, unsigned char *solution, const float *factor, int half, int lane)
{
    const int column = lane % 16, first = (half * 2 + lane / 16) * 16;
    float *block = m + first * (PITCH + 1);
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(block + i * PITCH + k);
            sum -= row.x * x[k];
            if (k + 1 < i)
                sum -= row.y * x[k + 1];
            if (k + 2 < i)
                sum -= row.z * x[k + 2];
            if (k + 3 < i)
                sum -= row.w * x[k + 3];
        }
        x[i] = sum;
    }
    __syncwarp();                                          // all lanes have read the block
    const float b = factor[first + column];
    const int chunk = first / 8 + column / 8;
    unsigned char *to = solution + first * 128 + column % 8 * 2;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        block[i * PITCH + column] = roundTf32(x[i]);
        *reinterpret_cast<__nv_bfloat16 *>(to + i * 128 + (chunk ^ (i % 8)) * 16) = __float2bfloat16(x[i] * b);
    }
}

// [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1]: 16 x 16 of -C^-1 B A^-1, at (row, column), where A^-1, B and C^-1 have SIDE
// rows and lie in m already; row and column are 0 or 16. Blocks that are zero are not read. The numbers of a sum are taken
// in the order 2c, 2c + 1.
template <int SIDE>
__device__ __forceinline__ void mergeBlocks(float (&r)[2][4], const float *m, int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
    const float *lower = m + SIDE * PITCH;                 // B, and SIDE columns further C^-1
    float p[SIDE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIDE / 8; ++k)
        if (k < 2 || row >= 16) {
            const float2 top = *reinterpret_cast<const float2 *>(lower + SIDE + (row + g) * PITCH + 8 * k + 2 * c);
            const float2 bottom = *reinterpret_cast<const float2 *>(lower + SIDE + (row + g + 8) * PITCH + 8 * k + 2 * c);
            const float *b = lower + (8 * k + 2 * c) * PITCH + g;
#pragma unroll
            for (int n = 0; n < SIDE / 8; ++n)
                if (n >= 2 || column == 0)
                    multiplyTf32(p[n], top.x, bottom.x, top.y, bottom.y, b[8 * n], b[8 * n + PITCH]);
        }
#pragma unroll
    for (int k = 0; k < SIDE / 8; ++k)
        if (k >= 2 || column == 0) {
            const float a0 = roundTf32(-p[k][0]), a1 = roundTf32(-p[k][2]), a2 = roundTf32(-p[k][1]), a3 = roundTf32(-p[k][3]);
            const float *b = m + (8 * k + 2 * c) * PITCH + column + g;
#pragma unroll
            for (int n = 0; n < 2; ++n)
                multiplyTf32(r[n], a0, a1, a2, a3, b[8 * n], b[8 * n + PITCH]);
        }
}

__device__ __forceinline__ void storeBlock(float *to, const float (&r)[2][4], int lane)
{
    const int g = lane / 4, c = lane % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        *reinterpret_cast<float2 *>(to + g * PITCH + 8 * n + 2 * c) = make_float2(roundTf32(r[n][0]), roundTf32(r[n][1]));
        *reinterpret_cast<float2 *>(to + (g + 8) * PITCH + 8 * n + 2 * c) = make_float2(roundTf32(r[n][2]), roundTf32(r[n][3]));
    }
}

// 16 x 16 of the solution at (row, column): the block of the inverse times beta of its columns.
__device__ __forceinline__ void storeSolution(unsigned char *solution, const float (&r)[2][4], const float *factor,
                                              int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        const float2 b = *reinterpret_cast<const float2 *>(factor + column + 8 * n + 2 * c);
        unsigned char *to = solution + place(row + g, column / 8 + n) + 4 * c;
        *reinterpret_cast<unsigned *>(to) = pack(r[n][0] * b.x, r[n][1] * b.y);
        *reinterpret_cast<unsigned *>(to + 1024) = pack(r[n][2] * b.x, r[n][3] * b.y);      // eight rows further
    }
}

// 16 x 16 of the scores, of which this lane has rows row and row + 8. On the diagonal, only columns up to the row count.
__device__ __forceinline__ void storeScores(unsigned char *scores, const float (&x)[2][4], const float *sum,
                                            int row, int firstColumn, bool diagonal, int lane)
{
    const int rowOf = lane / 4, columnOf = lane % 4 * 2;
    const float sum0 = sum[row], sum1 = sum[row + 8];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float2 from = *reinterpret_cast<const float2 *>(sum + firstColumn + half * 8 + columnOf);
        float v0 = power(sum0 - from.x) * x[half][0], v1 = power(sum0 - from.y) * x[half][1];
        float v2 = power(sum1 - from.x) * x[half][2], v3 = power(sum1 - from.y) * x[half][3];
        if (diagonal) {
            if (half == 0) {
                v0 = columnOf <= rowOf ? v0 : 0.0f;
                v1 = columnOf < rowOf ? v1 : 0.0f;
            } else {
                v0 = 0.0f;
                v1 = 0.0f;
                v2 = columnOf <= rowOf ? v2 : 0.0f;
                v3 = columnOf < rowOf ? v3 : 0.0f;
            }
        }
        unsigned char *to = scores + place(row, firstColumn / 8 + half) + columnOf * 2;
        *reinterpret_cast<unsigned *>(to) = pack(v0, v1);
        *reinterpret_cast<unsigned *>(to + 1024) = pack(v2, v3);
    }
}

// What stands on the diagonal's block of the system: ones on the diagonal, zeros above it.
__device__ __forceinline__ float unitLower(float v, int column, int row)
{
    return column < row ? v : column == row ? 1.0f : 0.0f;
}

// The record of a head is put together in shared memory, in place of the keys, and leaves as one copy; the system lies
// behind it. The chunks are taken from the last to the first, so that walk finds its first records in L2.
extern "C" __global__ void __launch_bounds__(128, 4)
prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g, const float *beta,
        unsigned char *records, int T, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char dynamicShared[];
    __shared__ __align__(16) float sums[4][64];            // of the log gates, for exponentials of base 2; four heads
    __shared__ __align__(16) float betas[4][64];
    __shared__ __align__(8) unsigned long long barrierStorage;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int rowOf = lane / 4, columnOf = lane % 4 * 2;
    const int group = blockIdx.x, groups = gridDim.x, chunks = gridDim.y, batch = blockIdx.z;
    const int chunk = chunks - 1 - int(blockIdx.y);
    const int ratio = HV / groups, token0 = chunk * 64;

    const unsigned base = sharedAddress(dynamicShared), aligned = (base + 1023) & ~1023u;
    unsigned char *region = dynamicShared + (aligned - base);
    const unsigned keys = aligned, queries = aligned + 16384, barrier = sharedAddress(&barrierStorage);
    unsigned char *solution = region, *scores = region + TILE_BYTES;
    float *decays = reinterpret_cast<float *>(region + 2 * TILE_BYTES);
    float *m = reinterpret_cast<float *>(region + RECORD_BYTES);       // 64 rows of PITCH floats

    if (thread == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 32768);
        copyBox(keys, &tm_k, 0, group, token0, batch, barrier);
        copyBox(queries, &tm_q, 0, group, token0, batch, barrier);
        copyBox(keys + 8192, &tm_k, 64, group, token0, batch, barrier);
        copyBox(queries + 8192, &tm_q, 64, group, token0, batch, barrier);
    }
    __syncwarp();

    // The gates of four heads, a warp each.
    const auto loadGates = [&](int member) {
        if (member + warp < ratio) {
            const int t = token0 + 2 * lane;
            const size_t at = (size_t(batch) * T + t) * HV + group * ratio + member + warp;
            const float g0 = t < T ? g[at] : 0.0f, g1 = t + 1 < T ? g[at + HV] : 0.0f;
            const float b0 = t < T ? beta[at] : 0.0f, b1 = t + 1 < T ? beta[at + HV] : 0.0f;
            float sum = g0 + g1;
#pragma unroll
            for (int offset = 1; offset < 32; offset *= 2) {
                const float other = __shfl_up_sync(~0u, sum, offset);
                if (lane >= offset)
                    sum += other;
            }
            float before = __shfl_up_sync(~0u, sum, 1);
            if (lane == 0)
                before = 0.0f;
            constexpr float LOG2E = 1.4426950408889634f;
            *reinterpret_cast<float2 *>(&sums[warp][2 * lane]) = make_float2((before + g0) * LOG2E, sum * LOG2E);
            *reinterpret_cast<float2 *>(&betas[warp][2 * lane]) = make_float2(b0, b1);
        }
    };
    loadGates(0);
    __syncthreads();

    // Warp w takes row w of the 4 x 4 blocks of k k^T and row 3 - w of scale q k^T, up to the diagonal: five blocks. Block b
    // is of the first where b <= w; block 0 always is, block 4, on the diagonal of the other, never.
    float blocks[5][2][4] = {};
    const int firstRow = warp * 16 + rowOf, otherRow = (3 - warp) * 16 + rowOf;
    {
        const unsigned leftAt = keys + place(warp * 16 + lane % 16, lane / 16);
        const unsigned otherAt = queries + place((3 - warp) * 16 + lane % 16, lane / 16);
        const unsigned rightAt = keys + place(lane / 16 * 8 + lane % 8, lane / 8 % 2);
        unsigned from[5];
#pragma unroll
        for (int b = 0; b < 5; ++b)
            from[b] = (b == 0 ? 0 : b < 4 && b <= warp ? b : b - warp - 1) * 2048;

        waitPhase(barrier, 0);
#pragma unroll
        for (int step = 0; step < 8; ++step) {
            const unsigned turn = step % 4 * 32, side = step / 4 * 8192;
            unsigned left[4], other[4];
            loadMatrices(left, (leftAt ^ turn) + side);
            loadMatrices(other, (otherAt ^ turn) + side);
            const unsigned rightStep = (rightAt ^ turn) + side;
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const bool ofFirst = b == 0 || (b < 4 && b <= warp);
                unsigned right[4], a[4];
                loadMatrices(right, rightStep + from[b]);
#pragma unroll
                for (int i = 0; i < 4; ++i)
                    a[i] = ofFirst ? left[i] : other[i];
                multiply(blocks[b][0], a, right[0], right[1]);
                multiply(blocks[b][1], a, right[2], right[3]);
            }
        }
#pragma unroll
        for (int b = 1; b < 5; ++b) {
            const float by = b < 4 && b <= warp ? 1.0f : scale;
#pragma unroll
            for (int i = 0; i < 8; ++i)
                blocks[b][i / 4][i % 4] *= by;
        }
    }
    __syncthreads();                                       // the tiles become room for results

    // Above the blocks of the diagonal both tiles stay zero for all heads.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int j = i * 128 + thread, row = j / 8, column = (j % 8) ^ (row % 8);
        if (column / 2 > row / 16) {
            *reinterpret_cast<uint4 *>(solution + j * 16) = make_uint4(0, 0, 0, 0);
            *reinterpret_cast<uint4 *>(scores + j * 16) = make_uint4(0, 0, 0, 0);
        }
    }

#pragma unroll 1
    for (int member = 0; member < ratio; ++member) {
        const int slot = member % 4;
        if (slot == 0 && member > 0) {
            loadGates(member);
            __syncthreads();
        }
        const float *sum = sums[slot], *factor = betas[slot];

        {
            const float sum0 = sum[firstRow], sum1 = sum[firstRow + 8];
            const float beta0 = factor[firstRow], beta1 = factor[firstRow + 8];
#pragma unroll
            for (int b = 0; b < 4; ++b)
                if (b <= warp) {
#pragma unroll
                    for (int half = 0; half < 2; ++half) {
                        const int column = b * 16 + half * 8 + columnOf;
                        const float2 from = *reinterpret_cast<const float2 *>(sum + column);
                        float v0 = roundTf32(power(sum0 - from.x) * (beta0 * blocks[b][half][0]));
                        float v1 = roundTf32(power(sum0 - from.y) * (beta0 * blocks[b][half][1]));
                        float v2 = roundTf32(power(sum1 - from.x) * (beta1 * blocks[b][half][2]));
                        float v3 = roundTf32(power(sum1 - from.y) * (beta1 * blocks[b][half][3]));
                        if (b == warp) {
                            if (half == 0) {
                                v0 = unitLower(v0, columnOf, rowOf);
                                v1 = unitLower(v1, columnOf + 1, rowOf);
                            } else {
                                v0 = 0.0f;
                                v1 = 0.0f;
                                v2 = unitLower(v2, columnOf, rowOf);
                                v3 = unitLower(v3, columnOf + 1, rowOf);
                            }
                        }
                        *reinterpret_cast<float2 *>(m + firstRow * PITCH + column) = make_float2(v0, v1);
                        *reinterpret_cast<float2 *>(m + (firstRow + 8) * PITCH + column) = make_float2(v2, v3);
                    }
                }
        }
        if (thread == 0)                                   // the record of the head before has been read
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncwarp();
        __syncthreads();

        if (warp >= 2) {                                   // they have the fewest scores
            const int half = warp - 2;
            invertDiagonal(m, solution, factor, half, lane);
            __syncwarp();
            float r[2][4] = {};
            mergeBlocks<16>(r, m + half * 32 * (PITCH + 1), 0, 0, lane);
            __syncwarp();                                  // all lanes have read B
            storeBlock(m + (half * 32 + 16) * PITCH + half * 32, r, lane);
            storeSolution(solution, r, factor, half * 32 + 16, half * 32, lane);
        } else {
            decays[thread] = power(sum[thread]);
            decays[64 + thread] = power(sum[63] - sum[thread]);
        }
#pragma unroll
        for (int b = 1; b < 4; ++b)
            if (b > warp)
                storeScores(scores, blocks[b], sum, otherRow, (b - warp - 1) * 16, false, lane);
        storeScores(scores, blocks[4], sum, otherRow, (3 - warp) * 16, true, lane);
        __syncthreads();

        {
            float r[2][4] = {};
            mergeBlocks<32>(r, m, warp / 2 * 16, warp % 2 * 16, lane);
            storeSolution(solution, r, factor, 32 + warp / 2 * 16, warp % 2 * 16, lane);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();                                   // the record is complete, and the system has been read
        if (thread == 0) {
            storeBytes(records + ((size_t(batch) * HV + group * ratio + member) * chunks + chunk) * RECORD_BYTES, aligned, RECORD_BYTES);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();
    }
    if (thread == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// ---------------------------------------------------------------------------------------------------------------------
// walk: a block takes 64 columns of the values of a head, from chunk to chunk. Four warps are a warpgroup that keeps the
// state transposed, 64 columns of values by 128 keys, as the result of wgmma; the fifth warp asks for the copies.

constexpr int STAGES = 3;
constexpr int KEYS = 0, QUERIES = 16384, VALUES = 32768, RECORD = 40960;            // a stage; tiles at multiples of 1024
constexpr int SOLUTION = RECORD, SCORES = RECORD + TILE_BYTES, DECAYS = RECORD + 2 * TILE_BYTES;
constexpr int STAGE_BYTES = 58368, COPIED_BYTES = RECORD + RECORD_BYTES;
constexpr int OUTPUTS = STAGES * STAGE_BYTES, OUTPUT_BYTES = 16384;                 // two buffers of two boxes of 32 columns

// Descriptors without the address: 128-byte swizzle, 1024 bytes from eight rows to the next. Across: rows are summed
// over, and 8192 bytes lead from 64 columns to the next 64.
constexpr unsigned long long ALONG = 1ull << 16 | 64ull << 32 | 1ull << 62;
constexpr unsigned long long ACROSS = 512ull << 16 | 64ull << 32 | 1ull << 62;

#define SUMS8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(d, i) SUMS8(d, i), SUMS8(d, i + 8), SUMS8(d, i + 16), SUMS8(d, i + 24)

// d (64 x 64) = or += a (64 x 16) * b^T, the rows of b are the columns of d.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d (64 x 128) += a (64 x 16) * b, the 16 rows of b are summed over.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(d, 0), SUMS32(d, 32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

__device__ __forceinline__ void beginProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

// The compiler may not move what it does to these registers to the other side.
template <int N>
__device__ __forceinline__ void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N>
__device__ __forceinline__ void hold(unsigned (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("" : "+r"(x[i][j]) :: "memory");
}

__device__ __forceinline__ void writeOutputs(unsigned buffer, unsigned even, unsigned odd, const float (&out)[32])
{
#pragma unroll
    for (int n = 0; n < 8; ++n) {                          // the second row of a fragment is 8 columns further: chunk ^ 2
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + even + n * 1024), "f"(out[4 * n]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + odd + n * 1024), "f"(out[4 * n + 1]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + (even ^ 32) + n * 1024), "f"(out[4 * n + 2]) : "memory");
        asm volatile("st.shared.f32 [%0], %1;" :: "r"(buffer + (odd ^ 32) + n * 1024), "f"(out[4 * n + 3]) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(160, 1)
walk(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const __grid_constant__ TensorMap tm_v,
     const __grid_constant__ TensorMap tm_out, const unsigned char *records, const float *initial_state, float *final_state,
     int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char dynamicShared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32, warp = __shfl_sync(~0u, thread / 32, 0);
    const int column0 = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z, chunks = (T + 63) / 64;
    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);             // a lane of each of the four warps
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int group = head / (HV / HQ);
            const unsigned char *record = records + (size_t(batch) * HV + head) * chunks * RECORD_BYTES;
            int stage = 0;
            unsigned parity = 1;                           // of the phase before: the stages are free at first
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned at = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                if (chunk >= STAGES)
                    waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, COPIED_BYTES);
                copyBox(at + KEYS, &tm_k, 0, group, chunk * 64, batch, barrier);
                copyBox(at + KEYS + 8192, &tm_k, 64, group, chunk * 64, batch, barrier);
                copyBoxOnce(at + VALUES, &tm_v, column0, head, chunk * 64, batch, barrier);
                copyBox(at + QUERIES, &tm_q, 0, group, chunk * 64, batch, barrier);
                copyBox(at + QUERIES + 8192, &tm_q, 64, group, chunk * 64, batch, barrier);
                if (chunk == 0) {                          // prepare has ended, its records are visible, to the engine too
                    asm volatile("griddepcontrol.wait;" ::: "memory");
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyBytes(at + RECORD, record + size_t(chunk) * RECORD_BYTES, RECORD_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    const int g = lane / 4, c = lane % 4;
    const size_t first = (size_t(batch) * HV + head) * 128 * 128 + column0 + warp * 16 + g;

    // Number i of a thread: column g + i % 4 / 2 * 8 of the warp's 16, key (or token) i / 4 * 8 + 2 * c + i % 2.
    float state[64], d[32], out[32];
    unsigned left[8][4], rest[4][4], update[4][4];
#pragma unroll
    for (int i = 0; i < 64; ++i)
        state[i] = initial_state[first + (i / 4 * 8 + 2 * c + i % 2) * 128 + i % 4 / 2 * 8];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        d[i] = 0.0f;
        out[i] = 0.0f;
    }

    // Offsets of this thread: in a box of outputs for tokens 2 c and 2 c + 1, and of its row of the values for ldmatrix.
    const int outChunk = warp % 2 * 4 + g / 4;
    const unsigned even = warp / 2 * 8192 + 2 * c * 128 + (outChunk ^ (2 * c)) * 16 + g % 4 * 4;
    const unsigned odd = warp / 2 * 8192 + (2 * c + 1) * 128 + (outChunk ^ (2 * c + 1)) * 16 + g % 4 * 4;
    const unsigned valueRow = VALUES + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned at = ring + stage * STAGE_BYTES;
        waitPhase(full + 8 * stage, parity);
        const unsigned tiles = __shfl_sync(~0u, (at & 0x3ffff) >> 4, 0);

        // d = S^T K^T
        hold(left);
        hold(d);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(d, left[step], ALONG + (tiles + (KEYS + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // In its shadow: the outputs of the chunk before leave. Two buffers take turns; the barrier says that the tile is
        // written, and that the engine has read the other buffer.
        const unsigned buffer = ring + OUTPUTS + chunk % 2 * OUTPUT_BYTES;
        writeOutputs(buffer, even, odd, out);
        if (thread == 0)
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncwarp();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (thread == 0 && chunk > 0) {
            storeBox(&tm_out, column0, head, (chunk - 1) * 64, batch, buffer);
            storeBox(&tm_out, column0 + 32, head, (chunk - 1) * 64, batch, buffer + 8192);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();

        // out = S^T Q^T
        hold(out);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (QUERIES + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
        float2 decay[8];                                   // exp(G[t])
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadTransposed(values[n], at + valueRow + n * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            decay[n] = loadPair(at + DECAYS + (n * 8 + 2 * c) * 4);
        const float whole = loadPair(at + DECAYS + 62 * 4).y;

        waitProducts<1>();
        hold(d);
#pragma unroll
        for (int i = 0; i < 16; ++i) {                     // V^T - exp(G) S^T K^T
            const unsigned v = values[i / 4][i % 4];
            rest[i / 4][i % 4] = pack(__uint_as_float(v << 16) - decay[i / 2].x * d[2 * i],
                                      __uint_as_float(v & 0xffff0000u) - decay[i / 2].y * d[2 * i + 1]);
        }

        // d = U^T
        hold(rest);
        hold(d);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(d, rest[step], ALONG + (tiles + (SOLUTION + step * 32) / 16), step > 0);
        commitProducts();

        float2 remaining[8];                               // exp(G[63] - G[t])
#pragma unroll
        for (int n = 0; n < 8; ++n)
            remaining[n] = loadPair(at + DECAYS + 256 + (n * 8 + 2 * c) * 4);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;

        waitProducts<0>();
        hold(left);
        hold(rest);
        hold(out);
        hold(d);
#pragma unroll
        for (int i = 0; i < 16; ++i)
            update[i / 4][i % 4] = pack(d[2 * i] * remaining[i / 2].x, d[2 * i + 1] * remaining[i / 2].y);

        // S^T = exp(G[63]) S^T + (exp(G[63] - G) U)^T K
        hold(update);
        hold(state);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (tiles + (KEYS + step * 2048) / 16));
        commitProducts();

#pragma unroll
        for (int i = 0; i < 16; ++i) {
            rest[i / 4][i % 4] = pack(d[2 * i], d[2 * i + 1]);
            out[2 * i] *= decay[i / 2].x * scale;
            out[2 * i + 1] *= decay[i / 2].y * scale;
        }

        // out = scale exp(G) S^T Q^T + U^T scores^T
        hold(rest);
        hold(out);
        beginProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES + step * 32) / 16), 1);
        commitProducts();

        waitProducts<1>();
        hold(state);
        hold(update);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        waitProducts<0>();
        hold(rest);
        hold(out);

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        __syncwarp();
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

    // The outputs of the last chunk: the buffer whose turn it is was read before the last barrier.
    const unsigned buffer = ring + OUTPUTS + chunks % 2 * OUTPUT_BYTES;
    writeOutputs(buffer, even, odd, out);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (thread == 0) {
        storeBox(&tm_out, column0, head, (chunks - 1) * 64, batch, buffer);
        storeBox(&tm_out, column0 + 32, head, (chunks - 1) * 64, batch, buffer + 8192);
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }

#pragma unroll
    for (int i = 0; i < 64; ++i)
        final_state[first + (i / 4 * 8 + 2 * c + i % 2) * 128 + i % 4 / 2 * 8] = state[i];

    if (thread == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
