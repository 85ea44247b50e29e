/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "131072"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of eight warps owns 128 queries of one head and walks over the keys, 64 at a time, with mma.sync, ldmatrix and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: wgmma with TMA and specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int ROW = D;           // halves a row of a tile, in two panels of 64 columns that are swizzled by 128 bytes
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
// Shared memory: keys and values of stage 0, keys and values of stage 1: 4 · TILE halves. Values come one tile later than keys.

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
        const int place = column / 64 * COUNT * 64 + row * 64 + (column % 64 ^ row % 8 * 8); // panel, row, swizzled chunk
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + place)), "l"(source), "r"(bytes)
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
    asm volatile("cp.async.wait_group %0;\nfence.proxy.async.shared::cta;" ::"n"(LEFT) : "memory"); // wgmma reads what came
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

__device__ __forceinline__ float power(float x) // 2 to the x
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// c += a · b, 16 x 8 x 16
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// 64 x 64 x 16 by a warpgroup; a lane's sums lie as those of mma.sync do. Operand 32 is 1: the sums are added to.
#define SUM4(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define SUMS(c) SUM4((c)[0]), SUM4((c)[1]), SUM4((c)[2]), SUM4((c)[3]), SUM4((c)[4]), SUM4((c)[5]), SUM4((c)[6]), SUM4((c)[7])
#define WGMMA(inputs) "{.reg .pred p; setp.ne.b32 p, %32, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, " \
    "%6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " inputs ";}"

__device__ __forceinline__ void transposed(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __half *q, const __half *k, const __half *v,
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
    k += first * stride + head;
    v += first * stride + head;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    if (keys > 0) {
        copy<KEYS>(memory, k, stride, keys);
    }
    commit();

    // Descriptors: swizzled by 128 bytes, 1024 bytes from 8 rows to the next 8; the address in units of 16 bytes
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 64ull << 16 | address(memory) >> 4;
    unsigned long long before = keyAt; // values of the tile before; the first tile has weights of zero there, for which its keys will do
    unsigned query[D / 16][4]; // left operands of the first product; rows past the last repeat it and are not stored
#pragma unroll
    for (int i = 0; i < D / 4; ++i)
        query[i / 4][i % 4] = *reinterpret_cast<const unsigned *>(q + min(warp * 16 + group + i % 2 * 8, rows - 1) * stride + i / 4 * 16 + i / 2 % 2 * 8 + member * 2);

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys
    unsigned weight[KEYS / 16][4] = {}; // of the tile before, whose product runs beside the softmax of this one

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have this tile then, and none still reads the other stage (nor, at first, the queries in it).
        arrived<0>();
        __syncthreads();
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            copy<KEYS>(next, k + (start + KEYS) * stride, stride, rest - KEYS);
        }
        copy<KEYS>(memory + (stage * 2 + 1) * TILE, v + start * stride, stride, rest); // for the next turn
        commit();
        const unsigned offset = stage * 2 * TILE / 8; // as descriptors count

        float score[KEYS / 8][4]; // overwritten by the first products
        asm volatile("wgmma.fence.sync.aligned;" : SUMS(score) :: "memory");
#pragma unroll
        for (int i = 0; i < D / 16 * 2; ++i) // 16 columns, 64 keys
            asm volatile(WGMMA("{%33, %34, %35, %36}, %37, p, 1, 1, 0") : SUMS(score + i % 2 * 8) : "r"(i / 2), "r"(query[i / 2][0]), "r"(query[i / 2][1]),
                         "r"(query[i / 2][2]), "r"(query[i / 2][3]), "l"(keyAt + offset + i / 8 * 1024 + i / 2 % 4 * 2 + i % 2 * 512));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#pragma unroll
        for (int i = 0; i < KEYS / 16 * 2; ++i) // the tile before
            asm volatile(WGMMA("{%33, %34, %35, %36}, %37, p, 1, 1, 1") : SUMS(result + i % 2 * 8) : "r"(1), "r"(weight[i / 2][0]), "r"(weight[i / 2][1]),
                         "r"(weight[i / 2][2]), "r"(weight[i / 2][3]), "l"(before + i / 2 * 128 + i % 2 * 1024));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 1;" : SUMS(score), SUMS(score + 8) :: "memory");

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

        // The reference of a row (in powers of two) is raised only where its maximum has grown by more than 2^8: any reference gives the
        // same quotient, and f16 holds weights far above one.
        float top[2];
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            top[side] = fmaxf(score[0][2 * side], score[0][2 * side + 1]);
#pragma unroll
            for (int n = 1; n < KEYS / 8; ++n)
                top[side] = fmaxf(top[side], fmaxf(score[n][2 * side], score[n][2 * side + 1]));
            top[side] = fmaxf(top[side], __shfl_xor_sync(0xffffffffu, top[side], 1));
            top[side] = fmaxf(top[side], __shfl_xor_sync(0xffffffffu, top[side], 2)) * base2;
        }
        const float old[2] = {largest[0], largest[1]};
        if (__any_sync(0xffffffffu, top[0] > largest[0] + 8.0f || top[1] > largest[1] + 8.0f)) {
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                const float raised = fmaxf(largest[side], top[side]);
                const float shrink = power(largest[side] - raised);
                largest[side] = raised;
                sum[side] *= shrink;
            }
        }
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                score[n][2 * side] = power(fmaf(score[n][2 * side], base2, -largest[side]));
                score[n][2 * side + 1] = power(fmaf(score[n][2 * side + 1], base2, -largest[side]));
                sum[side] += score[n][2 * side] + score[n][2 * side + 1];
            }
        asm volatile("wgmma.wait_group.sync.aligned 0;" : SUMS(score), SUMS(score + 8), SUMS(result), SUMS(result + 8) :: "memory");
        if (__any_sync(0xffffffffu, old[0] < largest[0] || old[1] < largest[1]))
#pragma unroll
            for (int i = 0; i < D / 2; ++i)
                result[i / 4][i % 4] *= power(old[i / 2 % 2] - largest[i / 2 % 2]);

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                weight[c][e] = pack(score[2 * c + e / 2][e % 2 * 2], score[2 * c + e / 2][e % 2 * 2 + 1]);
        before = keyAt + offset + TILE / 8;
    }
    if (keys > 0) { // the last tile's product
        arrived<0>();
        __syncthreads();
        asm volatile("wgmma.fence.sync.aligned;" : SUMS(result), SUMS(result + 8) :: "memory");
#pragma unroll
        for (int i = 0; i < KEYS / 16 * 2; ++i) // 16 keys, a panel of 64 columns of the values, which are transposed
            asm volatile(WGMMA("{%33, %34, %35, %36}, %37, p, 1, 1, 1") : SUMS(result + i % 2 * 8)
                         : "r"(1), "r"(weight[i / 2][0]), "r"(weight[i / 2][1]), "r"(weight[i / 2][2]), "r"(weight[i / 2][3]),
                           "l"(before + i / 2 * 128 + i % 2 * 1024));
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" : SUMS(result), SUMS(result + 8) :: "memory");
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
