/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 128) + B", "H"]
block = ["256"]
shared = "69632"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
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
