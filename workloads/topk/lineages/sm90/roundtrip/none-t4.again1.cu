/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["B"]
block = ["512"]
shared = "144384"
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The K largest of each row of S floats with their columns, in any order.
//
// A block a row. Floats become codes that ascend while the floats descend, so that the K smallest codes are sought.
// The histogram over the codes' first 14 bits hands every element its place in its bin. The scan over the bins turns
// that into a place in the output; the elements of the bin in which the K-th lies are ranked among themselves.

constexpr int THREADS = 512;
constexpr int EACH = 8;                         // elements a thread
constexpr int BINS = 16384;
constexpr int WINDOW = 128;                     // bins that are scanned, 8 a warp
constexpr int SHIFT = 18;                       // 32 - 14 bits
constexpr int LAST_BIN = BINS - 2;              // the very last holds the padding
constexpr unsigned LAST_CODE = 0xFFFBFFFFu;     // the end of LAST_BIN
constexpr unsigned PAD = 0xFFFFFFFFu;
constexpr int SURE = 1024;                      // room for the elements before the last bin
constexpr int CAP = 384;                        // room for those of the last bin
constexpr unsigned FULL = 0xFFFFFFFFu;
constexpr unsigned PLACE_OFFSET = (BINS + WINDOW) * 4;

struct alignas(16) Shared {
    unsigned hist[BINS + WINDOW];
    unsigned place[BINS + WINDOW];              // the shared address at which each bin of the window begins
    unsigned long long list[SURE + CAP];        // the code above, the column below
    uint4 info;                                 // the last bin's end, elements before it, in it, its number
    int ext[2];                                 // the first bin, the last one that every warp has counted
    int slot[2];
};

// Its own inverse.
static __device__ __forceinline__ unsigned flip(unsigned x)
{
    return x ^ (~unsigned(int(x) >> 31) & 0x7FFFFFFFu);
}

// Counts if code <= top.
static __device__ __forceinline__ void countIf(unsigned &rank, unsigned address, unsigned code, unsigned top)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.le.u32 p, %2, %3;\n\t"
                 "@p atom.shared.add.u32 %0, [%1], 1;\n\t"
                 "}"
                 : "+r"(rank)
                 : "r"(address), "r"(code), "r"(top)
                 : "memory");
}

// Loads if code < end.
static __device__ __forceinline__ void loadIf(unsigned &to, unsigned address, unsigned code, unsigned end)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.lt.u32 p, %2, %3;\n\t"
                 "@p ld.shared.u32 %0, [%1];\n\t"
                 "}"
                 : "+r"(to)
                 : "r"(address), "r"(code), "r"(end)
                 : "memory");
}

// Stores the column and the code if code < end.
static __device__ __forceinline__ void storeIf(unsigned address, unsigned column, unsigned code, unsigned end)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.lt.u32 p, %2, %3;\n\t"
                 "@p st.shared.v2.u32 [%0], {%1, %2};\n\t"
                 "}"
                 :
                 : "r"(address), "r"(column), "r"(code), "r"(end)
                 : "memory");
}

