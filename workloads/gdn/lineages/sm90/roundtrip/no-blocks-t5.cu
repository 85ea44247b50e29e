/*klineage
surface = "cuda"

[[workspace]]
name = "tiles"
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
l2_promotion = "256B"

[[tensormap]]
name = "tm_o"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "prepare_chunks"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "35328"
args = ["tm_q", "tm_k", "g", "beta", "tiles", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk_chunks"
grid = ["ceil_div(D, 64)", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_o", "initial_state", "final_state", "tiles", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule from chunk to chunk of 64 tokens. Within a chunk G[t] = g[0] + .. + g[t], S is the state before it:
//   (I + L) U = diag(beta) (V - diag(exp G) K S),   L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s]  for s < t
//   out[t] = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// Tokens past the end are zeros with no decay and no update.

#include <cuda_bf16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int SIDE = 64;                      // tokens of a chunk
constexpr int WIDTH = 128;                    // keys, and columns of values
constexpr int PITCH = 68;                     // floats of a row of the system
constexpr int HALF_BYTES = 8192;              // a box of 64 rows of 128 bytes
constexpr int IMAGE_BYTES = 16896;            // of a chunk: solution, scores, exp(G[t]), exp(G[63] - G[t])
constexpr int SCORES_IN_IMAGE = 8192, FACTORS_IN_IMAGE = 16384;

// A stage of the second launch.
constexpr int STAGES = 3;
constexpr int K_AT = 0, Q_AT = 16384, V_AT = 32768, IMAGE_AT = 40960;
constexpr int SOLUTION_AT = IMAGE_AT, SCORES_AT = IMAGE_AT + SCORES_IN_IMAGE, FACTORS_AT = IMAGE_AT + FACTORS_IN_IMAGE;
constexpr int STAGE_TRAFFIC = IMAGE_AT + IMAGE_BYTES;        // 57856
constexpr int STAGE_BYTES = 58368;                           // a multiple of 1024
constexpr int BOX_BYTES = 16384;                             // outputs of a chunk: two boxes of 64 tokens x 32 floats

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

__device__ __forceinline__ float power(float x)
{
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

// ---- Barriers and copies

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
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
                     ".reg .pred done;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, done;\n"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int x, int head, int token, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(&map)), "r"(barrier),
                    "r"(x), "r"(head), "r"(token), "r"(batch) : "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, unsigned from, int x, int head, int token, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 :: "l"(reinterpret_cast<unsigned long long>(&map)), "r"(from),
                    "r"(x), "r"(head), "r"(token), "r"(batch) : "memory");
}

__device__ __forceinline__ void storeBytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void commitStores()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void waitStoresRead()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void waitStores()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// ---- Products of a warp

__device__ __forceinline__ void loadMatrices(unsigned (&d)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&d)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned toTf32(float value)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---- First launch

// Byte of chunk (8 bf16) of a row of 128 bf16 that TMA put as two boxes of 64 columns.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * HALF_BYTES + row * 128 + ((chunk % 8) ^ (row % 8)) * 16;
}

// Gates of a chunk by one warp, two tokens a lane: sums of the log gates to base 2, corrections, and the decays.
__device__ __forceinline__ void prepareFactors(float *sum, float *correction, float *factor, const float *g, const float *beta,
                                               int batch, int T, int HV, int head, int chunk)
{
    constexpr float LOG2E = 1.4426950408889634f;
    const int lane = threadIdx.x % 32, t = chunk * SIDE + 2 * lane;
    const size_t at = (size_t(batch) * T + t) * HV + head;
    const bool one = t < T, two = t + 1 < T;
    const float gate0 = one ? g[at] * LOG2E : 0.0f;
    const float gate1 = two ? g[at + HV] * LOG2E : 0.0f;
    const float beta0 = one ? beta[at] : 0.0f;
    const float beta1 = two ? beta[at + HV] : 0.0f;

    float total = gate0 + gate1;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
        const float other = __shfl_up_sync(~0u, total, offset);
        if (lane >= offset)
            total += other;
    }
    float before = __shfl_up_sync(~0u, total, 1);
    if (lane == 0)
        before = 0.0f;
    const float end = __shfl_sync(~0u, total, 31);
    const float sum0 = before + gate0, sum1 = total;

    sum[2 * lane] = sum0;
    sum[2 * lane + 1] = sum1;
    correction[2 * lane] = beta0;
    correction[2 * lane + 1] = beta1;
    factor[2 * lane] = power(sum0);
    factor[2 * lane + 1] = power(sum1);
    factor[SIDE + 2 * lane] = power(end - sum0);
    factor[SIDE + 2 * lane + 1] = power(end - sum1);
}

// Inverts two of the 16 x 16 blocks on the diagonal, a lane a column, in place.
__device__ __forceinline__ void invertDiagonal(float *m, int warp)
{
    const int lane = threadIdx.x % 32, column = lane % 16;
    const int first = (warp * 2 + lane / 16) * 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float value = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 r = *reinterpret_cast<const float4 *>(m + (first + i) * PITCH + first + k);
            value -= r.x * x[k];
            if (k + 1 < i)
                value -= r.y * x[k + 1];
            if (k + 2 < i)
                value -= r.z * x[k + 2];
            if (k + 3 < i)
                value -= r.w * x[k + 3];
        }
        x[i] = value;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        m[(first + i) * PITCH + first + column] = x[i];
    __syncwarp();
}

// [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1], A^-1 and C^-1 being there already: 16 x 16 of the lower left block of side S,
// at row and column of it.
template <int S>
__device__ __forceinline__ void mergeBlocks(float (&block)[2][4], const float *m, int first, int row, int column)
{
    const int lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
    float product[S / 8][4] = {};
#pragma unroll
    for (int k = 0; k < S; k += 8) {
        if (k >= row + 16)                                    // the rest of C^-1 is zero
            continue;
        const float *left = m + (first + S + row + g) * PITCH + first + S + k + c;
        const unsigned a[4] = {toTf32(left[0]), toTf32(left[8 * PITCH]), toTf32(left[4]), toTf32(left[8 * PITCH + 4])};
#pragma unroll
        for (int j = 0; j < S / 8; ++j) {
            const float *right = m + (first + S + k + c) * PITCH + first + j * 8 + g;
            multiplyTf32(product[j], a, toTf32(right[0]), toTf32(right[4 * PITCH]));
        }
    }
#pragma unroll
    for (int j = 0; j < S / 8; ++j) {
        if (j * 8 + 8 <= column)                              // these rows of A^-1 are zero in these columns
            continue;
        const unsigned a[4] = {toTf32(-product[j][0]), toTf32(-product[j][2]), toTf32(-product[j][1]), toTf32(-product[j][3])};
#pragma unroll
        for (int n = 0; n < 2; ++n) {
            const float *right = m + (first + j * 8 + 2 * c) * PITCH + first + column + n * 8 + g;
            multiplyTf32(block[n], a, toTf32(right[0]), toTf32(right[PITCH]));
        }
    }
}

// A block: a chunk of a head of queries and keys, and in turn all heads of values that use it.
extern "C" __global__ void __launch_bounds__(128, 5)
prepare_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *g, const float *beta,
               __nv_bfloat16 *tiles, int T, int HV, float scale)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(16) float sums[4][SIDE], corrections[4][SIDE], factors[4][2 * SIDE];
    __shared__ alignas(8) unsigned long long arrived;

    const int thread = threadIdx.x, lane = thread % 32, row8 = lane / 4, pair = lane % 4;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int group = blockIdx.x, chunk = blockIdx.y, batch = blockIdx.z;
    const int chunks = gridDim.y, ratio = HV / int(gridDim.x);
    const unsigned start = sharedAddress(dynamicShared), room = (start + 1023) & ~1023u;
    unsigned char *image = dynamicShared + (room - start);
    float *system = reinterpret_cast<float *>(image + IMAGE_BYTES);
    const unsigned barrier = sharedAddress(&arrived);

    if (thread == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 4 * HALF_BYTES);
        copyBox(room, mapK, 0, group, chunk * SIDE, batch, barrier);
        copyBox(room + HALF_BYTES, mapK, 64, group, chunk * SIDE, batch, barrier);
        copyBox(room + 2 * HALF_BYTES, mapQ, 0, group, chunk * SIDE, batch, barrier);
        copyBox(room + 3 * HALF_BYTES, mapQ, 64, group, chunk * SIDE, batch, barrier);
    }
    if (warp < ratio)
        prepareFactors(sums[warp], corrections[warp], factors[warp], g, beta, batch, T, HV, group * ratio + warp, chunk);
    __syncthreads();
    waitPhase(barrier, 0);
    __syncwarp();

    // Row 3 - warp of the blocks of K K^T, then row warp of those of Q K^T, up to the diagonal: five blocks a warp.
    const int systemRow = 3 - warp, scoreRow = warp, split = 4 - warp;
    float blocks[5][2][4] = {};
#pragma unroll
    for (int step = 0; step < WIDTH / 16; ++step) {
        unsigned left[4], other[4];
        loadMatrices(left, room + place(systemRow * 16 + lane % 16, 2 * step + lane / 16));
        loadMatrices(other, room + 2 * HALF_BYTES + place(scoreRow * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const int n = b < split ? b : b - split;
            unsigned right[4];
            loadMatrices(right, room + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            if (b < split) {
                multiply(blocks[b][0], left, right[0], right[1]);
                multiply(blocks[b][1], left, right[2], right[3]);
            } else {
                multiply(blocks[b][0], other, right[0], right[1]);
                multiply(blocks[b][1], other, right[2], right[3]);
            }
        }
    }
    __syncthreads();                                          // the tiles become room for the image and the system

    // What lies above the diagonal stays zero for all heads.
#pragma unroll
    for (int i = 0; i < FACTORS_IN_IMAGE / 16 / 128; ++i)
        *reinterpret_cast<uint4 *>(image + (i * 128 + thread) * 16) = make_uint4(0, 0, 0, 0);
    {
        const int block = thread / 64, row = block * 32 + thread % 64 / 4, column = block * 32 + 16 + thread % 4 * 4;
        *reinterpret_cast<float4 *>(system + row * PITCH + column) = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }

    for (int i = 0; i < ratio; ++i) {
        const int slot = i % 4;
        if (slot == 0 && i > 0) {
            if (i + warp < ratio)
                prepareFactors(sums[warp], corrections[warp], factors[warp], g, beta, batch, T, HV, group * ratio + i + warp, chunk);
            __syncthreads();
        }
        const float *sum = sums[slot], *correction = corrections[slot];

        // 1. The system I + L, in float.
        {
            const int row = systemRow * 16 + row8;
            const float sum0 = sum[row], sum1 = sum[row + 8], beta0 = correction[row], beta1 = correction[row + 8];
#pragma unroll
            for (int b = 0; b < 5; ++b)
                if (b < split) {
#pragma unroll
                    for (int n = 0; n < 2; ++n) {
                        const int column = b * 16 + n * 8 + 2 * pair;
                        const float2 other = *reinterpret_cast<const float2 *>(sum + column);
                        const float *x = blocks[b][n];
                        float2 upper, lower;
                        upper.x = column < row ? beta0 * power(sum0 - other.x) * x[0] : column == row ? 1.0f : 0.0f;
                        upper.y = column + 1 < row ? beta0 * power(sum0 - other.y) * x[1] : column + 1 == row ? 1.0f : 0.0f;
                        lower.x = column < row + 8 ? beta1 * power(sum1 - other.x) * x[2] : column == row + 8 ? 1.0f : 0.0f;
                        lower.y = column + 1 < row + 8 ? beta1 * power(sum1 - other.y) * x[3] : column + 1 == row + 8 ? 1.0f : 0.0f;
                        *reinterpret_cast<float2 *>(system + row * PITCH + column) = upper;
                        *reinterpret_cast<float2 *>(system + (row + 8) * PITCH + column) = lower;
                    }
                }
        }
        if (thread == 0)
            waitStoresRead();                                 // the image of the head before has been read
        __syncthreads();

        // 2. Two warps invert the diagonal up to blocks of 32; the others have most of the scores.
        if (warp < 2) {
            invertDiagonal(system, warp);
            float block[2][4] = {};
            mergeBlocks<16>(block, system, warp * 32, 0, 0);
            __syncwarp();                                     // all lanes have read what is overwritten
            float *to = system + (warp * 32 + 16 + row8) * PITCH + warp * 32 + 2 * pair;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                *reinterpret_cast<float2 *>(to + n * 8) = make_float2(block[n][0], block[n][1]);
                *reinterpret_cast<float2 *>(to + 8 * PITCH + n * 8) = make_float2(block[n][2], block[n][3]);
            }
        }
        {
            const int row = scoreRow * 16 + row8;
            const float sum0 = sum[row], sum1 = sum[row + 8];
            unsigned char *to = image + SCORES_IN_IMAGE + row * 128 + 4 * pair;
#pragma unroll
            for (int b = 0; b < 5; ++b)
                if (b >= split) {
#pragma unroll
                    for (int n = 0; n < 2; ++n) {
                        const int part = (b - split) * 2 + n, column = part * 8 + 2 * pair;
                        const float2 other = *reinterpret_cast<const float2 *>(sum + column);
                        const float *x = blocks[b][n];
                        const float upper0 = column <= row ? scale * power(sum0 - other.x) * x[0] : 0.0f;
                        const float upper1 = column + 1 <= row ? scale * power(sum0 - other.y) * x[1] : 0.0f;
                        const float lower0 = column <= row + 8 ? scale * power(sum1 - other.x) * x[2] : 0.0f;
                        const float lower1 = column + 1 <= row + 8 ? scale * power(sum1 - other.y) * x[3] : 0.0f;
                        const int offset = (part ^ (row % 8)) * 16;
                        *reinterpret_cast<unsigned *>(to + offset) = pack(upper0, upper1);
                        *reinterpret_cast<unsigned *>(to + 8 * 128 + offset) = pack(lower0, lower1);
                    }
                }
        }
        reinterpret_cast<float *>(image + FACTORS_IN_IMAGE)[thread] = factors[slot][thread];
        __syncthreads();

        // 3. The lower left block of side 32 from all warps, the diagonal blocks as they are; columns times beta.
        {
            const int blockRow = warp / 2 * 16, blockColumn = warp % 2 * 16;
            float block[2][4] = {};
            mergeBlocks<32>(block, system, 0, blockRow, blockColumn);
            const int row = 32 + blockRow + row8;
#pragma unroll
            for (int n = 0; n < 2; ++n) {
                const int part = blockColumn / 8 + n;
                const float2 by = *reinterpret_cast<const float2 *>(correction + part * 8 + 2 * pair);
                unsigned char *to = image + row * 128 + (part ^ (row % 8)) * 16 + 4 * pair;
                *reinterpret_cast<unsigned *>(to) = pack(block[n][0] * by.x, block[n][1] * by.y);
                *reinterpret_cast<unsigned *>(to + 8 * 128) = pack(block[n][2] * by.x, block[n][3] * by.y);
            }
        }
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int row = j * 32 + thread / 4, part = j * 4 + thread % 4;
            const float4 x = *reinterpret_cast<const float4 *>(system + row * PITCH + part * 8);
            const float4 y = *reinterpret_cast<const float4 *>(system + row * PITCH + part * 8 + 4);
            const float4 bx = *reinterpret_cast<const float4 *>(correction + part * 8);
            const float4 by = *reinterpret_cast<const float4 *>(correction + part * 8 + 4);
            *reinterpret_cast<uint4 *>(image + row * 128 + (part ^ (row % 8)) * 16) =
                make_uint4(pack(x.x * bx.x, x.y * bx.y), pack(x.z * bx.z, x.w * bx.w),
                           pack(y.x * by.x, y.y * by.y), pack(y.z * by.z, y.w * by.w));
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (thread == 0) {
            const size_t head = size_t(batch) * HV + group * ratio + i;
            storeBytes(tiles + (head * chunks + chunk) * (IMAGE_BYTES / 2), room, IMAGE_BYTES);
            commitStores();
        }
    }
    if (thread == 0)
        waitStores();                                         // shared memory goes away with the block
}

// ---- Second launch

// Descriptors of tiles with rows of 128 swizzled bytes, less the address: summed over along the rows, or across them (boxes
// of 64 columns, so that the only step beyond 8 rows is one of 1024 bytes).
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
constexpr unsigned long long ACROSS = 1024ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

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

__device__ __forceinline__ void fenceProducts()
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

#define SUMS8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
                    "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(d) SUMS8(d, 0), SUMS8(d, 8), SUMS8(d, 16), SUMS8(d, 24)

// d (64 x 64) = or += a (64 x 16) b^T: the rows of b are the columns of d.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
                 "}"
                 : SUMS32(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d (64 x 64) += a (64 x 16) b: the rows of b are summed over.
__device__ __forceinline__ void multiplyAcross(float (&d)[32], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile("{\n"
                 ".reg .pred accumulate;\n"
                 "setp.ne.b32 accumulate, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 1;\n"
                 "}"
                 : SUMS32(d)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// The state, transposed, as left operand of 64 columns of values by 128 keys.
__device__ __forceinline__ void packState(unsigned (&left)[8][4], const float (&low)[32], const float (&high)[32])
{
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        left[i / 4][i % 4] = pack(low[2 * i], low[2 * i + 1]);
        left[4 + i / 4][i % 4] = pack(high[2 * i], high[2 * i + 1]);
    }
}

// Outputs of a chunk, transposed, to two swizzled boxes of 64 tokens by 32 columns, without bank conflicts.
__device__ __forceinline__ void stageOutputs(const float (&out)[32], unsigned box, const unsigned (&offsets)[4])
{
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const unsigned address = box + offsets[j];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            asm volatile("st.shared.f32 [%0], %1;" :: "r"(address + n * 1024), "f"(out[4 * n + j]) : "memory");
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void syncWarpgroup()
{
    asm volatile("bar.sync 1, 128;" ::: "memory");
}

// A block: 64 columns of the state of a head, from chunk to chunk. Four warps compute, a fifth asks for the copies.
extern "C" __global__ void __launch_bounds__(160, 1)
walk_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
            const __grid_constant__ TensorMap mapO, const float *initialState, float *finalState, const __nv_bfloat16 *tiles,
            int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int column0 = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + SIDE - 1) / SIDE;
    const unsigned start = sharedAddress(dynamicShared), ring = (start + 1023) & ~1023u;
    const unsigned char *stages = dynamicShared + (ring - start);
    const unsigned boxes = ring + STAGES * STAGE_BYTES;
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int group = head / (HV / HQ);
            const __nv_bfloat16 *images = tiles + (size_t(batch) * HV + head) * chunks * (IMAGE_BYTES / 2);
            int stage = 0;
            unsigned parity = 1;                              // of the use before, once the ring has wrapped
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                const int token = chunk * SIDE;
                if (chunk >= STAGES)
                    waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, STAGE_TRAFFIC);
                copyBox(to + K_AT, mapK, 0, group, token, batch, barrier);
                copyBox(to + K_AT + HALF_BYTES, mapK, 64, group, token, batch, barrier);
                copyBox(to + Q_AT, mapQ, 0, group, token, batch, barrier);
                copyBox(to + Q_AT + HALF_BYTES, mapQ, 64, group, token, batch, barrier);
                copyBox(to + V_AT, mapV, column0, head, token, batch, barrier);
                if (chunk == 0) {
                    asm volatile("griddepcontrol.wait;" ::: "memory");        // the first launch has ended
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyBytes(to + IMAGE_AT, images + size_t(chunk) * (IMAGE_BYTES / 2), IMAGE_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    // Number 4 n + 2 h + e of a thread's sums: column of values row8 + 8 h of the warp's 16, token or key 8 n + 2 pair + e.
    const int row8 = lane / 4, pair = lane % 4;
    const size_t place0 = (size_t(batch) * HV + head) * WIDTH * WIDTH + size_t(2 * pair) * WIDTH + column0 + warp * 16 + row8;
    float low[32], high[32], next[32] = {}, out[32] = {};
    unsigned left[8][4], rest[4][4], update[4][4];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int at = (i / 4 * 8 + i % 2) * WIDTH + i % 4 / 2 * 8;
        low[i] = initialState[place0 + at];
        high[i] = initialState[place0 + at + 64 * WIDTH];
    }
    packState(left, low, high);

    unsigned offsets[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int token = 2 * pair + j % 2, part = warp % 2 * 4 + j / 2 * 2 + row8 / 4;
        offsets[j] = warp / 2 * HALF_BYTES + token * 128 + (part ^ token) * 16 + row8 % 4 * 4;
    }
    // Values, transposed: token and 16 bytes of this lane's row of the four matrices of 16 tokens.
    const int valueToken = lane / 16 * 8 + lane % 8;
    const unsigned valueOffset = V_AT + valueToken * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned here = ring + stage * STAGE_BYTES;
        const float *factors = reinterpret_cast<const float *>(stages + stage * STAGE_BYTES + FACTORS_AT);
        const unsigned tile = __shfl_sync(~0u, (here & 0x3ffff) >> 4, 0);
        waitPhase(full + 8 * stage, parity);
        __syncwarp();

        // next = S^T K^T, on the way from state to state
        hold(left);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(next, left[step], ALONG + (tile + (K_AT + step / 4 * HALF_BYTES + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // The outputs of the chunk before leave in its shadow; there are none at first, and zeros go nowhere.
        stageOutputs(out, boxes + (chunk + 1) % 2 * BOX_BYTES, offsets);
        if (thread == 0)
            waitStoresRead();                                 // so that the other pair of boxes is free for the next chunk
        syncWarpgroup();
        if (thread == 0 && chunk > 0) {
            const unsigned box = boxes + (chunk + 1) % 2 * BOX_BYTES;
            storeBox(mapO, box, column0, head, (chunk - 1) * SIDE, batch);
            storeBox(mapO, box + HALF_BYTES, column0 + 32, head, (chunk - 1) * SIDE, batch);
            commitStores();
        }
        __syncwarp();

        // out = S^T Q^T
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tile + (Q_AT + step / 4 * HALF_BYTES + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // rest = V^T - exp(G) next
        unsigned values[4][4];
        float2 gate[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadTransposed(values[n], here + valueOffset + n * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            gate[n] = *reinterpret_cast<const float2 *>(factors + n * 8 + 2 * pair);
        const float whole = factors[SIDE - 1];
        waitProducts<1>();
        hold(next);
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const unsigned both = values[n / 2][n % 2 * 2 + h];
                const float first = __uint_as_float(both << 16) - gate[n].x * next[4 * n + 2 * h];
                const float second = __uint_as_float(both & 0xffff0000u) - gate[n].y * next[4 * n + 2 * h + 1];
                rest[n / 2][n % 2 * 2 + h] = pack(first, second);
            }

        // next = updates = rest solution^T
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (tile + (SOLUTION_AT + step * 32) / 16), step > 0);
        commitProducts();

        float2 decay[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            decay[n] = *reinterpret_cast<const float2 *>(factors + SIDE + n * 8 + 2 * pair);
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            low[i] *= whole;
            high[i] *= whole;
        }
        hold(low);
        hold(high);
        waitProducts<0>();
        hold(left);
        hold(out);
        hold(next);
        hold(rest);

        // S^T = exp(G[63]) S^T + (updates exp(G[63] - G)) K
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                update[n / 2][n % 2 * 2 + h] = pack(next[4 * n + 2 * h] * decay[n].x, next[4 * n + 2 * h + 1] * decay[n].y);
        hold(update);
        hold(low);
        hold(high);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            multiplyAcross(low, update[step], ACROSS + (tile + (K_AT + step * 2048) / 16));
            multiplyAcross(high, update[step], ACROSS + (tile + (K_AT + HALF_BYTES + step * 2048) / 16));
        }
        commitProducts();

        // out = scale exp(G) out + updates scores^T, behind it
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float first = gate[n].x * scale, second = gate[n].y * scale;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                rest[n / 2][n % 2 * 2 + h] = pack(next[4 * n + 2 * h], next[4 * n + 2 * h + 1]);
                out[4 * n + 2 * h] *= first;
                out[4 * n + 2 * h + 1] *= second;
            }
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tile + (SCORES_AT + step * 32) / 16), 1);
        commitProducts();

        // The next chunk's operand in the shadow of the outputs.
        waitProducts<1>();
        hold(low);
        hold(high);
        hold(update);
        packState(left, low, high);
        hold(left);
        waitProducts<0>();
        hold(out);
        hold(rest);

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);                        // this warp has read the stage
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

    stageOutputs(out, boxes + (chunks + 1) % 2 * BOX_BYTES, offsets);
    syncWarpgroup();
    if (thread == 0) {
        const unsigned box = boxes + (chunks + 1) % 2 * BOX_BYTES;
        storeBox(mapO, box, column0, head, (chunks - 1) * SIDE, batch);
        storeBox(mapO, box + HALF_BYTES, column0 + 32, head, (chunks - 1) * SIDE, batch);
        commitStores();
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        const int at = (i / 4 * 8 + i % 2) * WIDTH + i % 4 / 2 * 8;
        finalState[place0 + at] = low[i];
        finalState[place0 + at + 64 * WIDTH] = high[i];
    }
    if (thread == 0)
        waitStores();                                         // shared memory goes away with the block
}
