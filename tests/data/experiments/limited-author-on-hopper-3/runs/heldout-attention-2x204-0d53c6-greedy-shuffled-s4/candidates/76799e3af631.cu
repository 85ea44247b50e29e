/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["288"]
shared = "229440"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
l2_promotion = "256B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of two warpgroups owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and a ring of stages that
// a ninth warp fills by TMA while the tensor cores work. A stage holds keys and the values of the tile before: their product runs while the softmax
// makes weights of the new scores. Still missing: warpgroups that take turns, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 288, STAGES = 3;
constexpr int TILE = KEYS * D; // halves a tile: columns 0-63 of all rows, then columns 64-127, chunks of 16 bytes swizzled in 128 bytes
// Shared memory: keys and values of each stage, queries: 7 · TILE halves; then the barriers, full and empty ones.

// The tile'th tile of queries: its sequence and its first query. Tiles do not cross sequences.
__device__ __forceinline__ bool locate(const int *cuQ, int B, int tile, int &sequence, int &begin)
{
    for (int s = 0; s < B; ++s) {
        const int tiles = (cuQ[s + 1] - cuQ[s] + QUERIES - 1) / QUERIES;
        if (tile < tiles) {
            sequence = s;
            begin = cuQ[s] + tile * QUERIES;
            return true;
        }
        tile -= tiles;
    }
    return false;
}

__device__ __forceinline__ unsigned address(const __half *at)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// Begins to copy COUNT rows of 128 halves to shared memory; those from `rows` (at least 1) on become zero. Rows are 256 bytes: copies of 16
// bytes are aligned.
template <int COUNT>
__device__ __forceinline__ void copy(__half *to, const __half *from, size_t stride, int rows)
{
#pragma unroll
    for (int i = 0; i < COUNT * (D / 8) / THREADS; ++i) {
        const int chunk = threadIdx.x + i * THREADS;
        const int row = chunk / (D / 8), column = chunk % (D / 8) * 8;
        const bool inside = row < rows;
        const __half *source = inside ? from + row * stride + column : from;
        const int bytes = inside ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + (column / 64 * COUNT + row) * 64 + ((column % 64) ^ (row % 8 * 8)))), "l"(source), "r"(bytes)
                     : "memory");
    }
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void arrived()
{
    asm volatile("cp.async.wait_group %0;\nfence.proxy.async.shared::cta;" ::"n"(LEFT) : "memory");
}

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Waits for the end of the barrier's phase with this parity (0 for the first one).
__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    for (unsigned done = 0; !done;)
        asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
}

