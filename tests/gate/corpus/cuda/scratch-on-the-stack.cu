/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["R"]
block = [64]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each thread fills a piece of its stack with its terms and adds them up by halves, as a function does that calls itself.

// The terms from `begin` to before `end`, halved as often as it takes.
__device__ __noinline__ float halves(const float *terms, int begin, int end)
{
    if (end - begin <= 2)
        return end - begin == 2 ? terms[begin] + terms[begin + 1] : end - begin == 1 ? terms[begin] : 0.0f;
    const int middle = (begin + end) / 2;
    return halves(terms, begin, middle) + halves(terms, middle, end);
}

extern "C" __global__ __launch_bounds__(64) void sums(const float *x, float *y, int R, int C)
{
    __shared__ float parts[2];
    const float *in = x + size_t(blockIdx.x) * C;
    float terms[16];
    float sum = 0.0f;
    for (int begin = 0; begin < C; begin += 64 * 16) {
        int count = 0;
        for (int i = begin + threadIdx.x; i < min(begin + 64 * 16, C); i += 64)
            terms[count++] = in[i];
        sum += halves(terms, 0, count);
    }
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = parts[0] + parts[1];
}
