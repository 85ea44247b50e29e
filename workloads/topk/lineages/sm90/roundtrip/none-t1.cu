/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["512"]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order. One block a row.
//
// Keys descend: a smaller key is a larger number.

constexpr unsigned THREADS = 512;
constexpr unsigned BINS = 2048;
constexpr unsigned MAX_K = 1024;           // of the fast path
constexpr unsigned MAX_CANDIDATES = 512;   // in the bin of the K-th, of the fast path
constexpr unsigned ALL = 0xffffffffu;

// Order-preserving (reversed) key of a float's bits
static __device__ __forceinline__ unsigned descending(unsigned bits)
{
    return bits ^ (~unsigned(int(bits) >> 31) & 0x7fffffffu);
}

// The same of two numbers that are first rounded to half precision: 16 bits each
static __device__ __forceinline__ unsigned descendingHalves(unsigned low, unsigned high)
{
    unsigned u;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
    const unsigned flip = ((u >> 15) & 0x00010001u) * 0x7fffu;
    return u ^ 0x7fff7fffu ^ flip;
}

static __device__ __forceinline__ uint4 load4(const unsigned *p)
{
    uint4 v;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}

extern "C" __global__ void __launch_bounds__(512) topk(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ __align__(16) unsigned hist[BINS];
    __shared__ __align__(16) uint2 stage[MAX_K + MAX_CANDIDATES];
    __shared__ unsigned warpTotal[16];
    __shared__ uint4 selected;
    __shared__ unsigned counters[2];

    const unsigned t = threadIdx.x;
    const unsigned lane = t & 31;
    const unsigned warp = t >> 5;
    const unsigned count = unsigned(S);
    const unsigned k = unsigned(K);
    const unsigned *row = reinterpret_cast<const unsigned *>(values) + size_t(blockIdx.x) * count;
    unsigned *outValues = reinterpret_cast<unsigned *>(topValues) + size_t(blockIdx.x) * k;
    int *outIndices = indices + size_t(blockIdx.x) * k;

    const bool fast = count <= 4096 && k <= MAX_K && (count & 3) == 0 && (reinterpret_cast<size_t>(row) & 15) == 0;
    if (fast) {
        // Loads are under way while the histogram is cleared
        const bool valid0 = 4 * t < count;
        const bool valid1 = 4 * (t + THREADS) < count;
        const uint4 x0 = load4(row + (valid0 ? 4 * t : 0));
        const uint4 x1 = load4(row + (valid1 ? 4 * (t + THREADS) : 0));
        reinterpret_cast<uint4 *>(hist)[t] = make_uint4(0, 0, 0, 0);
        __syncthreads();

        const unsigned bits[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
        unsigned bin[8];
        unsigned rank[8];
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            const unsigned d = descendingHalves(bits[i], bits[i + 1]);
            bin[i] = (d >> 5) & 0x7ffu;
            bin[i + 1] = d >> 21;
            rank[i] = 0;
            rank[i + 1] = 0;
        }
        if (valid0) {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                rank[i] = atomicAdd(&hist[bin[i]], 1u);
        } else {
#pragma unroll
            for (int i = 0; i < 4; ++i)
                bin[i] = 0x7fffffffu;
        }
        if (valid1) {
#pragma unroll
            for (int i = 4; i < 8; ++i)
                rank[i] = atomicAdd(&hist[bin[i]], 1u);
        } else {
#pragma unroll
            for (int i = 4; i < 8; ++i)
                bin[i] = 0x7fffffffu;
        }
        __syncthreads();

        // Sums of 128 bins a warp
        const uint4 v = reinterpret_cast<const uint4 *>(hist)[t];
        const unsigned sum = v.x + v.y + v.z + v.w;
        const unsigned total = __reduce_add_sync(ALL, sum);
        if (lane == 0)
            warpTotal[warp] = total;
        __syncthreads();

        // First place of each bin that is needed, and the bin of the K-th
        if (total != 0) {
            const unsigned other = warpTotal[lane & 15];
            unsigned inclusive = sum;
#pragma unroll
            for (unsigned d = 1; d < 32; d <<= 1) {
                const unsigned y = __shfl_up_sync(ALL, inclusive, d);
                if (lane >= d)
                    inclusive += y;
            }
            const unsigned before = __reduce_add_sync(ALL, lane < warp ? other : 0u);
            if (before < k) {
                const unsigned b0 = before + inclusive - sum;
                const unsigned b1 = b0 + v.x;
                const unsigned b2 = b1 + v.y;
                const unsigned b3 = b2 + v.z;
                const unsigned b4 = b3 + v.w;
                reinterpret_cast<uint4 *>(hist)[t] = make_uint4(b0, b1, b2, b3);
                if (b0 < k && b4 >= k) {
                    if (b1 >= k)
                        selected = make_uint4(4 * t, b0, v.x, 0);
                    else if (b2 >= k)
                        selected = make_uint4(4 * t + 1, b1, v.y, 0);
                    else if (b3 >= k)
                        selected = make_uint4(4 * t + 2, b2, v.z, 0);
                    else
                        selected = make_uint4(4 * t + 3, b3, v.w, 0);
                }
            }
        }
        __syncthreads();

        const uint4 choice = selected;
        const unsigned threshold = choice.x;
        const unsigned base = choice.y;   // elements in bins above that of the K-th
        const unsigned n = choice.z;      // elements in its bin
        if (n <= MAX_CANDIDATES) {
            // All that lie above to their places, and those of the K-th's bin behind them
            unsigned first[8];
#pragma unroll
            for (int i = 0; i < 8; ++i)
                first[i] = hist[min(bin[i], threshold)];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                const unsigned column = 4 * (t + (i >= 4 ? THREADS : 0)) + (i & 3);
                if (bin[i] <= threshold)
                    stage[first[i] + rank[i]] = make_uint2(bits[i], column);
            }
            __syncthreads();

            for (unsigned p = t; p < base; p += THREADS) {
                const uint2 e = stage[p];
                outValues[p] = e.x;
                outIndices[p] = int(e.y);
            }

            // Half a warp ranks one candidate
            const unsigned need = k - base;
            const unsigned l = t & 15;
            const uint2 *candidates = stage + base;
            for (unsigned c0 = 0; c0 < n; c0 += THREADS / 16) {
                const unsigned c = c0 + (t >> 4);
                const uint2 e = candidates[min(c, n - 1)];
                const unsigned mine = descending(e.x);
                unsigned place = 0;
                for (unsigned j0 = 0; j0 < n; j0 += 16) {
                    const unsigned j = j0 + l;
                    const unsigned other = descending(candidates[min(j, n - 1)].x);
                    const bool ahead = j < n && (other < mine || (other == mine && j < c));
                    const unsigned votes = __ballot_sync(ALL, ahead);
                    place += __popc((votes >> (lane & 16)) & 0xffffu);
                }
                if (l == 0 && c < n && place < need) {
                    outValues[base + place] = e.x;
                    outIndices[base + place] = int(e.y);
                }
            }
            return;
        }
    }

    // Any row: the key of the K-th by four passes of eight bits each
    unsigned prefix = 0;
    unsigned mask = 0;
    unsigned need = k;
    for (int shift = 24; shift >= 0; shift -= 8) {
        __syncthreads();
        if (t < 256)
            hist[t] = 0;
        __syncthreads();
        for (unsigned i = t; i < count; i += THREADS) {
            const unsigned key = descending(row[i]);
            if ((key & mask) == prefix)
                atomicAdd(&hist[(key >> shift) & 255u], 1u);
        }
        __syncthreads();
        if (t < 32) {
            unsigned h[8];
            unsigned sum = 0;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                h[i] = hist[8 * lane + i];
                sum += h[i];
            }
            unsigned inclusive = sum;
#pragma unroll
            for (unsigned d = 1; d < 32; d <<= 1) {
                const unsigned y = __shfl_up_sync(ALL, inclusive, d);
                if (lane >= d)
                    inclusive += y;
            }
            unsigned e = inclusive - sum;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                if (e < need && need <= e + h[i])
                    selected = make_uint4(8 * lane + i, e, h[i], 0);
                e += h[i];
            }
        }
        __syncthreads();
        const uint4 choice = selected;
        prefix |= choice.x << shift;
        mask |= 255u << shift;
        need -= choice.y;
    }

    // All that lie before the K-th, and as many of its equals as are still needed
    if (t < 2)
        counters[t] = 0;
    __syncthreads();
    const unsigned smaller = k - need;
    for (unsigned i = t; i < count; i += THREADS) {
        const unsigned bits = row[i];
        const unsigned key = descending(bits);
        if (key < prefix) {
            const unsigned p = atomicAdd(&counters[0], 1u);
            outValues[p] = bits;
            outIndices[p] = int(i);
        } else if (key == prefix) {
            const unsigned p = atomicAdd(&counters[1], 1u);
            if (p < need) {
                outValues[smaller + p] = bits;
                outIndices[smaller + p] = int(i);
            }
        }
    }
}
