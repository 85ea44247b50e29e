/*klineage
surface = "cuda"

[[launch]]
kernel = "attend"
grid = ["min(sm_count, (ceil_div(T, 128) + B) * H)"]
block = ["384"]
shared = "197760"
args = ["tm_q", "tm_k", "tm_v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
[[tensormap]]
name = "tm_q"
tensor = "q"
box = [128, 1, 64]
swizzle = "128B"
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
// One block of eight warps owns 128 queries of one head and walks over the keys, 64 at a time, with mma.sync, ldmatrix and two stages
// of keys and values that cp.async fills while the tensor cores work; still missing: wgmma with TMA and specialized warps, more
// queries a warp (16 make it read much shared memory), softmax that overlaps with the products, persistent blocks.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int QUERIES = 128, KEYS = 64, THREADS = 256;
constexpr int ROW = D + 8;       // halves a row of a tile in shared memory: 8 neighbouring rows meet all banks
constexpr int TILE = KEYS * ROW; // halves a tile of keys or values
// Shared memory: keys and values of stage 0, keys and values of stage 1: 4 · TILE halves. Stage 1 holds the queries at first.
static_assert(QUERIES * ROW == 2 * TILE, "the queries fill one stage");

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
                                                                   int B, int H, float scale)
{
    extern __shared__ __align__(16) __half memory[];

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
            const float shrink = exp2f((largest[side] - top) * base2);
            largest[side] = top;
            sum[side] *= shrink;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 2 * side; e < 2 * side + 2; ++e) {
                    score[n][e] = exp2f((score[n][e] - top) * base2);
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
            for (int n = 0; n < D / 16; ++n) {
                unsigned b[4];
                transposed(b, valueAt + offset + c * 16 * ROW * 2 + n * 32);
                multiply(result[2 * n], weight, b[0], b[1]);
                multiply(result[2 * n + 1], weight, b[2], b[3]);
            }
        }
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

// The kernel that is launched (attention, above, was before it): two warpgroups own 64 queries each and multiply by wgmma, a thread of a third
// fetches 128 keys and values at a time by TMA. Tiles go from the last, the only one that may be partly filled, to the first. Tiles in shared
// memory, each with a barrier of its arrival and, 48 bytes on, one of its release: 0 and 2 keys, 1 and 3 values, 4 and 5 queries. Blocks stay
// and take one item (128 queries of a head) after the other; the first scores of an item go with the last weighted sum of the one before.
constexpr int WIDE = 128, BYTES = WIDE * D * 2; // keys a tile; bytes a tile: two halves of 64 columns, each of 128 rows of 128 bytes, swizzled
struct alignas(64) TensorMap { unsigned long long opaque[16]; };
#define EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
#define OUTPUT(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define OUTPUTS OUTPUT(0), OUTPUT(1), OUTPUT(2), OUTPUT(3), OUTPUT(4), OUTPUT(5), OUTPUT(6), OUTPUT(7), OUTPUT(8), OUTPUT(9), OUTPUT(10), OUTPUT(11), OUTPUT(12), OUTPUT(13), OUTPUT(14), OUTPUT(15)
#define REGISTERS "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"
__device__ __forceinline__ void fence(float (&c)[16][4]) { asm volatile("wgmma.fence.sync.aligned;" : OUTPUTS : : "memory"); }
__device__ __forceinline__ void sealed() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int LEFT> __device__ __forceinline__ void done(float (&c)[16][4]) { asm volatile("wgmma.wait_group.sync.aligned %64;" : OUTPUTS : "n"(LEFT) : "memory"); }
__device__ __forceinline__ void release(unsigned base, int tile, int lane) { asm volatile("{ .reg .pred p; setp.eq.s32 p, %1, 0; @p mbarrier.arrive.shared::cta.b64 _, [%0]; }" : : "r"(base + 6 * BYTES + 48 + tile * 8), "r"(lane) : "memory"); }
__device__ __forceinline__ float power(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
__device__ __forceinline__ void awaitPhase(unsigned base, int barrier, unsigned parity) {
    for (unsigned over = 0; !over;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(base + 6 * BYTES + barrier * 8), "r"(parity) : "memory"); }
__device__ __forceinline__ void fetch(const TensorMap *map, unsigned base, int tile, unsigned parity, int head, int row) {
    awaitPhase(base, tile + 6, parity);
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(base + 6 * BYTES + tile * 8), "r"(BYTES) : "memory");
    EACH(side, 2) asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" : : "r"(base + tile * BYTES + side * (BYTES / 2)), "l"(map), "r"(side * 64), "r"(head), "r"(row), "r"(base + 6 * BYTES + tile * 8) : "memory"); }
__device__ __forceinline__ void scores(float (&c)[16][4], unsigned long long a, unsigned long long b) {
    EACH(i, D / 16) asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS ", %64, %65, p, 1, 1, 0, 0; }"
                                 : OUTPUTS : "l"(a + (i / 4 * 1024 + i % 4 * 2)), "l"(b + (i / 4 * 1024 + i % 4 * 2)), "r"(i) : "memory");
    sealed(); }
__device__ __forceinline__ void weighted(float (&c)[16][4], const unsigned (&a)[8][4], unsigned long long b) {
    EACH(i, WIDE / 16) asm volatile("{ .reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " REGISTERS ", {%64, %65, %66, %67}, %68, p, 1, 1, 1; }"
                                    : OUTPUTS : "r"(a[i][0]), "r"(a[i][1]), "r"(a[i][2]), "r"(a[i][3]), "l"(b + i * 128), "r"(1) : "memory");
    sealed(); }
__device__ __forceinline__ void soften(float (&score)[16][4], float (&largest)[2], float (&sum)[2], float (&shrink)[2], float base2) {
    EACH(side, 2) {
        float top = largest[side];
        EACH(n, WIDE / 8) top = fmaxf(top, fmaxf(score[n][2 * side], score[n][2 * side + 1]));
        EACH(i, 2) top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, i + 1));
        shrink[side] = power((largest[side] - top) * base2), largest[side] = top, sum[side] *= shrink[side];
        EACH(n, WIDE / 8) EACH(e, 2) sum[side] += score[n][2 * side + e] = power(fmaf(score[n][2 * side + e], base2, -top * base2));
    } }
__device__ __forceinline__ void ready(const float (&score)[16][4], unsigned (&weight)[8][4], float (&result)[16][4], const float (&shrink)[2]) {
    EACH(i, WIDE / 16) EACH(e, 4) weight[i][e] = pack(score[2 * i + e / 2][e % 2 * 2], score[2 * i + e / 2][e % 2 * 2 + 1]);
    EACH(i, WIDE / 16) asm volatile("" : "+r"(weight[i][0]), "+r"(weight[i][1]), "+r"(weight[i][2]), "+r"(weight[i][3]) : : "memory");
    EACH(n, D / 8) EACH(e, 4) result[n][e] *= shrink[e / 2]; }
struct Item { int head, begin, rows, first, keys, tiles; };
// The work'th item; a head has count of them.
__device__ __forceinline__ bool assign(Item &item, const int *cuQ, const int *cuK, int B, int H, int count, int work) {
    int sequence;
    if (work >= count * H || !locate(cuQ, B, work % count, sequence, item.begin)) return false;
    item.head = work / count, item.rows = min(QUERIES, cuQ[sequence + 1] - item.begin), item.first = cuK[sequence];
    item.keys = cuK[sequence + 1] - item.first, item.tiles = max(1, (item.keys + WIDE - 1) / WIDE);
    return true; }
__device__ __forceinline__ void mask(float (&score)[16][4], int rest, int lane) {
    EACH(n, WIDE / 8) EACH(e, 4) score[n][e] = n * 8 + lane % 4 * 2 + e % 2 < rest ? score[n][e] : -__int_as_float(0x7f800000); }
// The scores of the g'th tile, which are there at the end, and the weighted sum of the one before; the warpgroups take turns.
__device__ __forceinline__ void products(float (&score)[16][4], float (&result)[16][4], const unsigned (&weight)[8][4], unsigned long long queries, unsigned long long at, unsigned base, int g, int team, int lane) {
    const int key = g % 2 * 2, value = 3 - key;
    awaitPhase(base, key, g >> 1 & 1), awaitPhase(base, value, (g - 1) >> 1 & 1);
    asm volatile("bar.sync %0, 256;" : : "r"(1 + team) : "memory");
    fence(result), scores(score, queries, at + key * 2048);
    weighted(result, weight, at + value * 2048);
    asm volatile("bar.arrive %0, 256;" : : "r"(2 - team) : "memory");
    done<1>(score), release(base, key, lane); }
// Neighbouring lanes exchange, so that each writes 8 bytes and a row's four lanes write 32.
__device__ __forceinline__ void store(const float (&result)[16][4], float (&sum)[2], __half *out, const Item &item, int H, int warp, int lane) {
    const bool odd = lane % 2;
    EACH(side, 2) {
        EACH(i, 2) sum[side] += __shfl_xor_sync(0xffffffffu, sum[side], i + 1);
        const float inverse = sum[side] > 0.0f ? 1.0f / sum[side] : 0.0f;
        const int row = warp * 16 + lane / 4 + side * 8;
        __half *to = out + (size_t(item.begin + row) * H + item.head) * D + lane % 2 * 8 + lane % 4 / 2 * 4;
        EACH(n, D / 16) {
            const unsigned low = pack(result[2 * n][2 * side] * inverse, result[2 * n][2 * side + 1] * inverse);
            const unsigned high = pack(result[2 * n + 1][2 * side] * inverse, result[2 * n + 1][2 * side + 1] * inverse);
            const unsigned other = __shfl_xor_sync(0xffffffffu, odd ? low : high, 1);
            if (row < item.rows) *reinterpret_cast<uint2 *>(to + n * 16) = make_uint2(odd ? other : low, odd ? high : other);
        }
    }
    __syncwarp(); }
extern "C" __global__ __launch_bounds__(384, 1) void attend(const __grid_constant__ TensorMap q, const __grid_constant__ TensorMap k, const __grid_constant__ TensorMap v, const int *cuQ, const int *cuK, __half *out, int B, int H, float scale)
{
    extern __shared__ __align__(16) __half memory[];
    int count = 0, work = blockIdx.x;
    for (int s = 0; s < B; ++s) count += (cuQ[s + 1] - cuQ[s] + QUERIES - 1) / QUERIES;
    Item now, next;
    if (!assign(now, cuQ, cuK, B, H, count, work)) return;
    const int lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), team = warp / 4;
    const unsigned base = (address(memory) + 1023) / 1024 * 1024;
    if (threadIdx.x < 12) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.mbarrier_init.release.cluster;" : : "r"(base + 6 * BYTES + threadIdx.x * 8), "r"(threadIdx.x < 6 ? 1 : 8) : "memory");
    __syncthreads();
    if (team == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x != 256) return;
        for (int i = 0, g = 0; assign(now, cuQ, cuK, B, H, count, work); ++i, work += gridDim.x)
            for (int j = now.tiles - 1; j >= 0; --j, ++g) {
                fetch(&k, base, g % 2 * 2, ~g >> 1 & 1, now.head, now.first + j * WIDE);
                if (j == now.tiles - 1) fetch(&q, base, 4 + i % 2, ~i >> 1 & 1, now.head, now.begin);
                fetch(&v, base, g % 2 * 2 + 1, ~g >> 1 & 1, now.head, now.first + j * WIDE);
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const unsigned long long at = 1ull << 62 | 64ull << 32 | 1024ull << 16 | base >> 4, queries = at + 8192 + team * 512; // tiles as wgmma describes them
    float score[16][4] = {}, result[16][4] = {}, largest[2] = {-1e30f, -1e30f}, sum[2] = {}, shrink[2], base2 = scale * 1.4426950408889634f;
    unsigned weight[8][4];
    awaitPhase(base, 4, 0), awaitPhase(base, 0, 0);
    fence(score), scores(score, queries, at);
    done<0>(score), release(base, 0, lane);
    mask(score, now.keys - (now.tiles - 1) * WIDE, lane);
    soften(score, largest, sum, shrink, base2), ready(score, weight, result, shrink);
    if (team == 1) asm volatile("bar.arrive 1, 256;" : : : "memory");
    int g = 1; // tiles whose scores are done, over all items
    for (int i = 1;; ++i, ++g) { // the rest of item i - 1, then the first tile of item i
        for (int j = 1; j < now.tiles; ++j, ++g) {
            products(score, result, weight, queries + (i - 1) % 2 * 2048, at, base, g, team, lane);
            soften(score, largest, sum, shrink, base2);
            done<0>(result), release(base, 3 - g % 2 * 2, lane);
            ready(score, weight, result, shrink);
        }
        release(base, 4 + (i - 1) % 2, lane);
        work += gridDim.x;
        if (!assign(next, cuQ, cuK, B, H, count, work)) break;
        awaitPhase(base, 4 + i % 2, i >> 1 & 1);
        products(score, result, weight, queries + i % 2 * 2048, at, base, g, team, lane);
        float total[2] = {sum[0], sum[1]};
        EACH(side, 2) largest[side] = -1e30f, sum[side] = 0.0f;
        mask(score, next.keys - (next.tiles - 1) * WIDE, lane), soften(score, largest, sum, shrink, base2);
        done<0>(result), release(base, 3 - g % 2 * 2, lane);
        store(result, total, out, now, H, warp, lane);
        EACH(n, D / 8) EACH(e, 4) result[n][e] = 0.0f;
        ready(score, weight, result, shrink);
        now = next;
    }
    awaitPhase(base, (g - 1) % 2 * 2 + 1, (g - 1) >> 1 & 1);
    fence(result), weighted(result, weight, at + ((g - 1) % 2 * 2 + 1) * 2048), done<0>(result);
    store(result, sum, out, now, H, warp, lane);
}
