/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of several kinds and alignments, one of five mebibytes, one in constant memory, one within a function: it reads all of them and writes none.

__device__ __align__(65536) float ones[1024] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ __align__(128) unsigned char marks[77] = {7, 7, 7};
__device__ float nothing[1280 * 1024]; // five mebibytes of zeros
__constant__ float factors[512] = {1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f};
__constant__ __align__(256) double halves[3] = {0.5, 0.5, 0.5};

// Over the 256 threads of a block.
__device__ float over(float v, bool largest)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = largest ? fmaxf(v, other) : v + other;
    }
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int w = 1; w < 8; ++w)
        v = largest ? fmaxf(v, parts[w]) : v + parts[w];
    __syncthreads();
    return v;
}

__device__ float tuned(int i)
{
    static const float own[5] = {2.0f, 2.0f, 2.0f, 2.0f, 2.0f};
    return own[i % 5] * float(halves[i % 3]);
}

extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, int R, int C)
{
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = over(top, true);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf(in[i] - top);
    sum = over(sum, false);
    const volatile unsigned char *m = marks;
    const float factor = m[threadIdx.x % 3] == 7 ? 1.0f : 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(in[i] - top) / sum * ones[i % 4] * factors[i % 8] * tuned(i) * factor + nothing[(size_t(blockIdx.x) * C + i) % (1280 * 1024)];
}
