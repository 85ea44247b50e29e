/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "196736"
args = ["q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
[[tensormap]]
name = "tm_k"
tensor = "k"
box = [128, 1, 64]
swizzle = "128B"
[[tensormap]]
name = "tm_v"
tensor = "v"
box = [128, 1, 64]
swizzle = "128B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of eight warps owns 128 queries of one head and walks over the keys, 128 at a time, with wgmma and two stages
// of keys and values that TMA fills while the tensor cores work on a third, for two warpgroups that take turns; still missing: more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int ROW = D;           // halves a row of a tile: 64 in each of two slabs, whose rows hold chunk c of 8 halves at c ^ row % 8
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
constexpr float SLACK = 8.0f;    // powers of two by which a score may outgrow its row's reference: weights stay at or below 2^8
struct alignas(64) TensorMap { unsigned long long opaque[16]; }; // a CUtensorMap
static_assert(QUERIES * ROW == TILE, "the queries fill the values of one stage");

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
        const int row = threadIdx.x / (D / 8) + i * (THREADS / (D / 8)), column = chunk % (D / 8) * 8;
        const bool inside = row < rows;
        const __half *source = from + min(row, rows - 1) * unsigned(stride) + column;
        const int bytes = inside ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + (column / 64 * COUNT + row) * 64 + ((column / 8 ^ row) & 7) * 8)), "l"(source), "r"(bytes)
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

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