extern "C" __global__ void __launch_bounds__(512, 1)
topk(const float *values, float *topValues, int *indices, int S, int K)
{
    extern __shared__ uint4 raw[];
    Shared &sh = *reinterpret_cast<Shared *>(raw);
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
        if (t < WINDOW / 4)
            zero[BINS / 4 + t] = make_uint4(0u, 0u, 0u, 0u);
        if (t < CAP)
            sh.list[SURE + t] = ~0ull;
        if (t == 0) {
            sh.ext[0] = BINS - 1;
            sh.ext[1] = LAST_BIN;
            sh.info = make_uint4(0u, 0u, 0u, unsigned(BINS));
        }
        const unsigned histAddress = unsigned(__cvta_generic_to_shared(sh.hist));
        const unsigned listAddress = unsigned(__cvta_generic_to_shared(sh.list));
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
        unsigned top = LAST_CODE;
        if (8 * K <= S)
            top = min(__reduce_max_sync(FULL, least) | ((1u << SHIFT) - 1u), LAST_CODE);
        const unsigned smallest = __reduce_min_sync(FULL, least);
        unsigned address[EACH];
        unsigned rank[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            address[e] = histAddress + 4u * (d[e] >> SHIFT);
            rank[e] = 0u;
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            countIf(rank[e], address[e], d[e], top);
        if (lane < 2)
            atomicMin(&sh.ext[lane], int((lane == 0 ? smallest : top) >> SHIFT));
        __syncthreads();

        const int window = sh.ext[0] & ~3;
        int limit = sh.ext[1];
        const unsigned wantedAll = unsigned(K);
        uint4 info;
        bool found;
#pragma unroll 1
        for (int pass = 0;; ++pass) {
            // A warp gives 8 bins of the window their places: the sum of the bins before them, then one by one.
            const uint4 h = *reinterpret_cast<const uint4 *>(&sh.hist[window + 4 * lane]);
            const uint4 g0 = *reinterpret_cast<const uint4 *>(&sh.hist[window + 8 * warp]);
            const uint4 g1 = *reinterpret_cast<const uint4 *>(&sh.hist[window + 8 * warp + 4]);
            const unsigned mineBefore = lane < 2 * warp ? (h.x + h.y) + (h.z + h.w) : 0u;
            const unsigned base = __reduce_add_sync(FULL, mineBefore);
            unsigned b[9];
            b[0] = 0u;
            b[1] = g0.x;
            b[2] = b[1] + g0.y;
            b[3] = b[2] + g0.z;
            b[4] = b[3] + g0.w;
            b[5] = b[4] + g1.x;
            b[6] = b[5] + g1.y;
            b[7] = b[6] + g1.z;
            b[8] = b[7] + g1.w;
#pragma unroll
            for (int i = 0; i < 9; ++i)
                b[i] += base;
            if (lane == 0) {
                uint4 *to = reinterpret_cast<uint4 *>(&sh.place[window + 8 * warp]);
                to[0] = make_uint4(listAddress + 8u * b[0], listAddress + 8u * b[1],
                                   listAddress + 8u * b[2], listAddress + 8u * b[3]);
                to[1] = make_uint4(listAddress + 8u * b[4], listAddress + 8u * b[5],
                                   listAddress + 8u * b[6], listAddress + 8u * b[7]);
                if (b[0] < wantedAll && wantedAll <= b[8]) {
                    int at = 0;
                    unsigned before = b[0];
                    unsigned next = b[8];
#pragma unroll
                    for (int i = 1; i < 8; ++i) {
                        if (b[i] < wantedAll) {
                            at = i;
                            before = b[i];
                        }
                        if (b[8 - i] >= wantedAll)
                            next = b[8 - i];
                    }
                    const int bin = window + 8 * warp + at;
                    sh.place[bin] = listAddress + 8u * unsigned(SURE);
                    sh.info = make_uint4(unsigned(bin + 1) << SHIFT, before, next - before, unsigned(bin));
                }
            }
            __syncthreads();
            info = sh.info;
            found = int(info.w) <= limit;
            if (found || pass == 1)
                break;
            // The bound was too tight: count what was left out.
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                if (d[e] > top && d[e] <= LAST_CODE)
                    rank[e] = atomicAdd(&sh.hist[d[e] >> SHIFT], 1u);
            __syncthreads();
            limit = LAST_BIN;
        }

        const int above = int(info.y);
        const int count = int(info.z);
        if (found && count <= CAP) {
            const unsigned end = info.x;
            unsigned place[EACH];
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                place[e] = 0u;
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                loadIf(place[e], address[e] + PLACE_OFFSET, d[e], end);
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const unsigned column = unsigned(4 * (t + THREADS * (e >> 2)) + (e & 3));
                storeIf(place[e] + 8u * rank[e], column, d[e], end);
            }
            __syncthreads();

            unsigned long long own = 0ull;
            if (t < above)
                own = sh.list[t];

            // Eight lanes rank an element of the last bin.
            const int wanted = K - above;
            const unsigned long long *rivals = sh.list + SURE;
#pragma unroll 1
            for (int base = 0; base + 4 * warp < count; base += THREADS / 8) {
                const int i = base + (t >> 3);
                const unsigned long long mine = rivals[i];
                int ahead = 0;
#pragma unroll
                for (int k = 0; k < 48; k += 16) {
                    const ulonglong2 o = *reinterpret_cast<const ulonglong2 *>(&rivals[k + 2 * (t & 7)]);
                    ahead += int(o.x < mine) + int(o.y < mine);
                }
#pragma unroll 1
                for (int k = 48; k < count; k += 16) {
                    const ulonglong2 o = *reinterpret_cast<const ulonglong2 *>(&rivals[k + 2 * (t & 7)]);
                    ahead += int(o.x < mine) + int(o.y < mine);
                }
                ahead += __shfl_xor_sync(FULL, ahead, 1);
                ahead += __shfl_xor_sync(FULL, ahead, 2);
                ahead += __shfl_xor_sync(FULL, ahead, 4);
                if ((t & 7) == 0 && i < count && ahead < wanted) {
                    topValues[above + ahead] = __uint_as_float(flip(unsigned(mine >> 32)));
                    indices[above + ahead] = int(unsigned(mine));
                }
            }

            if (t < above) {
                topValues[t] = __uint_as_float(flip(unsigned(own >> 32)));
                indices[t] = int(unsigned(own));
            }
#pragma unroll 1
            for (int i = t + THREADS; i < above; i += THREADS) {
                const unsigned long long other = sh.list[i];
                topValues[i] = __uint_as_float(flip(unsigned(other >> 32)));
                indices[i] = int(unsigned(other));
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