// Begins to copy a tile, the rows of one head from `row` on; those outside of the tensor become zero.
__device__ __forceinline__ void fetch(unsigned to, const TensorMap &map, int head, int row, unsigned barrier)
{
#pragma unroll
    for (int part = 0; part < 2; ++part)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                     ::"r"(to + part * TILE), "l"(&map), "r"(part * 64), "r"(head), "r"(row), "r"(barrier) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

// c += a · b, 16 x 8 x 16
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void fragments(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void transposed(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

#define FOUR(x, i) "+f"(x[i][0]), "+f"(x[i][1]), "+f"(x[i][2]), "+f"(x[i][3])
#define SUMS(x) FOUR(x, 0), FOUR(x, 1), FOUR(x, 2), FOUR(x, 3), FOUR(x, 4), FOUR(x, 5), FOUR(x, 6), FOUR(x, 7), FOUR(x, 8), FOUR(x, 9), FOUR(x, 10), FOUR(x, 11), FOUR(x, 12), FOUR(x, 13), FOUR(x, 14), FOUR(x, 15)
#define WGMMA "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
              "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

template <int LEFT>
__device__ __forceinline__ void finished(float (&x)[16][4]) // all groups of products but the last LEFT, that of x among them
{
    asm volatile("wgmma.wait_group.sync.aligned %64;" : SUMS(x) : "n"(LEFT) : "memory");
}

// Begins two groups for the 64 queries of a warpgroup: score = q · k (if SCORE) and result += weight · v; q, k, v are descriptors.
template <bool SCORE>
__device__ __forceinline__ void products(float (&score)[16][4], unsigned long long q, unsigned long long k, float (&result)[16][4], const unsigned (&weight)[8][4], unsigned long long v)
{
    asm volatile("wgmma.fence.sync.aligned;" : SUMS(result) : : "memory");
#pragma unroll
    for (int c = 0; SCORE && c < D / 16; ++c)
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n" WGMMA ", %64, %65, p, 1, 1, 0, 0;\n}\n"
                     : SUMS(score) : "l"(q + c / 4 * 1024 + c % 4 * 2), "l"(k + c / 4 * 1024 + c % 4 * 2), "r"(c) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
    for (int c = 0; c < KEYS / 16; ++c)
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n" WGMMA ", {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"
                     : SUMS(result) : "r"(weight[c][0]), "r"(weight[c][1]), "r"(weight[c][2]), "r"(weight[c][3]), "l"(v + c * 128), "r"(1) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(1024) __half memory[];

    int sequence, begin;
    if (!locate(cuQ, B, blockIdx.x, sequence, begin))
        return;
    const int rows = min(QUERIES, cuQ[sequence + 1] - begin);
    const int first = cuK[sequence];
    const int keys = cuK[sequence + 1] - first;
    const size_t stride = size_t(H) * D;
    const size_t head = size_t(blockIdx.y) * D;
    out += begin * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    const unsigned ring = address(memory), full = ring + 14 * TILE, empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%1], 8;" ::"r"(full + 8 * s), "r"(empty + 8 * s) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (warp == THREADS / 32 - 1) { // the producer
        const int tiles = (keys + KEYS - 1) / KEYS;
        for (int tile = 0, slot = 0, parity = 1; lane == 0 && tile <= tiles; ++tile, slot = (slot + 1) % STAGES, parity ^= slot == 0) {
            const unsigned to = ring + slot * 4 * TILE, barrier = full + 8 * slot, bytes = 2 * TILE * (1 + (tile == 0) + (tile < tiles));
            waitPhase(empty + 8 * slot, parity);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
            if (tile == 0)
                fetch(ring + 12 * TILE, mapQ, blockIdx.y, begin, barrier);
            if (tile < tiles)
                fetch(to, mapK, blockIdx.y, first + tile * KEYS, barrier);
            // There are no values before the first keys: zeros, from outside of the tensor.
            fetch(to + 2 * TILE, mapV, blockIdx.y, tile > 0 ? first + (tile - 1) * KEYS : -KEYS, barrier);
        }
        return;
    }

    // Descriptors: swizzled in 128 bytes, 8 rows are 1024 bytes; the values, which are transposed, go on with column 64 after 16384 bytes.
    const unsigned long long form = (1ull << 62) | (64ull << 32) | (address(memory) >> 4), key = form + (1 << 16);
    const unsigned long long query = key + 3 * TILE / 4 + warp / 4 * 512, value = form + (1024 << 16) + TILE / 8;

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys
    float score[KEYS / 8][4] = {}, factor[2];
    unsigned weights[KEYS / 16][4] = {}; // of the tile before

    int stage = 0, parity = 0;
    for (int start = 0; start < keys; start += KEYS, stage = (stage + 1) % STAGES, parity ^= stage == 0) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        waitPhase(full + 8 * stage, parity);
        products<true>(score, query, key + stage * (TILE / 4), result, weights, value + stage * (TILE / 4));
        finished<1>(score);

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

#pragma unroll
        for (int side = 0; side < 2; ++side) {
            float top = largest[side];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
                top = fmaxf(top, fmaxf(score[n][2 * side], score[n][2 * side + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            const float shrink = factor[side] = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(score[n][e]) : "f"(fmaf(score[n][e], base2, -top * base2)));
                    sum[side] += score[n][e];
                }
        }
        finished<0>(result);
        finished<0>(score);
        if (lane == 0) // this warp has read the stage
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty + 8 * stage) : "memory");
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const float shrink = factor[side];
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * side] *= shrink;
                result[n][2 * side + 1] *= shrink;
            }
        }

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c) {
            const unsigned weight[4] = {pack(score[2 * c][0], score[2 * c][1]), pack(score[2 * c][2], score[2 * c][3]),
                                        pack(score[2 * c + 1][0], score[2 * c + 1][1]), pack(score[2 * c + 1][2], score[2 * c + 1][3])};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                weights[c][i] = weight[i];
            }
        }
    }
    waitPhase(full + 8 * stage, parity);
    products<false>(score, query, key, result, weights, value + stage * (TILE / 4));
    finished<0>(result);

#pragma unroll
    for (int side = 0; side < 2; ++side) {
        float total = sum[side];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = warp * 16 + group + side * 8;
        if (row < rows) {
#pragma unroll
            for (int n = 0; n < D / 8; ++n)
                *reinterpret_cast<__half2 *>(out + row * stride + n * 8 + member * 2) =
                    __floats2half2_rn(result[n][2 * side] * inverse, result[n][2 * side + 1] * inverse);
        }
    }
}
