/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["384"]
shared = "163904"
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
// One block owns 128 queries of one head and walks over the keys, 128 at a time: a producer fills two stages by TMA, and two warpgroups multiply
// with wgmma in turns; softmax overlaps with the second product of the tile before. Still missing: late rescaling, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 256;
constexpr int TILE = KEYS * D; // halves a tile: two slabs of 64 columns, rows of 128 bytes whose chunk c lies at c ^ row % 8
// Shared memory: keys and values of stage 0, keys and values of stage 1, queries: 5 · TILE halves.
// Then the barriers of the first four tiles: 4 full, 4 empty. THREADS are those of the consumers; the producer's 128 come after them.
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
        const int place = column / 64 * COUNT * 64 + row * 64 + ((column / 8 ^ row) & 7) * 8;
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
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads by the asynchronous proxy
}

// Begins to copy a tile of keys or values, two slabs of TILE bytes. Rows of the next sequence may come along: they get no weight.
__device__ __forceinline__ void load(unsigned full, unsigned to, const TensorMap *map, int head, int row)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "n"(TILE * 2) : "memory");
    for (int slab = 0; slab < 2; ++slab)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to + slab * TILE), "l"(map), "r"(slab * 64), "r"(head), "r"(row), "r"(full) : "memory");
}

__device__ __forceinline__ void await(unsigned barrier, unsigned parity) { asm volatile("{.reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra AGAIN;}" ::"r"(barrier), "r"(parity) : "memory"); }
__device__ __forceinline__ void release(unsigned empty) { if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(empty) : "memory"); }
__device__ __forceinline__ float power(float x) { asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); return x; }

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 pair = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&pair);
}

#define FOUR(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define ALL(c) FOUR(c[0]), FOUR(c[1]), FOUR(c[2]), FOUR(c[3]), FOUR(c[4]), FOUR(c[5]), FOUR(c[6]), FOUR(c[7]), FOUR(c[8]), FOUR(c[9]), FOUR(c[10]), FOUR(c[11]), FOUR(c[12]), FOUR(c[13]), FOUR(c[14]), FOUR(c[15])
#define SUMS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// Begins c = a · b of queries and keys (VALUES 0) or c += a · b of weights and values (1), 64 x 128 x 128 a warpgroup
template <int VALUES>
__device__ __forceinline__ void multiply(float (&c)[16][4], unsigned (&a)[8][4], unsigned long long b)
{
#pragma unroll
    for (int i = 0; i < 8 * VALUES; ++i)
        asm volatile("" : "+r"(a[i][0]), "+r"(a[i][1]), "+r"(a[i][2]), "+r"(a[i][3]) : : "memory");
    asm volatile("wgmma.fence.sync.aligned;" : ALL(c) : : "memory");
#pragma unroll
    for (int i = 0; i < 8; ++i)
        asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUMS ", {%64, %65, %66, %67}, %68, p, 1, 1, %70;}"
                     : ALL(c) : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]),
                       "l"(b + (VALUES ? i * 128 : i / 4 * 1024 + i % 4 * 2)), "r"(VALUES + i), "n"(VALUES) : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Four 8 x 8 matrices; lanes 8 i to 8 i + 7 give the addresses of the rows of matrix i.
