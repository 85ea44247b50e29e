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
// The K largest of each row of S floats with their columns, in any order.
//
// A block a row. Floats become codes that ascend while the floats descend, so that the K smallest codes are sought.
// The histogram over the codes' first 13 bits hands every element its place in its bin. The scan over the bins turns
// that into a place in the output; the elements of the bin in which the K-th lies are ranked among themselves.

constexpr int THREADS = 512;
constexpr int WARPS = THREADS / 32;
constexpr int EACH = 8;                         // elements a thread
constexpr int BINS = 8192;
constexpr int SHIFT = 19;                       // 32 - 13 bits
constexpr int LAST_BIN = BINS - 2;              // the very last holds the padding
constexpr unsigned LAST_CODE = 0xFFF7FFFFu;     // the end of LAST_BIN
constexpr unsigned PAD = 0xFFFFFFFFu;
constexpr int SURE = 1024;                      // room for the elements before the last bin
constexpr int CAP = 384;                        // room for those of the last bin
constexpr unsigned FULL = 0xFFFFFFFFu;

struct alignas(16) Shared {
    int hist[BINS];
    unsigned unique[SURE + CAP];                // the code's low 19 bits, then the column in 13 bits
    unsigned order[SURE + CAP];                 // the code
    unsigned short place[WARPS][128];           // a copy a warp: where each bin begins
    int first;
    int limit;
    int slot[2];
};

// Its own inverse.
static __device__ __forceinline__ unsigned flip(unsigned x)
{
    return x ^ (~unsigned(int(x) >> 31) & 0x7FFFFFFFu);
}

