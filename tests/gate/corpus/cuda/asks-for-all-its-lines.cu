/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16) "]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Asks for all lines of its own rows before it reads the first: of its own input and no further.
typedef unsigned long long u64;

#define LOWEST __int_as_float(0xff800000)

// Of the eight threads that have a row.
__device__ float rowMax(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
}

__device__ float rowSum(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v += __shfl_xor_sync(0xffffffffu, v, other);
    return v;
}

__device__ void statsOf(const float *in, int C, int part, float &top, float &sum)
{
    top = LOWEST;
    for (int i = part; i < C; i += 8)
        top = fmaxf(top, in[i]);
    top = rowMax(top);
    sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += expf(in[i] - top);
    sum = rowSum(sum);
}

__device__ void writeRow(const float *in, float *out, int C, int part, float top, float sum)
{
    for (int i = part; i < C; i += 8)
        out[i] = expf(in[i] - top) / sum;
}

// Sixteen rows a block.
__device__ void wholeRows(const float *x, float *y, int R, int C, int block)
{
    const int row = block * 16 + threadIdx.x / 8, part = threadIdx.x % 8;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float top, sum;
    statsOf(in, C, part, top, sum);
    if (row < R)
        writeRow(in, y + size_t(row) * C, C, part, top, sum);
}
extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int R, int C)
{
    const char *begin = reinterpret_cast<const char *>(x + size_t(blockIdx.x) * 16 * C);
    const char *end = reinterpret_cast<const char *>(x + size_t(min((int(blockIdx.x) + 1) * 16, R)) * C);
    for (const char *line = begin + 128 * threadIdx.x; line < end; line += 128 * 128)
        asm volatile("prefetch.global.L2 [%0];" : : "l"(line));
    wholeRows(x, y, R, C, blockIdx.x);
}
