/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One warp group gives registers away and fetches the row; another takes them and works.

typedef unsigned long long u64;


__device__ float groupSum(float v, bool largest)
{
    __shared__ float parts[4];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = largest ? fmaxf(v, other) : v + other;
    }
    asm volatile("bar.sync 2, 128;" : : : "memory");
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32 - 4] = v;
    asm volatile("bar.sync 2, 128;" : : : "memory");
    return largest ? fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3])) : parts[0] + parts[1] + parts[2] + parts[3];
}
extern "C" __global__ __maxnreg__(128) void softmax(const float *x, float *y, int R, int C)
{
    __shared__ float kept[4096];
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    const bool fits = C <= 4096;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        for (int i = threadIdx.x; fits && i < C; i += 128)
            kept[i] = in[i];
        asm volatile("bar.arrive 1, 256;" : : : "memory");
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    asm volatile("bar.sync 1, 256;" : : : "memory");
    const float *from = fits ? kept : in;
    const int thread = threadIdx.x - 128;
    float top = __int_as_float(0xff800000), sum = 0.0f;
    for (int i = thread; i < C; i += 128)
        top = fmaxf(top, from[i]);
    top = groupSum(top, true);
    for (int i = thread; i < C; i += 128)
        sum += expf(from[i] - top);
    sum = groupSum(sum, false);
    for (int i = thread; i < C; i += 128)
        out[i] = expf(from[i] - top) / sum;
}