extern "C" __global__ void __launch_bounds__(512, 1)
topk(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ Shared sh;
    const int t = threadIdx.x;
    const int lane = t & 31;
    const int warp = t >> 5;
    const float *row = values + size_t(blockIdx.x) * S;
    topValues += size_t(blockIdx.x) * K;
    indices += size_t(blockIdx.x) * K;

    if (S <= THREADS * EACH && K <= SURE) {
        const bool wide = (S & 3) == 0 && (size_t(row) & 15) == 0;
        uint4 x0 = make_uint4(PAD, PAD, PAD, PAD);
        uint4 x1 = make_uint4(PAD, PAD, PAD, PAD);
        if (wide && 4 * t < S)
            x0 = __ldg(reinterpret_cast<const uint4 *>(row) + t);
        if (wide && 4 * (t + THREADS) < S)
            x1 = __ldg(reinterpret_cast<const uint4 *>(row) + t + THREADS);

        // While the loads are under way.
        uint4 *zero = reinterpret_cast<uint4 *>(sh.hist);
#pragma unroll
        for (int i = 0; i < BINS / 4 / THREADS; ++i)
            zero[t + THREADS * i] = make_uint4(0u, 0u, 0u, 0u);
        if (t < CAP)
            sh.unique[SURE + t] = PAD;
        if (t == 0) {
            sh.first = BINS - 1;
            sh.limit = LAST_BIN;
        }
        __syncthreads();

        unsigned d[EACH] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
        if (!wide) {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const int column = 4 * (t + THREADS * (e >> 2)) + (e & 3);
                if (column < S)
                    d[e] = __float_as_uint(row[column]);
            }
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            d[e] = flip(d[e]);

        // Every lane has an element up to the largest of the lanes' smallest. What comes after that need not be
        // counted, if the K-th proves to come before it in every warp.
        const unsigned least = min(min(min(d[0], d[1]), min(d[2], d[3])), min(min(d[4], d[5]), min(d[6], d[7])));
        const unsigned smallest = __reduce_min_sync(FULL, least);
        unsigned top = LAST_CODE;
        if (8 * K <= S)
            top = min(__reduce_max_sync(FULL, least) | ((1u << SHIFT) - 1u), LAST_CODE);
        if (lane == 0) {
            atomicMin(&sh.first, int(smallest >> SHIFT));
            atomicMin(&sh.limit, int(top >> SHIFT));
        }
        int rank[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            rank[e] = 0;
            if (d[e] <= top)
                rank[e] = atomicAdd(&sh.hist[d[e] >> SHIFT], 1);
        }
        __syncthreads();

        // Each warp scans the 128 bins from the first one on.
        const int first = sh.first & ~3;
        int limit = sh.limit;
        int p0, p1, p2, p3, j, leader, above, bin, count;
        bool found;
#pragma unroll 1
        for (int pass = 0;; ++pass) {
            int4 h = make_int4(0, 0, 0, 0);
            const int at = first + 4 * lane;
            if (at < BINS)
                h = *reinterpret_cast<const int4 *>(&sh.hist[at]);
            const int sum = (h.x + h.y) + (h.z + h.w);
            int inclusive = sum;
#pragma unroll
            for (int o = 1; o < 32; o *= 2) {
                const int other = __shfl_up_sync(FULL, inclusive, o);
                if (lane >= o)
                    inclusive += other;
            }
            const unsigned reached = __ballot_sync(FULL, inclusive >= K);
            leader = __ffs(int(reached)) - 1;
            p0 = inclusive - sum;
            p1 = p0 + h.x;
            p2 = p1 + h.y;
            p3 = p2 + h.z;
            j = int(K > p1) + int(K > p2) + int(K > p3);
            const int before = j == 0 ? p0 : j == 1 ? p1 : j == 2 ? p2 : p3;
            const int inside = j == 0 ? h.x : j == 1 ? h.y : j == 2 ? h.z : h.w;
            const unsigned word = __shfl_sync(FULL, unsigned(before) | unsigned(j) << 12 | unsigned(inside) << 14,
                                              leader < 0 ? 0 : leader);
            above = int(word & 4095u);
            bin = first + 4 * leader + int((word >> 12) & 3u);
            count = int(word >> 14);
            found = reached != 0u && bin <= limit;
            if (found || pass == 1)
                break;
            // The bound was too tight: count what was left out.
            __syncthreads();
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (d[e] > top && d[e] <= LAST_CODE)
                    rank[e] = atomicAdd(&sh.hist[d[e] >> SHIFT], 1);
            __syncthreads();
            limit = LAST_BIN;
        }

        if (found && count <= CAP) {
            const bool leads = lane == leader;
            const unsigned q0 = leads && j == 0 ? unsigned(SURE) : unsigned(p0);
            const unsigned q1 = leads && j == 1 ? unsigned(SURE) : unsigned(p1);
            const unsigned q2 = leads && j == 2 ? unsigned(SURE) : unsigned(p2);
            const unsigned q3 = leads && j == 3 ? unsigned(SURE) : unsigned(p3);
            *reinterpret_cast<uint2 *>(&sh.place[warp][4 * lane]) = make_uint2(q0 | q1 << 16, q2 | q3 << 16);
            __syncwarp();

            const unsigned end = unsigned(bin + 1) << SHIFT;
            int position[EACH];
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                position[e] = int(sh.place[warp][min(int(d[e] >> SHIFT) - first, 127)]) + rank[e];
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                if (d[e] < end) {
                    const unsigned column = unsigned(4 * (t + THREADS * (e >> 2)) + (e & 3));
                    sh.unique[position[e]] = (d[e] << 13) | column;
                    sh.order[position[e]] = d[e];
                }
            }
            __syncthreads();

            for (int i = t; i < above; i += THREADS) {
                topValues[i] = __uint_as_float(flip(sh.order[i]));
                indices[i] = int(sh.unique[i] & 8191u);
            }

            // Eight lanes rank an element of the last bin.
            const int wanted = K - above;
            const unsigned *rivals = sh.unique + SURE;
#pragma unroll 1
            for (int base = 0; base + 4 * warp < count; base += THREADS / 8) {
                const int i = base + (t >> 3);
                const unsigned mine = rivals[i];
                int ahead = 0;
                for (int k = 0; k < count; k += 32) {
                    const uint4 o = *reinterpret_cast<const uint4 *>(&rivals[k + 4 * (t & 7)]);
                    ahead += int(o.x < mine) + int(o.y < mine) + int(o.z < mine) + int(o.w < mine);
                }
                ahead += __shfl_xor_sync(FULL, ahead, 1);
                ahead += __shfl_xor_sync(FULL, ahead, 2);
                ahead += __shfl_xor_sync(FULL, ahead, 4);
                if ((t & 7) == 0 && i < count && ahead < wanted) {
                    topValues[above + ahead] = __uint_as_float(flip(unsigned(bin) << SHIFT | mine >> 13));
                    indices[above + ahead] = int(mine & 8191u);
                }
            }
            return;
        }
    }

    // Any row: the K-th code bit by bit, then all before it and as many of its equals as are wanted.
    if (t == 0) {
        sh.slot[0] = 0;
        sh.slot[1] = 0;
    }
    unsigned kth = 0u;
#pragma unroll 1
    for (int bit = 31; bit >= 0; --bit) {
        const unsigned trial = kth | ((1u << bit) - 1u);
        int n = 0;
#pragma unroll 1
        for (int base = 0; base < S; base += THREADS) {
            const int i = base + t;
            n += __syncthreads_count(i < S && flip(__float_as_uint(row[i])) <= trial);
        }
        if (n < K)
            kth |= 1u << bit;
    }
    int less = 0;
#pragma unroll 1
    for (int base = 0; base < S; base += THREADS) {
        const int i = base + t;
        less += __syncthreads_count(i < S && flip(__float_as_uint(row[i])) < kth);
    }
#pragma unroll 1
    for (int i = t; i < S; i += THREADS) {
        const unsigned bits = __float_as_uint(row[i]);
        const unsigned code = flip(bits);
        if (code < kth) {
            const int p = atomicAdd(&sh.slot[0], 1);
            topValues[p] = __uint_as_float(bits);
            indices[p] = i;
        } else if (code == kth) {
            const int p = less + atomicAdd(&sh.slot[1], 1);
            if (p < K) {
                topValues[p] = __uint_as_float(bits);
                indices[p] = i;
            }
        }
    }
}
