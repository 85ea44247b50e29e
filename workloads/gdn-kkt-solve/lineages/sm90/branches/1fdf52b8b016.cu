/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [64]
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule as they are defined: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the
// diagonal, with G the sums of the log gates within the chunk, and the inverse of I + L by forward substitution. A block has one
// chunk of 64 tokens of one head. Its keys are brought to shared memory once, and all threads share the entries of L evenly; then a
// thread computes one column of the inverse.

#include <cuda_bf16.h>

constexpr int C = 64;            // tokens a chunk
constexpr int D = 128;           // elements a key
constexpr int UNITS = D / 8;     // 16-byte units a key
constexpr int PITCH = UNITS + 1; // padded: rows of distinct residues mod 8 lie in distinct banks

// The inverse takes the place of the keys when L is complete.
union Memory {
    uint4 keys[C][PITCH];
    float inverse[C][C];
};

// 16 bytes to shared memory, asynchronously; zeros where bytes is 0.
__device__ __forceinline__ void copy_unit(uint4 *to, const __nv_bfloat16 *from, int bytes)
{
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void widen(float (&x)[8], const uint4 unit)
{
    x[0] = __uint_as_float(unit.x << 16);
    x[1] = __uint_as_float(unit.x & 0xffff0000u);
    x[2] = __uint_as_float(unit.y << 16);
    x[3] = __uint_as_float(unit.y & 0xffff0000u);
    x[4] = __uint_as_float(unit.z << 16);
    x[5] = __uint_as_float(unit.z & 0xffff0000u);
    x[6] = __uint_as_float(unit.w << 16);
    x[7] = __uint_as_float(unit.w & 0xffff0000u);
}

extern "C" __global__ void __launch_bounds__(C, 6)
    kkt_solve(const __nv_bfloat16 *k, const float *g, const float *beta, __nv_bfloat16 *a, int T, int HQ, int HV)
{
    __shared__ float sums[C], rates[C], system[C][C];
    __shared__ Memory memory;
    float (&inverse)[C][C] = memory.inverse;
    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;
    const __nv_bfloat16 *keys = k + (token * HQ + head / (HV / HQ)) * D;

    // A half warp brings one key, 256 bytes, at a time; keys past the end are zeros.
    {
        const int unit = thread % UNITS;
#pragma unroll
        for (int t = thread / UNITS, m = 0; m < C / (C / UNITS); ++m, t += C / UNITS)
            copy_unit(&memory.keys[t][unit], keys + size_t(min(t, valid - 1)) * HQ * D + unit * 8, t < valid ? 16 : 0);
    }

    float sum = 0.0f;
    if (thread < valid)
        for (int s = 0; s <= thread; ++s)
            sum += g[(token + s) * HV + head];
    sums[thread] = sum;
    rates[thread] = thread < valid ? beta[(token + thread) * HV + head] : 0.0f;
    asm volatile("cp.async.wait_all;\n" ::: "memory");
    __syncthreads();

    // The products of two keys are shared by the residues of their tokens mod 16. A thread pairs the four tokens of one residue with
    // those of the two residues that are 2 n + 1 and 2 n + 2 further on; over n = 0 to 3 these are all pairs of different residues,
    // those 8 apart twice. The six pairs within a residue are two each of the threads with n < 3: rows[0] with rows[1] and rows[2] with
    // rows[3], which the order of the rows makes different pairs for each n.
    {
        const int residue = thread & 15, n = thread >> 4;
        const int near = (residue + 2 * n + 1) & 15, far = (residue + 2 * n + 2) & 15;
        const int e = n % 3 + 1, f = e == 1 ? 2 : 1;
        const int rows[4] = {residue, residue + 16 * e, residue + 16 * f, residue + 16 * (e ^ f)};

        float product[4][8], same[2] = {0.0f, 0.0f};
#pragma unroll
        for (int r = 0; r < 4; ++r)
#pragma unroll
            for (int c = 0; c < 8; ++c)
                product[r][c] = 0.0f;

#pragma unroll 2
        for (int unit = 0; unit < UNITS; ++unit) {
            float x[4][8];
#pragma unroll
            for (int r = 0; r < 4; ++r)
                widen(x[r], memory.keys[rows[r]][unit]);
#pragma unroll
            for (int c = 0; c < 8; ++c) {
                float y[8];
                widen(y, memory.keys[(c < 4 ? near : far) + 16 * (c & 3)][unit]);
#pragma unroll
                for (int i = 0; i < 8; ++i)
#pragma unroll
                    for (int r = 0; r < 4; ++r)
                        product[r][c] = fmaf(x[r][i], y[i], product[r][c]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                same[0] = fmaf(x[0][i], x[1][i], same[0]);
                same[1] = fmaf(x[2][i], x[3][i], same[1]);
            }
        }

        // Rows past the end are written too, but never read.
        const auto enter = [&](int one, int other, float value) {
            const int t = max(one, other), s = min(one, other);
            system[t][s] = rates[t] * expf(sums[t] - sums[s]) * value;
        };
#pragma unroll
        for (int c = 0; c < 4; ++c)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                enter(rows[r], near + 16 * c, product[r][c]);
        if (n < 3 || residue < 8) { // of the residues 8 apart, each pair once
#pragma unroll
            for (int c = 0; c < 4; ++c)
#pragma unroll
                for (int r = 0; r < 4; ++r)
                    enter(rows[r], far + 16 * c, product[r][c + 4]);
        }
        if (n < 3) {
            enter(rows[0], rows[1], same[0]);
            enter(rows[2], rows[3], same[1]);
        }
    }
    __syncthreads();

    // Columns do not meet: each thread reads only what it wrote itself.
    for (int t = 0; t < valid; ++t) {
        float entry = t == thread ? 1.0f : 0.0f;
        for (int s = 0; s < t; ++s)
            entry -= system[t][s] * inverse[s][thread];
        inverse[t][thread] = entry;
        a[((token + t) * HV + head) * C + thread] = __float2bfloat16(entry);
    }
}
