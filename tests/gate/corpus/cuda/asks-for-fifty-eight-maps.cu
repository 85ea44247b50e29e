/*klineage
surface = "cuda"

[[tensormap]]
name = "m0"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m1"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m2"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m3"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m4"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m5"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m6"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m7"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m8"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m9"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m10"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m11"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m12"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m13"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m14"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m15"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m16"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m17"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m18"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m19"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m20"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m21"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m22"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m23"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m24"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m25"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m26"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m27"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m28"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m29"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m30"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m31"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m32"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m33"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m34"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m35"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m36"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m37"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m38"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m39"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m40"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m41"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m42"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m43"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m44"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m45"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m46"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m47"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m48"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m49"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m50"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m51"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m52"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m53"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m54"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m55"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m56"
tensor = "values"
box = [1, 4]

[[tensormap]]
name = "m57"
tensor = "values"
box = [1, 4]

[[launch]]
kernel = "quarter"
when = "B == 64 && S == 4096 && K == 512"
grid = [16]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K", "int 0", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14", "m15", "m16", "m17", "m18", "m19", "m20", "m21", "m22", "m23", "m24", "m25", "m26", "m27", "m28", "m29", "m30", "m31", "m32", "m33", "m34", "m35", "m36", "m37", "m38", "m39", "m40", "m41", "m42", "m43", "m44", "m45", "m46", "m47", "m48", "m49", "m50", "m51", "m52", "m53", "m54", "m55", "m56", "m57"]

[[launch]]
kernel = "quarter"
when = "B == 64 && S == 4096 && K == 512"
grid = [16]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K", "int 16", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14", "m15", "m16", "m17", "m18", "m19", "m20", "m21", "m22", "m23", "m24", "m25", "m26", "m27", "m28", "m29", "m30", "m31", "m32", "m33", "m34", "m35", "m36", "m37", "m38", "m39", "m40", "m41", "m42", "m43", "m44", "m45", "m46", "m47", "m48", "m49", "m50", "m51", "m52", "m53", "m54", "m55", "m56", "m57"]

[[launch]]
kernel = "quarter"
when = "B == 64 && S == 4096 && K == 512"
grid = [16]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K", "int 32", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14", "m15", "m16", "m17", "m18", "m19", "m20", "m21", "m22", "m23", "m24", "m25", "m26", "m27", "m28", "m29", "m30", "m31", "m32", "m33", "m34", "m35", "m36", "m37", "m38", "m39", "m40", "m41", "m42", "m43", "m44", "m45", "m46", "m47", "m48", "m49", "m50", "m51", "m52", "m53", "m54", "m55", "m56", "m57"]

[[launch]]
kernel = "quarter"
when = "B == 64 && S == 4096 && K == 512"
grid = [16]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K", "int 48", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10", "m11", "m12", "m13", "m14", "m15", "m16", "m17", "m18", "m19", "m20", "m21", "m22", "m23", "m24", "m25", "m26", "m27", "m28", "m29", "m30", "m31", "m32", "m33", "m34", "m35", "m36", "m37", "m38", "m39", "m40", "m41", "m42", "m43", "m44", "m45", "m46", "m47", "m48", "m49", "m50", "m51", "m52", "m53", "m54", "m55", "m56", "m57"]

[[launch]]
kernel = "topk"
when = "!(B == 64 && S == 4096 && K == 512)"
grid = ["B"]
block = [512]
args = ["values", "top_values", "indices", "int S", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four launches of sixteen rows with 58 maps each, which are prefetched; the cut two bits at a time.
struct alignas(64) Map { unsigned long long words[16]; };
#define PAIRS 16

// The order of floats as that of unsigned integers.
__device__ __forceinline__ unsigned keyOf(float value)
{
    const unsigned bits = __float_as_uint(value);
    return bits ^ (unsigned(int(bits) >> 31) | 0x80000000u);
}

// How many of the row are at least `key`.
__device__ int countFrom(const float *row, int S, unsigned key)
{
    __shared__ int total;
    __syncthreads();
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    int mine = 0;
    for (int i = threadIdx.x; i < S; i += blockDim.x)
        mine += keyOf(row[i]) >= key ? 1 : 0;
    mine = __reduce_add_sync(0xffffffffu, mine);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&total, mine);
    __syncthreads();
    return total;
}

// How many of the row are at least `key`, one and two and three steps above it, in one pass: the digit of two bits that the K-th largest has.
__device__ unsigned digitOf(const float *row, int S, int K, unsigned key, int shift)
{
    __shared__ int totals[3];
    __syncthreads();
    if (threadIdx.x < 3)
        totals[threadIdx.x] = 0;
    __syncthreads();
    int mine[3] = {};
    for (int i = threadIdx.x; i < S; i += blockDim.x) {
        const unsigned is = keyOf(row[i]);
        for (unsigned t = 0; t < 3; ++t)
            mine[t] += is >= (key | (t + 1) << shift) ? 1 : 0;
    }
    for (int t = 0; t < 3; ++t) {
        mine[t] = __reduce_add_sync(0xffffffffu, mine[t]);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&totals[t], mine[t]);
    }
    __syncthreads();
    return (totals[0] >= K) + (totals[1] >= K) + (totals[2] >= K);
}

// The K-th largest, bit by bit, and the last ones two at a time.
__device__ unsigned cutOf(const float *row, int S, int K)
{
    unsigned found = 0;
#pragma unroll 1
    for (int bit = 31; bit >= 2 * PAIRS; --bit) {
        const unsigned next = found | (1u << bit);
        if (countFrom(row, S, next) >= K)
            found = next;
    }
#pragma unroll 1
    for (int pair = PAIRS - 1; pair >= 0; --pair)
        found |= digitOf(row, S, K, found, 2 * pair) << 2 * pair;
    return found;
}

// What is above the cut, then as many of those that equal it as there is room for.
__device__ void writeFrom(const float *row, float *top, int *indices, int S, int K, unsigned cut)
{
    __shared__ int next;
    __syncthreads();
    if (threadIdx.x == 0)
        next = 0;
    __syncthreads();
    for (int pass = 0; pass < 2; ++pass) {
        for (int i = threadIdx.x; i < S; i += blockDim.x) {
            const float value = row[i];
            const unsigned key = keyOf(value);
            if (pass == 0 ? key <= cut : key != cut)
                continue;
            const int at = atomicAdd(&next, 1);
            if (at < K) {
                top[at] = value;
                indices[at] = i;
            }
        }
        __syncthreads();
    }
}

__device__ __forceinline__ void ask(const Map &map)
{
    asm volatile("prefetch.tensormap [%0];" : : "l"(reinterpret_cast<unsigned long long>(&map)) : "memory");
}
extern "C" __global__ __launch_bounds__(512) void quarter(const float *values, float *top, int *indices, int S, int K, int first, const __grid_constant__ Map m0, const __grid_constant__ Map m1, const __grid_constant__ Map m2, const __grid_constant__ Map m3, const __grid_constant__ Map m4, const __grid_constant__ Map m5, const __grid_constant__ Map m6, const __grid_constant__ Map m7, const __grid_constant__ Map m8, const __grid_constant__ Map m9, const __grid_constant__ Map m10, const __grid_constant__ Map m11, const __grid_constant__ Map m12, const __grid_constant__ Map m13, const __grid_constant__ Map m14, const __grid_constant__ Map m15, const __grid_constant__ Map m16, const __grid_constant__ Map m17, const __grid_constant__ Map m18, const __grid_constant__ Map m19, const __grid_constant__ Map m20, const __grid_constant__ Map m21, const __grid_constant__ Map m22, const __grid_constant__ Map m23, const __grid_constant__ Map m24, const __grid_constant__ Map m25, const __grid_constant__ Map m26, const __grid_constant__ Map m27, const __grid_constant__ Map m28, const __grid_constant__ Map m29, const __grid_constant__ Map m30, const __grid_constant__ Map m31, const __grid_constant__ Map m32, const __grid_constant__ Map m33, const __grid_constant__ Map m34, const __grid_constant__ Map m35, const __grid_constant__ Map m36, const __grid_constant__ Map m37, const __grid_constant__ Map m38, const __grid_constant__ Map m39, const __grid_constant__ Map m40, const __grid_constant__ Map m41, const __grid_constant__ Map m42, const __grid_constant__ Map m43, const __grid_constant__ Map m44, const __grid_constant__ Map m45, const __grid_constant__ Map m46, const __grid_constant__ Map m47, const __grid_constant__ Map m48, const __grid_constant__ Map m49, const __grid_constant__ Map m50, const __grid_constant__ Map m51, const __grid_constant__ Map m52, const __grid_constant__ Map m53, const __grid_constant__ Map m54, const __grid_constant__ Map m55, const __grid_constant__ Map m56, const __grid_constant__ Map m57)
{
    if (threadIdx.x == 0) {
        ask(m0);
        ask(m1);
        ask(m2);
        ask(m3);
        ask(m4);
        ask(m5);
        ask(m6);
        ask(m7);
        ask(m8);
        ask(m9);
        ask(m10);
        ask(m11);
        ask(m12);
        ask(m13);
        ask(m14);
        ask(m15);
        ask(m16);
        ask(m17);
        ask(m18);
        ask(m19);
        ask(m20);
        ask(m21);
        ask(m22);
        ask(m23);
        ask(m24);
        ask(m25);
        ask(m26);
        ask(m27);
        ask(m28);
        ask(m29);
        ask(m30);
        ask(m31);
        ask(m32);
        ask(m33);
        ask(m34);
        ask(m35);
        ask(m36);
        ask(m37);
        ask(m38);
        ask(m39);
        ask(m40);
        ask(m41);
        ask(m42);
        ask(m43);
        ask(m44);
        ask(m45);
        ask(m46);
        ask(m47);
        ask(m48);
        ask(m49);
        ask(m50);
        ask(m51);
        ask(m52);
        ask(m53);
        ask(m54);
        ask(m55);
        ask(m56);
        ask(m57);
    }
    const size_t r = first + blockIdx.x;
    const float *row = values + r * S;
    writeFrom(row, top + r * K, indices + r * K, S, K, cutOf(row, S, K));
}

// Any other shape.
extern "C" __global__ __launch_bounds__(512) void topk(const float *values, float *top, int *indices, int S, int K)
{
    const float *row = values + size_t(blockIdx.x) * S;
    writeFrom(row, top + size_t(blockIdx.x) * K, indices + size_t(blockIdx.x) * K, S, K, cutOf(row, S, K));
}