__device__ __forceinline__ float power(float x) // 2^x; volatile: it stays among the products where it is written
{
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#define FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]) // multiply: begins c = a · b or c += a · b, 64 x 128 x 128
template <int ALONG_N> __device__ __forceinline__ void multiply(float (&c)[16][4], const unsigned (&a)[8][4], unsigned long long b, bool add)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < 8; ++i)
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}"
                     : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15) : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "l"(b + (ALONG_N ? i * 128 : i / 4 * (KEYS * 8) + i % 4 * 2)), "r"(int(add || i > 0)), "n"(ALONG_N) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void fragments(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

template <int LEFT> __device__ __forceinline__ void finished(float (&c)[16][4]) // at most LEFT groups of products are under way then
{
    asm volatile("wgmma.wait_group.sync.aligned %64;"
                 : FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15) : "n"(LEFT) : "memory");
}

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __half *q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v,
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

    copy<QUERIES>(memory + 3 * TILE, q, stride, rows);
    commit();
    const int turns = (keys + KEYS - 1) / KEYS; const unsigned full = address(memory + 6 * TILE); // turn t: stage (t + 1) % 3 of 3, each 4 · TILE bytes; then the barriers
    const auto enter = [&](int turn) { if (warp < 4 ? turn > 0 : turn < turns) asm volatile("bar.sync %0, 256;" ::"r"(1 + warp / 4) : "memory"); // the other warpgroup has issued, and its turn before has ended
        for (unsigned done = 0; !done;) asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(full + (turn + 1) % 3 * 8), "r"(turn / 3 & 1) : "memory"); };
    const auto load = [&](const TensorMap &map, unsigned to, int row, unsigned barrier) { asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%2, {%3, %5, %6}], [%7];\ncp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%1], [%2, {%4, %5, %6}], [%7];" ::"r"(to), "r"(to + KEYS * 128), "l"(&map), "r"(0), "r"(64), "r"(int(blockIdx.y)), "r"(row), "r"(barrier) : "memory"); };
    const auto fetch = [&](int turn) { const unsigned slot = (turn + 1) % 3, barrier = full + slot * 8, to = address(memory) + slot * (4 * TILE); // its keys, and the values of the turn before; by one thread
        if (turn <= turns) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"((int(turn < turns) + int(turn > 0)) * 2 * TILE) : "memory");
        if (turn < turns) load(k, to, first + turn * KEYS, barrier);
        if (turn > 0 && turn <= turns) load(v, to + 2 * TILE, first + (turn - 1) * KEYS, barrier); };
    if (threadIdx.x == 128) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nmbarrier.init.shared::cta.b64 [%0 + 8], 1;\nmbarrier.init.shared::cta.b64 [%0 + 16], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;" ::"r"(full) : "memory");
        fetch(0), fetch(1), fetch(2);
    }
    commit();
    arrived<1>();
    __syncthreads();

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
    {
        const unsigned at = address(memory + 3 * TILE + (warp * 16 + lane % 16) * 64);
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            fragments(query[c], at + c / 4 * (QUERIES * 128) + ((c % 4 * 2 + lane / 16) ^ lane % 8) * 16);
    }

    // Descriptors: rows of 128 bytes, swizzled, each 8 rows 1024 bytes; values lie along n, their second slab KEYS rows behind the first.
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 1ull << 16 | address(memory) >> 4;
    const unsigned long long valueAt = 1ull << 62 | 64ull << 32 | (KEYS * 8ull) << 16 | address(memory + TILE) >> 4;
    unsigned weights[KEYS / 16][4] = {}; // of the tile before: at first zero, and the queries lie where its values would

    float result[D / 8][4] = {};
    float reference[2] = {-infinity, -infinity}; // in powers of two; it follows the largest score late, the same in all lanes of a row
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    for (int start = 0, turn = 0, stage = 1; start < keys; start += KEYS, ++turn, stage = (turn + 1) % 3) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        enter(turn);

        float score[KEYS / 8][4], shrinks[2];
        multiply<0>(score, query, keyAt + stage * (TILE / 4), false);
        multiply<1>(result, weights, valueAt + stage * (TILE / 4), true); // the values of the tile before
        asm volatile("bar.arrive %0, 256;" ::"r"(2 - warp / 4) : "memory"); // the other warpgroup's turn
        if (threadIdx.x == 128 && turn > 0) fetch(turn + 2); // into the stage of the turn before, which both have ended
        finished<1>(score);

        if (rest < KEYS) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (n * 8 + member * 2 + (e & 1) >= rest)
                        score[n][e] = -infinity;
        }

        float tops[2]; // of this thread's keys, in powers of two
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            float low = score[0][2 * side], high = score[0][2 * side + 1];
#pragma unroll
            for (int n = 1; n < KEYS / 8; ++n) {
                low = fmaxf(low, score[n][2 * side]);
                high = fmaxf(high, score[n][2 * side + 1]);
            }
            tops[side] = fmaxf(low, high) * base2;
        }
        // One vote a warp: the lanes of a row take the same branch. The first tile always raises: member 0 has a key that counts.
        const bool raised = __any_sync(0xffffffffu, fmaxf(tops[0] - reference[0], tops[1] - reference[1]) > SLACK);
        if (raised) {
#pragma unroll
            for (int side = 0; side < 2; ++side) {
                float top = fmaxf(tops[side], __shfl_xor_sync(0xffffffffu, tops[side], 1));
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
                top = fmaxf(top, reference[side]);
                shrinks[side] = power(reference[side] - top);
                sum[side] *= shrinks[side];
                reference[side] = top;
            }
        }
#pragma unroll
        for (int side = 0; side < 2; ++side) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = power(fmaf(score[n][e], base2, -reference[side]));
                    sum[side] += score[n][e];
                }
        }
        finished<0>(result);
        if (raised) {
        _Pragma("unroll") for (int side = 0; side < 2; ++side) { const float shrink = shrinks[side];
#pragma unroll
            for (int n = 0; n < D / 8; ++n) {
                result[n][2 * side] *= shrink;
                result[n][2 * side + 1] *= shrink;
            }
        }
        }

        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int i = 0; i < KEYS / 4; ++i)
            weights[i / 4][i % 4] = pack(score[i / 2][i % 2 * 2], score[i / 2][i % 2 * 2 + 1]);
    }

    if (keys > 0) { // the values of the last tile
        enter(turns);
        multiply<1>(result, weights, valueAt + (turns + 1) % 3 * (TILE / 4), true);
        finished<0>(result);
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
