/*klineage
surface = "cuda"
tensormap = [{ name = "tm_q", tensor = "q", box = [128, 1, 64], swizzle = "128B" },
             { name = "tm_k", tensor = "k", box = [128, 1, 64], swizzle = "128B" },
             { name = "tm_v", tensor = "v", box = [128, 1, 64], swizzle = "128B" }]

[[launch]]
kernel = "attention"
grid = ["sm_count"]
block = ["384"]
shared = "230400"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)", "tm_q", "tm_k", "tm_v"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A block owns 128 queries of a head, then others: two warpgroups multiply (wgmma) and overlap softmax with that, one thread of a third one loads (TMA).

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 128, THREADS = 384;
constexpr int ROW = D + 8;       // halves a row of a tile in shared memory: 8 neighbouring rows meet all banks
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
constexpr int STAGES = 5, SLOTS = STAGES + 2, BYTES = KEYS * D * 2; // shared memory: STAGES tiles of keys or values, 2 of queries; each 2 x 128 swizzled rows of 128 bytes

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

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
// Begins to load a tile, 64 columns and 64 columns; the barrier counts its bytes.
__device__ __forceinline__ void load(unsigned to, const TensorMap *map, int head, int row, unsigned barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(BYTES) : "memory");
    for (int column = 0; column < D; column += 64)
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to + column * 256), "l"(map), "r"(column), "r"(head), "r"(row), "r"(barrier) : "memory");
}
__device__ __forceinline__ void await(unsigned barrier, unsigned parity)
{ asm volatile("{\n.reg .pred p;\nAGAIN:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra AGAIN;\n}" ::"r"(barrier), "r"(parity) : "memory"); }
#define PLACES "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
#define FOUR(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define ALL FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(4), FOUR(5), FOUR(6), FOUR(7), FOUR(8), FOUR(9), FOUR(10), FOUR(11), FOUR(12), FOUR(13), FOUR(14), FOUR(15)
// Begins c = queries · b (keys) or c += weights · b (values), for the 64 queries of a warpgroup; b and queries are in shared memory.
template <bool SCORES> __device__ __forceinline__ void product(float (&c)[16][4], unsigned long long queries, const unsigned (&weights)[8][4], unsigned long long b)
{
    asm volatile("wgmma.fence.sync.aligned;" : ALL : : "memory");
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (SCORES)
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %64, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " PLACES ", %65, %66, p, 1, 1, 0, 0;\n}" : ALL : "r"(i), "l"(queries + (i / 4 * 1024 + i % 4 * 2)), "l"(b + (i / 4 * 1024 + i % 4 * 2)));
        else
            asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %64, 0;\nwgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " PLACES ", {%65, %66, %67, %68}, %69, p, 1, 1, 1;\n}" : ALL : "r"(1), "r"(weights[i][0]), "r"(weights[i][1]), "r"(weights[i][2]), "r"(weights[i][3]), "l"(b + i * 128));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int LEFT> __device__ __forceinline__ void finish(float (&c)[16][4]) { asm volatile("wgmma.wait_group.sync.aligned %64;" : ALL : "n"(LEFT) : "memory"); }
__device__ __forceinline__ void release(unsigned barrier) { if (threadIdx.x % 32 == 0) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }
__device__ __forceinline__ float power(float x) { asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); return x; }

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
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address(to + row * ROW + column)), "l"(source), "r"(bytes)
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

extern "C" __global__ __launch_bounds__(THREADS, 1) void attention(const __half *q, const __half *k, const __half *v,
                                                                   const int *cuQ, const int *cuK, __half *out,
                                                                   int B, int H, float scale, const __grid_constant__ TensorMap tmQ, const __grid_constant__ TensorMap tmK, const __grid_constant__ TensorMap tmV)
{
    extern __shared__ __align__(16) __half memory[];
    __shared__ __align__(8) unsigned long long barriers[2 * SLOTS]; // full slots, empty slots; the last two of each are for queries

    int blocks = 0; // tiles of queries of a head
    for (int s = 0; s < B; ++s)
        blocks += (cuQ[s + 1] - cuQ[s] + QUERIES - 1) / QUERIES;
    const size_t stride = size_t(H) * D;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int group = lane / 4, member = lane % 4;
    const float base2 = scale * 1.4426950408889634f;
    const float infinity = __int_as_float(0x7f800000);

    const unsigned base = (address(memory) + 1023) / 1024 * 1024, full = address(reinterpret_cast<const __half *>(barriers)), empty = full + SLOTS * 8;
    if (threadIdx.x < 2 * SLOTS)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::"r"(full + threadIdx.x * 8), "r"(threadIdx.x / SLOTS == 1 ? 8 : 1) : "memory");
    __syncthreads();
    int i = 0, turn = 0; // tiles of keys and values, and of queries, that this block has loaded or used so far
    if (warp >= 8) { // From the last tile to the first, in the order of use: keys 0, keys 1, values 0, keys 2, values 1, ...
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;" ::: "memory");
        if (threadIdx.x != 256)
            return;
        for (int work = blockIdx.x; work < blocks * H; work += gridDim.x) {
            int sequence = 0, begin = 0;
            locate(cuQ, B, work % blocks, sequence, begin);
            const int head = work / blocks, first = cuK[sequence], tiles = (cuK[sequence + 1] - first + KEYS - 1) / KEYS;
            if (tiles <= 0)
                continue;
            const int place = STAGES + turn % 2;
            await(empty + place * 8, (turn / 2 + 1) & 1);
            load(base + place * BYTES, &tmQ, head, begin, full + place * 8);
            ++turn;
            for (int j = 0; j < 2 * tiles; ++j, ++i) {
                const int values = j == 2 * tiles - 1 || (j > 0 && j % 2 == 0) ? 1 : 0, slot = i % STAGES;
                await(empty + slot * 8, (i / STAGES + 1) & 1);
                load(base + slot * BYTES, values ? &tmV : &tmK, head, first + (tiles - 1 - (j + 1) / 2 + values) * KEYS, full + slot * 8);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;" ::: "memory");
    const unsigned long long shape = 1024ull << 16 | 64ull << 32 | 1ull << 62, stages = shape + base / 16;
    const unsigned half = __shfl_sync(0xffffffffu, warp, 0) / 4 * (BYTES / 4); // where the queries of the warpgroup begin in their tile
    float result[D / 8][4], largest[2], sum[2], shrinks[2];
    unsigned weights[KEYS / 16][4];
    // Makes weights of scores; the product before them, still under way, ends in between and frees its stage.
    const auto soften = [&](float (&score)[KEYS / 8][4], int rest, unsigned used) __attribute__((always_inline)) {
#if 0 // as it was with mma.sync
    copy<QUERIES>(memory + 2 * TILE, q, stride, rows);
    commit();
    if (keys > 0) {
        copy<KEYS>(memory, k, stride, keys);
        copy<KEYS>(memory + TILE, v, stride, keys);
    }
    commit();
    arrived<1>();
    __syncthreads();

    // The queries of the warp, as the left operands of the first product
    unsigned query[D / 16][4];
    {
        const unsigned at = address(memory + 2 * TILE + (warp * 16 + lane % 16) * ROW + lane / 16 * 8);
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
            fragments(query[c], at + c * 32);
    }

    // Where this lane's row begins: keys 0-7 and 8-15 by the upper bit of the lane's matrix, columns 0-7 and 8-15 by the lower bit; for the
    // values, which are transposed, the other way round.
    const unsigned keyAt = address(memory + (lane % 8 + lane / 16 * 8) * ROW + lane / 8 % 2 * 8);
    const unsigned valueAt = address(memory + TILE + lane % 16 * ROW + lane / 16 * 8);

    float result[D / 8][4] = {};
    float largest[2] = {-infinity, -infinity};
    float sum[2] = {0.0f, 0.0f}; // of this thread's keys

    int stage = 0;
    for (int start = 0; start < keys; start += KEYS, stage ^= 1) {
        const int rest = keys - start; // at least 1: every tile has a key that counts
        // All have this tile then, and none still reads the other stage (nor, at first, the queries in it).
        arrived<0>();
        __syncthreads();
        if (rest > KEYS) {
            __half *next = memory + (stage ^ 1) * 2 * TILE;
            copy<KEYS>(next, k + (start + KEYS) * stride, stride, rest - KEYS);
            copy<KEYS>(next + TILE, v + (start + KEYS) * stride, stride, rest - KEYS);
        }
        commit();
        const unsigned offset = stage * 2 * TILE * 2; // bytes

        float score[KEYS / 8][4] = {};
#pragma unroll
        for (int c = 0; c < D / 16; ++c)
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                unsigned b[4];
                fragments(b, keyAt + offset + n * 16 * ROW * 2 + c * 32);
                multiply(score[2 * n], query[c], b[0], b[1]);
                multiply(score[2 * n + 1], query[c], b[2], b[3]);
            }
#endif

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
            const float shrink = shrinks[side] = power((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = power(fmaf(score[n][e], base2, -top * base2));
                    sum[side] += score[n][e];
                }
        }
        finish<0>(result);
        release(used);
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const float shrink = shrinks[side];
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
            for (int n = 0; n < 4; ++n)
                weights[c][n] = weight[n];
#if 0
            for (int n = 0; n < D / 16; ++n) {
                unsigned b[4];
                transposed(b, valueAt + offset + c * 16 * ROW * 2 + n * 32);
                multiply(result[2 * n], weight, b[0], b[1]);
                multiply(result[2 * n + 1], weight, b[2], b[3]);
            }
#endif
        }
    };
    if (warp >= 4) asm volatile("bar.arrive 1, 256;" ::: "memory"); // the two warpgroups take turns, the first one begins
    for (int work = blockIdx.x; work < blocks * H; work += gridDim.x) {
    int sequence = 0, begin = 0;
    locate(cuQ, B, work % blocks, sequence, begin);
    const int rows = min(QUERIES, cuQ[sequence + 1] - begin), keys = cuK[sequence + 1] - cuK[sequence], tiles = (keys + KEYS - 1) / KEYS;
    __half *const to = out + begin * stride + size_t(work / blocks) * D;
#pragma unroll
    for (int n = 0; n < D / 8; ++n)
        result[n][0] = result[n][1] = result[n][2] = result[n][3] = 0.0f;
    largest[0] = largest[1] = -infinity;
    sum[0] = sum[1] = 0.0f;
    if (tiles > 0) {
        float score[KEYS / 8][4];
        const int start = i % STAGES, place = STAGES + turn % 2, last = i + 2 * tiles - 1;
        const unsigned long long queries = shape + (base + place * BYTES + half) / 16;
        await(full + place * 8, turn / 2 & 1), await(full + start * 8, i / STAGES & 1);
        product<true>(score, queries, weights, stages + start * (BYTES / 16));
        finish<0>(score);
        soften(score, keys - (tiles - 1) * KEYS, empty + start * 8);
        for (++i; i < last; i += 2) {
            const int slot = i % STAGES, next = (i + 1) % STAGES;
            float score[KEYS / 8][4];
            await(full + slot * 8, i / STAGES & 1);
            asm volatile("bar.sync %0, 256;" ::"r"(1 + warp / 4) : "memory");
            product<true>(score, queries, weights, stages + slot * (BYTES / 16));
            await(full + next * 8, (i + 1) / STAGES & 1);
            product<false>(result, queries, weights, stages + next * (BYTES / 16));
            asm volatile("bar.arrive %0, 256;" ::"r"(2 - warp / 4) : "memory");
            finish<1>(score);
            release(empty + slot * 8);
            soften(score, KEYS, empty + next * 8);
        }
        await(full + i % STAGES * 8, i / STAGES & 1);
        product<false>(result, queries, weights, stages + i % STAGES * (BYTES / 16));
        finish<0>(result);
        release(empty + i % STAGES * 8);
        release(empty + place * 8);
        ++i, ++turn;
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
                *reinterpret_cast<__half2 *>(to + row * stride + n * 8 + member * 2) =
                    __floats2half2_rn(result[n][2 * side] * inverse, result[n][2 * side + 1] * inverse);
        }
    }
    __syncwarp();
    }
}
