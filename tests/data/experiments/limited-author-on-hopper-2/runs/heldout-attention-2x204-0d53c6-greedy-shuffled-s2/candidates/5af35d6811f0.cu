/*klineage
surface = "cuda"
tensormap = [{ name = "tm_k", tensor = "k", box = [64, 1, 64], swizzle = "128B" }, { name = "tm_v", tensor = "v", box = [64, 1, 64], swizzle = "128B" }]

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "98432"
args = ["q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of eight warps owns 128 queries of one head and walks over the keys, 64 at a time, with wgmma and two stages
// of keys and values that TMA fills while the tensor cores work, two blocks an SM; still missing: specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 64, THREADS = 256;
constexpr int ROW = D;           // halves a row of a tile; in shared memory: two slabs of 64 columns, their 16-byte chunks swizzled by row
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
// Shared memory: keys and values of stage 0, keys and values of stage 1, the queries: 6 · TILE halves; then a barrier for each stage.
static_assert(QUERIES * ROW == 2 * TILE, "the queries fill one stage");
struct alignas(64) TensorMap { unsigned long long opaque[16]; };

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
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + column / 64 * (COUNT * 64) + row * 64 + (column % 64 ^ row % 8 * 8))), "l"(source), "r"(bytes)
                     : "memory");
    }
}

__device__ __forceinline__ void fetch(__half *to, const TensorMap &k, const TensorMap &v, int row, unsigned barrier) // begins to fill a stage, from key `row` on
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(4 * TILE) : "memory");
    for (int slab = 0; slab < 4; ++slab)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(address(to) + slab * KEYS * 128), "l"(slab < 2 ? &k : &v), "r"(slab % 2 * 64), "r"(blockIdx.y), "r"(row), "r"(barrier) : "memory");
}

__device__ __forceinline__ void commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int LEFT>
__device__ __forceinline__ void arrived()
{
    asm volatile("cp.async.wait_group %0; fence.proxy.async.shared::cta;" ::"n"(LEFT) : "memory");
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

#define FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
// c = a · b or, with `more`, c += a · b, 64 x 64 x 16, by a group of four warps; begun only. Where b is TRANSPOSED, it lies N-major.
template <int TRANSPOSED> __device__ __forceinline__ void multiply(float (*c)[4], const unsigned (&a)[4], unsigned long long b, int more)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, %38;}"
                 : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more), "n"(TRANSPOSED));
}

__device__ __forceinline__ void multiply(float (*c)[4], unsigned long long a, unsigned long long b, int more) // a too in shared memory, both K-major
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0;}"
                 : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7)
                 : "l"(a), "l"(b), "r"(more));
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

extern "C" __global__ __launch_bounds__(THREADS, 2) void attention(const __half *q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
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
    q += begin * stride + head;
    out += begin * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    const unsigned barrier = address(memory + 6 * TILE); // of stage 0; that of stage 1 lies 8 bytes behind it
    copy<QUERIES>(memory + 4 * TILE, q, stride, rows);
    commit();
    if (keys > 0 && threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; mbarrier.init.shared::cta.b64 [%0 + 8], 1; fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::"r"(barrier) : "memory");
        fetch(memory, k, v, first, barrier);
    }
    commit();
    arrived<1>();
    __syncthreads();

    // Descriptors of the first keys (K-major) and values (N-major): slabs with rows of 128 bytes, swizzled, 8 rows every 1024 bytes
    const unsigned long long keyAt = address(memory) / 16 | 1ull << 16 | 64ull << 32 | 1ull << 62;
    const unsigned long long valueAt = keyAt + TILE / 8;
    const unsigned long long queryAt = keyAt + TILE / 2 + __shfl_sync(0xffffffffu, warp / 4, 0) * 512; // the 64 queries of the group of four warps

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have this tile then, and none still reads the other stage (nor, at first, the queries in it).
        asm volatile("{.reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again;}" ::"r"(barrier + stage * 8), "r"(start / (2 * KEYS) & 1) : "memory");
        __syncthreads();
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            if (threadIdx.x == 0)
                fetch(next, k, v, first + start + KEYS, barrier + (stage ^ 1) * 8);
        }
        const unsigned offset = stage * 2 * TILE * 2; // bytes

        float score[KEYS / 8][4];
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            multiply(score, queryAt + (c / 4 * (QUERIES * 128) + c % 4 * 32) / 16, keyAt + (offset + c / 4 * (KEYS * 128) + c % 4 * 32) / 16, c);
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + (e & 1) >= rest - member * 2)
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
            const float shrink = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(score[n][e]) : "f"(fmaf(score[n][e], base2, -top * base2)));
                    sum[side] += score[n][e];
                }
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
            for (int n = 0; n < D / 64; ++n)
                multiply<1>(result + 8 * n, weight, valueAt + (offset + n * (KEYS * 128) + c * 2048) / 16, 1);
        }
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }

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
