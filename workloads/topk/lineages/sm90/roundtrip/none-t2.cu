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
// Fast path (S <= 4096, rows of whole float4s): a counting sort by the top 12 bits of the fp16-rounded value, descending, of which only
// the bins up to that of the K-th largest are stored; the members of that last bin are ranked by comparison.
// Otherwise: radix selection, 8 bits a pass, of the 32-bit keys.

#define THREADS 512u
#define STAGE 2048u
#define NONE 0xffffffffu
#define FULL 0xffffffffu

// Four words of the row, where column < S.
static __device__ __forceinline__ void load4(uint4 &v, const float *p, unsigned column, unsigned S)
{
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "setp.lt.u32 p, %5, %6;\n\t"
                 "@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n\t"
                 "}"
                 : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
                 : "l"(p), "r"(column), "r"(S));
}

// Two floats as two 16-bit keys that fall as the floats rise.
static __device__ __forceinline__ unsigned descending(unsigned lo, unsigned hi)
{
    unsigned h, sign;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(__uint_as_float(hi)), "f"(__uint_as_float(lo)));
    asm("prmt.b32 %0, %1, %1, 0xBB99;" : "=r"(sign) : "r"(h));
    return h ^ (~sign & 0x7fff7fffu);
}

static __device__ __forceinline__ unsigned min16x2(unsigned a, unsigned b)
{
    unsigned r;
    asm("min.u16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

template <int D>
static __device__ __forceinline__ unsigned scanStep(unsigned x)
{
    unsigned y;
    asm volatile("{\n\t"
                 ".reg .u32 r;\n\t"
                 ".reg .pred p;\n\t"
                 "shfl.sync.up.b32 r|p, %1, %2, 0, 0xffffffff;\n\t"
                 "@p add.u32 r, r, %1;\n\t"
                 "mov.u32 %0, r;\n\t"
                 "}"
                 : "=r"(y)
                 : "r"(x), "n"(D));
    return y;
}

static __device__ __forceinline__ unsigned inclusiveScan(unsigned x)
{
    x = scanStep<1>(x);
    x = scanStep<2>(x);
    x = scanStep<4>(x);
    x = scanStep<8>(x);
    x = scanStep<16>(x);
    return x;
}

// Signed integers in the order of the floats.
static __device__ __forceinline__ int signedKey(unsigned bits)
{
    return int(bits ^ (unsigned(int(bits) >> 31) & 0x7fffffffu));
}

// Unsigned integers in the order of the floats, NaNs above all.
static __device__ __forceinline__ unsigned unsignedKey(unsigned bits)
{
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        bits = 0x7fffffffu;
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

extern "C" __global__ void __launch_bounds__(512) topk(const float *values, float *topValues, int *indices, int S, int K)
{
    __shared__ uint4 hist[1024];
    __shared__ uint2 stage[STAGE + 64];
    __shared__ unsigned totals[2][16];
    __shared__ uint4 found;
    __shared__ unsigned firstHalf;
    __shared__ unsigned sDigit;
    __shared__ unsigned sNeed;
    __shared__ unsigned sGreater;
    __shared__ unsigned sEqual;

    const unsigned t = threadIdx.x;
    const unsigned lane = t & 31u;
    const unsigned warp = t >> 5;
    const unsigned uS = unsigned(S);
    const unsigned uK = unsigned(K);
    const float *row = values + size_t(blockIdx.x) * uS;
    float *outValues = topValues + size_t(blockIdx.x) * uK;
    int *outIndices = indices + size_t(blockIdx.x) * uK;

    if (uS <= 4096u && (uS & 3u) == 0u && (size_t(values) & 15u) == 0u) {
        const unsigned col0 = 4u * t;
        const unsigned col1 = 4u * t + 2048u;
        uint4 va = make_uint4(0u, 0u, 0u, 0u);
        uint4 vb = make_uint4(0u, 0u, 0u, 0u);
        load4(va, row + col0, col0, uS);
        load4(vb, row + col1, col1, uS);

        hist[t] = make_uint4(0u, 0u, 0u, 0u);
        hist[t + THREADS] = make_uint4(0u, 0u, 0u, 0u);
        if (t == 0)
            found = make_uint4(NONE, 0u, 0u, 0u);
        __syncthreads();

        const unsigned histAddress = unsigned(__cvta_generic_to_shared(hist));
        const unsigned stageAddress = unsigned(__cvta_generic_to_shared(stage));

        const unsigned v[8] = {va.x, va.y, va.z, va.w, vb.x, vb.y, vb.z, vb.w};
        unsigned d[4];
        d[0] = descending(va.x, va.y);
        d[1] = descending(va.z, va.w);
        d[2] = descending(vb.x, vb.y);
        d[3] = descending(vb.z, vb.w);
        if (col0 >= uS)
            d[0] = d[1] = 0xffffffffu;   // a bin that no float has, after all others
        if (col1 >= uS)
            d[2] = d[3] = 0xffffffffu;

        // What is below the least of the lanes' maxima is hardly among the K largest where K is at most an eighth of S. Checked below.
        const unsigned least2 = min16x2(min16x2(d[0], d[1]), min16x2(d[2], d[3]));
        const unsigned best = min(least2 & 0xffffu, least2 >> 16);
        const unsigned worst = __reduce_max_sync(FULL, best);
        const unsigned bound = uK * 8u <= uS ? (worst >> 2) & 0x3ffcu : 0x3ffcu;

        unsigned off[8];   // byte offsets of the elements' bins
        unsigned within[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            off[2 * i] = (d[i] >> 2) & 0x3ffcu;
            off[2 * i + 1] = (d[i] >> 18) & 0x3ffcu;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            asm volatile("{\n\t"
                         ".reg .pred p;\n\t"
                         "setp.le.u32 p, %2, %3;\n\t"
                         "@p atom.shared.add.u32 %0, [%1], 1;\n\t"
                         "}"
                         : "=r"(within[i])
                         : "r"(histAddress + off[i]), "r"(off[i]), "r"(bound)
                         : "memory");
        }
        __syncthreads();

        // Exclusive prefix sums of the bins, those of positive floats first and the others only when needed.
        unsigned offset = 0;
        uint4 f;
#pragma unroll 1
        for (unsigned half = 0; half < 2u; ++half) {
            const unsigned at = half * THREADS + t;
            const uint4 c = hist[at];
            const unsigned sum = (c.x + c.y) + (c.z + c.w);
            const unsigned upTo = inclusiveScan(sum);
            if (lane == 31u)
                totals[half][warp] = upTo;
            __syncthreads();
            const unsigned total = totals[half][lane & 15u];
            const unsigned before = __reduce_add_sync(FULL, lane < warp ? total : 0u);
            const unsigned e0 = offset + before + upTo - sum;
            const unsigned e1 = e0 + c.x;
            const unsigned e2 = e1 + c.y;
            const unsigned e3 = e2 + c.z;
            const unsigned e4 = e3 + c.w;
            hist[at] = make_uint4(e0, e1, e2, e3);
            if (e0 < uK && uK <= e4) {
                unsigned j = 3u, above = e3, members = c.w;
                if (uK <= e1) {
                    j = 0u;
                    above = e0;
                    members = c.x;
                } else if (uK <= e2) {
                    j = 1u;
                    above = e1;
                    members = c.y;
                } else if (uK <= e3) {
                    j = 2u;
                    above = e2;
                    members = c.z;
                }
                found = make_uint4((4u * at + j) * 4u, above, members, 0u);
            }
            if (t == THREADS - 1u)
                firstHalf = e4;
            __syncthreads();
            f = found;
            if (f.x != NONE)
                break;
            offset = firstHalf;
        }

        const unsigned A = f.y;   // so many are in earlier bins
        const unsigned m = f.z;   // and so many in the bin of the K-th
        const bool ok = f.x <= bound && A + m <= STAGE && m <= 256u;
        const unsigned limit = ok ? f.x + 4u : 0u;

        unsigned start[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            asm volatile("{\n\t"
                         ".reg .pred p;\n\t"
                         "setp.lt.u32 p, %2, %3;\n\t"
                         "@p ld.shared.u32 %0, [%1];\n\t"
                         "}"
                         : "=r"(start[i])
                         : "r"(histAddress + off[i]), "r"(off[i]), "r"(limit)
                         : "memory");
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const unsigned column = i < 4 ? col0 + unsigned(i) : col1 + unsigned(i - 4);
            asm volatile("{\n\t"
                         ".reg .pred p;\n\t"
                         "setp.lt.u32 p, %3, %4;\n\t"
                         "@p st.shared.v2.u32 [%0], {%1, %2};\n\t"
                         "}"
                         :
                         : "r"(stageAddress + (start[i] + within[i]) * 8u), "r"(v[i]), "r"(column), "r"(off[i]), "r"(limit)
                         : "memory");
        }

        if (!__syncthreads_or(ok ? 0 : 1)) {
            const unsigned R = uK - A;   // so many of the m are wanted
            const uint2 sure = stage[t];
            const int kLow = signedKey(stage[A + lane].x);
            const int kHigh = signedKey(stage[A + 32u + lane].x);
            uint2 x0 = stage[A + warp];
            uint2 x1 = stage[A + warp + 16u];

            if (t < A) {
                outValues[t] = __uint_as_float(sure.x);
                outIndices[t] = int(sure.y);
            }
#pragma unroll 1
            for (unsigned i = t + THREADS; i < A; i += THREADS) {
                const uint2 e = stage[i];
                outValues[i] = __uint_as_float(e.x);
                outIndices[i] = int(e.y);
            }

            if (m <= 64u) {
                // A warp ranks the candidates c and c + 16, which its lanes compare with all of them.
                unsigned c = warp;
#pragma unroll 1
                while (true) {
                    const unsigned c1 = c + 16u;
                    const int k0 = signedKey(x0.x);
                    const int k1 = signedKey(x1.x);
                    const bool in = lane < m;
                    const bool b0 = in && (kLow > k0 || (kLow == k0 && lane < c));
                    const bool b1 = in && (kLow > k1 || (kLow == k1 && lane < c1));
                    unsigned r0 = __popc(__ballot_sync(FULL, b0));
                    unsigned r1 = __popc(__ballot_sync(FULL, b1));
                    if (m > 32u) {
                        const unsigned i = lane + 32u;
                        const bool inHigh = i < m;
                        const bool h0 = inHigh && (kHigh > k0 || (kHigh == k0 && i < c));
                        const bool h1 = inHigh && (kHigh > k1 || (kHigh == k1 && i < c1));
                        r0 += __popc(__ballot_sync(FULL, h0));
                        r1 += __popc(__ballot_sync(FULL, h1));
                    }
                    const unsigned r = lane == 0u ? r0 : r1;
                    const unsigned slot = lane == 0u ? c : c1;
                    if (lane < 2u && slot < m && r < R) {
                        outValues[A + r] = __uint_as_float(lane == 0u ? x0.x : x1.x);
                        outIndices[A + r] = int(lane == 0u ? x0.y : x1.y);
                    }
                    c += 32u;
                    if (c >= m)
                        break;
                    x0 = stage[A + c];
                    x1 = stage[A + c + 16u];
                }
            } else {
#pragma unroll 1
                for (unsigned c = warp; c < m; c += 16u) {
                    const uint2 x = stage[A + c];
                    const int k0 = signedKey(x.x);
                    unsigned r = 0;
#pragma unroll 1
                    for (unsigned base = 0; base < m; base += 32u) {
                        const unsigned i = base + lane;
                        const int k = signedKey(stage[A + i].x);
                        const bool b = i < m && (k > k0 || (k == k0 && i < c));
                        r += __popc(__ballot_sync(FULL, b));
                    }
                    if (lane == 0u && r < R) {
                        outValues[A + r] = __uint_as_float(x.x);
                        outIndices[A + r] = int(x.y);
                    }
                }
            }
            return;
        }
    }

    // The general way: the K-th largest key, 8 bits a pass, then all that is above and as many equals as are missing.
    unsigned *bins = reinterpret_cast<unsigned *>(hist);
    unsigned prefix = 0;
    unsigned mask = 0;
    unsigned want = uK;
    if (t == 0) {
        sGreater = 0;
        sEqual = 0;
    }
#pragma unroll 1
    for (int shift = 24; shift >= 0; shift -= 8) {
        if (t < 256u)
            bins[t] = 0;
        __syncthreads();
#pragma unroll 1
        for (unsigned i = t; i < uS; i += THREADS) {
            const unsigned k = unsignedKey(__float_as_uint(row[i]));
            if ((k & mask) == prefix)
                atomicAdd(&bins[(k >> shift) & 255u], 1u);
        }
        __syncthreads();
        if (t < 32u) {
            unsigned c[8];
            unsigned sum = 0;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                c[j] = bins[255u - 8u * lane - unsigned(j)];
                sum += c[j];
            }
            unsigned e = inclusiveScan(sum) - sum;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (e < want && want <= e + c[j]) {
                    sDigit = 255u - 8u * lane - unsigned(j);
                    sNeed = want - e;
                }
                e += c[j];
            }
        }
        __syncthreads();
        prefix |= sDigit << shift;
        mask |= 255u << shift;
        want = sNeed;
    }
    const unsigned above = uK - want;
#pragma unroll 1
    for (unsigned i = t; i < uS; i += THREADS) {
        const float x = row[i];
        const unsigned k = unsignedKey(__float_as_uint(x));
        if (k > prefix) {
            const unsigned p = atomicAdd(&sGreater, 1u);
            if (p < above) {
                outValues[p] = x;
                outIndices[p] = int(i);
            }
        } else if (k == prefix) {
            const unsigned p = atomicAdd(&sEqual, 1u);
            if (p < want) {
                outValues[above + p] = x;
                outIndices[above + p] = int(i);
            }
        }
    }
}