__device__ __forceinline__ void fragments(unsigned (&r)[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

template <int LEFT>
__device__ __forceinline__ void done(float (&c)[16][4])
{
    asm volatile("wgmma.wait_group.sync.aligned %64;" : ALL(c) : "n"(LEFT) : "memory");
}

extern "C" __global__ __launch_bounds__(THREADS + 128, 1) void attention(const __half *q, const __grid_constant__ TensorMap mapK,
                                                                   const __grid_constant__ TensorMap mapV,
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

    const unsigned full = address(memory + 5 * TILE), empty = full + 32; // 8 bytes each; keys, values, keys, values
    if (threadIdx.x < 8) // one arrival of the producer fills, one of each warp of the consumers empties
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.proxy.async.shared::cta;" ::"r"(full + threadIdx.x * 8), "r"(threadIdx.x < 4 ? 1 : 8) : "memory");
    __syncthreads();
    if (warp >= THREADS / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        for (int i = 0; threadIdx.x == THREADS && i / 2 * KEYS < max(keys, 1); ++i) {
            await(empty + i % 4 * 8, i / 4 % 2 ^ 1);
            load(full + i % 4 * 8, address(memory + i % 4 * TILE), i % 2 ? &mapV : &mapK, blockIdx.y, first + i / 2 * KEYS);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    copy<QUERIES>(memory + 4 * TILE, q, stride, rows);
    commit();
    arrived<0>();
    asm volatile("bar.sync 3, 256;" ::: "memory"); // the consumers

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
    {
        const unsigned at = address(memory + 4 * TILE + (warp * 16 + lane % 16) * 64);
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            fragments(query[c], at + c / 4 * QUERIES * 128 + ((c % 4 * 2 + lane / 16) ^ (lane % 8)) * 16);
    }

    // Descriptors, in units of 16 bytes: swizzled by 128 bytes, 64 from 8 rows to the next 8, 1024 from slab to slab; a stage is 4096.
    const unsigned long long keyAt = 1ull << 62 | 64ull << 32 | 1ull << 16 | address(memory) >> 4;
    const unsigned long long valueAt = 1ull << 62 | 64ull << 32 | 1024ull << 16 | address(memory + TILE) >> 4;

    float result[D / 8][4] = {};
    float largest[2] = {-1e30f, -1e30f}; // finite: without keys, all of one tile is masked
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys
    float score[KEYS / 8][4] = {}, late[2];
    unsigned weight[KEYS / 16][4] = {};

    // Makes weights of the scores, of which `rest` count; waits for the result only at the end.
    const auto soften = [&](int rest) __attribute__((always_inline)) {

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
            const float reference = __fmul_rn(top, base2);
            const float shrink = power(__fmul_rn(largest[side], base2) - reference);
            largest[side] = top;
            sum[side] *= shrink;
            late[side] = shrink; // for the result, to which a product in flight still adds
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = power(fmaf(score[n][e], base2, -reference));
                    sum[side] += score[n][e];
                }
        }

        done<0>(result);
        // The scores of two neighbouring blocks of 8 keys lie as a left operand of 16 keys does.
#pragma unroll
        for (int c = 0; c < KEYS / 16; ++c) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                weight[c][e] = pack(score[2 * c + e / 2][e % 2 * 2], score[2 * c + e / 2][e % 2 * 2 + 1]);
                result[2 * c][e] *= late[e / 2];
                result[2 * c + 1][e] *= late[e / 2];
            }
        }
    };
    const int turn = warp / 4 + 1; // the named barrier that lets this warpgroup issue its products; 1 begins
    if (turn == 2) asm volatile("bar.arrive 1, 256;" ::: "memory");
    await(full, 0);
    multiply<0>(score, query, keyAt);
    done<0>(score);
    release(empty);
    soften(keys);
    int tile = 1, stage = 1;
    for (; tile * KEYS < keys; ++tile, stage ^= 1) {
        await(full + (stage ^ 1) * 16 + 8, (tile - 1) / 2 % 2);
        await(full + stage * 16, tile / 2 % 2);
        asm volatile("bar.sync %0, 256;" ::"r"(turn) : "memory");
        multiply<0>(score, query, keyAt + stage * 4096);
        multiply<1>(result, weight, valueAt + (stage ^ 1) * 4096);
        asm volatile("bar.arrive %0, 256;" ::"r"(3 - turn) : "memory");
        done<1>(score);
        release(empty + stage * 16);
        soften(keys - tile * KEYS);
        release(empty + (stage ^ 1) * 16 + 8);
    }
    await(full + (stage ^ 1) * 16 + 8, (tile - 1) / 2 % 2);
    multiply<1>(result, weight, valueAt + (stage ^ 1) * 4096);
    done<0>(result);
    if (turn == 1) asm volatile("bar.sync 1, 256;" ::: "memory"); // takes the last turn that was passed on

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
