/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 8)", "ceil_div(M, 16)"]
block = ["32"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Single precision from three TF32 products of halved operands, each step of eight added up in single precision: all 24 bits count.

__device__ __forceinline__ unsigned toTf32(float value)
{
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

// A number that has no lower half (infinity, NaN) is all upper half.
__device__ __forceinline__ void split(float value, unsigned &high, unsigned &low)
{
    high = toTf32(value);
    const float rest = value - __uint_as_float(high);
    low = fabsf(rest) <= fabsf(value) ? toTf32(rest) : 0u;
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// One warp makes a tile of 16 x 8.
extern "C" __global__ __launch_bounds__(32) void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int group = threadIdx.x / 4, place = threadIdx.x % 4;
    const int row = blockIdx.y * 16 + group, col = blockIdx.x * 8;
    float sum[4] = {};
#pragma unroll 2
    for (int k = 0; k < K; k += 8) {
        unsigned highA[4], lowA[4], highB[2], lowB[2];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = row + i % 2 * 8, at = k + place + i / 2 * 4;
            split(r < M && at < K ? a[size_t(r) * K + at] : 0.0f, highA[i], lowA[i]);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const int at = k + place + 4 * i, n = col + group;
            split(at < K && n < N ? b[size_t(at) * N + n] : 0.0f, highB[i], lowB[i]);
        }
        float part[4] = {};
        multiply(part, lowA, highB);
        multiply(part, highA, lowB);
        multiply(part, highA, highB);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            sum[i] += part[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int to = row + i / 2 * 8, at = col + place * 2 + i % 2;
        if (to < M && at < N)
            c[size_t(to) * N + at] = sum[i];
    }
}
