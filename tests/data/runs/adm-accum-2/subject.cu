/*klineage
surface = "cuda"

[[launch]]
kernel = "attention"
grid = ["ceil_div(T, 64) + B", "H"]
block = ["256"]
shared = "69632"
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// One block of 256 threads owns 64 queries of one sequence and head and walks once over its keys, 64 at a time in shared memory, with
// an online softmax and 4 x 4 scores and 4 x 8 results in each thread's registers; still missing are tensor cores, any overlap of
// copies with arithmetic, and a cheaper path for tiles that need no mask.

#include <cuda_fp16.h>

constexpr int D = 128;
constexpr int BM = 64; // queries a block
constexpr int BN = 64; // keys a step
constexpr int THREADS = 256;
constexpr int LD = D + 8;   // halves a row of the tiles in shared memory
constexpr int LDP = BN + 4; // floats a row of the weights

// 64 rows of D halves to shared memory, zeros from row `rows` on.
__device__ __forceinline__ void loadTile(__half *tile, const __half *source, int rows, size_t stride)
{
    for (int i = threadIdx.x; i < 64 * (D / 8); i += THREADS) {
        const int row = i / (D / 8), column = i % (D / 8) * 8;
        uint4 x = make_uint4(0u, 0u, 0u, 0u);
        if (row < rows)
            x = *reinterpret_cast<const uint4 *>(source + row * stride + column);
        *reinterpret_cast<uint4 *>(tile + row * LD + column) = x;
    }
}

// Eight halves of shared memory as floats.
__device__ __forceinline__ void widen(float (&x)[8], const __half *source)
{
    const uint4 raw = *reinterpret_cast<const uint4 *>(source);
    const __half2 *pairs = reinterpret_cast<const __half2 *>(&raw);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const float2 f = __half22float2(pairs[j]);
        x[2 * j] = f.x;
        x[2 * j + 1] = f.y;
    }
}

extern "C" __global__ __launch_bounds__(256, 2) void attention(const __half *q, const __half *k, const __half *v,
                                                               const int *cuQ, const int *cuK, __half *out,
                                                               int B, int H, float scale)
{
    extern __shared__ __align__(16) unsigned char memory[];
    __half *qs = reinterpret_cast<__half *>(memory);
    __half *ks = qs + BM * LD;
    __half *vs = ks + BN * LD;
    float *ps = reinterpret_cast<float *>(vs + BN * LD);

    const float negInf = __int_as_float(0xff800000);

    // Which sequence, and which 64 of its queries?
    int tile = blockIdx.x, sequence = 0;
    for (; sequence < B; ++sequence) {
        const int tiles = (cuQ[sequence + 1] - cuQ[sequence] + BM - 1) / BM;
        if (tile < tiles)
            break;
        tile -= tiles;
    }
    if (sequence == B)
        return;
    const int firstQ = cuQ[sequence], m = cuQ[sequence + 1] - firstQ;
    const int firstK = cuK[sequence], n = cuK[sequence + 1] - firstK;
    const int q0 = tile * BM;
    const int end = q0 + min(BM, m - q0) + n - m; // keys that the last query sees; may be negative, never more than n

    const int head = blockIdx.y;
    const size_t stride = size_t(H) * D;
    q += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    out += (size_t(firstQ) + q0) * stride + size_t(head) * D;
    k += size_t(firstK) * stride + size_t(head) * D;
    v += size_t(firstK) * stride + size_t(head) * D;

    // Thread (tx, ty) has rows ty * 4 + i; scores of keys tx + 16 * j; results of columns tx * 8 + c.
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    const float factor2 = scale * 1.4426950408889634f;

    float result[4][8] = {};
    float largest[4], sum[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        largest[i] = negInf;
        sum[i] = 0.0f;
    }

    loadTile(qs, q, m - q0, stride);

    for (int k0 = 0; k0 < end; k0 += BN) {
        loadTile(ks, k + size_t(k0) * stride, n - k0, stride);
        loadTile(vs, v + size_t(k0) * stride, n - k0, stride);
        __syncthreads();

        float s[4][4] = {};
#pragma unroll 2
        for (int d = 0; d < D; d += 8) {
            float a[4][8];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                widen(a[i], qs + (ty * 4 + i) * LD + d);
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float b[8];
                widen(b, ks + (tx + 16 * j) * LD + d);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int c = 0; c < 8; ++c)
                        s[i][j] += a[i][c] * b[c];
            }
        }

#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int row = ty * 4 + i;
            const int limit = min(n, q0 + row + 1 + n - m); // this query sees the keys before it
            float top = negInf;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const int key = k0 + tx + 16 * j;
                s[i][j] = key < limit ? s[i][j] * factor2 : negInf;
                top = fmaxf(top, s[i][j]);
            }
#pragma unroll
            for (int lanes = 8; lanes > 0; lanes /= 2)
                top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, lanes));
            const float next = fmaxf(largest[i], top);
            const float base = next == negInf ? 0.0f : next;
            const float shrink = exp2f(largest[i] - base);
            largest[i] = next;
            float part = 0.0f;
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float weight = exp2f(s[i][j] - base);
                part += weight;
                ps[row * LDP + tx + 16 * j] = weight;
            }
            sum[i] = sum[i] * shrink + part; // of this thread's keys only, until the end
#pragma unroll
            for (int c = 0; c < 8; ++c)
                result[i][c] *= shrink;
        }
        __syncwarp(); // the weights of a row are written and read by the same 16 lanes

#pragma unroll 2
        for (int key = 0; key < BN; key += 4) {
            float w[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float4 x = *reinterpret_cast<const float4 *>(ps + (ty * 4 + i) * LDP + key);
                w[i][0] = x.x;
                w[i][1] = x.y;
                w[i][2] = x.z;
                w[i][3] = x.w;
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                float b[8];
                widen(b, vs + (key + j) * LD + tx * 8);
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int c = 0; c < 8; ++c)
                        result[i][c] += w[i][j] * b[c];
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float total = sum[i];
#pragma unroll
        for (int lanes = 8; lanes > 0; lanes /= 2)
            total += __shfl_xor_sync(0xffffffffu, total, lanes);
        const float inverse = total > 0.0f ? 1.0f / total : 0.0f;
        const int row = ty * 4 + i;
        if (q0 + row < m) {
            uint4 raw;
            __half2 *pairs = reinterpret_cast<__half2 *>(&raw);
#pragma unroll
            for (int c = 0; c < 4; ++c)
                pairs[c] = __floats2half2_rn(result[i][2 * c] * inverse, result[i][2 * c + 1] * inverse);
            *reinterpret_cast<uint4 *>(out + row * stride + tx * 8) = raw;
        }
    }
}
