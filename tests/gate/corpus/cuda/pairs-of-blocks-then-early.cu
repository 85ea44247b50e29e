/*klineage
surface = "cuda"

[[workspace]]
name = "stats"
dtype = "f32"
shape = ["R", "16384"]

[[launch]]
kernel = "largest"
grid = ["2 * R"]
block = [128]
cluster = ["2"]
args = ["x", "stats", "int R", "int C"]

[[launch]]
kernel = "divide"
grid = ["R"]
block = [256]
pdl = true
args = ["x", "stats", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two blocks of a cluster have a row and tell each other what they found; the second launch begins early, reads its row and waits. The workspace is large, and little of it is used.

__device__ float over(float v, bool largest)
{
    __shared__ float parts[4];
    for (int lane = 16; lane > 0; lane /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, v, lane);
        v = largest ? fmaxf(v, other) : v + other;
    }
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = parts[0];
    for (int w = 1; w < 4; ++w)
        v = largest ? fmaxf(v, parts[w]) : v + parts[w];
    __syncthreads();
    return v;
}
__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
// What the other block has in the same place.
__device__ float ofTheOther(const float *place, unsigned rank)
{
    unsigned there;
    float value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(unsigned(__cvta_generic_to_shared(place))), "r"(rank ^ 1));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
    return value;
}

extern "C" __global__ __launch_bounds__(128) void largest(const float *x, float *stats, int R, int C)
{
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
    __shared__ float found[2];
    const unsigned rank = blockIdx.x % 2;
    const int row = blockIdx.x / 2;
    const float *in = x + size_t(row) * C;
    float top = __int_as_float(0xff800000);
    for (int i = rank * 128 + threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = over(top, true);
    if (threadIdx.x == 0)
        found[0] = top;
    meet();
    top = fmaxf(top, ofTheOther(found, rank));
    float sum = 0.0f;
    for (int i = rank * 128 + threadIdx.x; i < C; i += 256)
        sum += expf(in[i] - top);
    sum = over(sum, false);
    if (threadIdx.x == 0)
        found[1] = sum;
    meet();
    const float other = ofTheOther(found + 1, rank);
    if (threadIdx.x == 0 && rank == 0) {
        stats[size_t(row) * 16384] = top;
        stats[size_t(row) * 16384 + 8192] = sum + other;
    }
    meet(); // neither leaves while the other reads
}

extern "C" __global__ __launch_bounds__(256) void divide(const float *x, const float *stats, float *y, int R, int C)
{
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    const float first = int(threadIdx.x) < C ? in[threadIdx.x] : 0.0f;
    asm volatile("griddepcontrol.wait;" : : : "memory");
    const float top = reinterpret_cast<const volatile float *>(stats)[size_t(blockIdx.x) * 16384];
    const float sum = reinterpret_cast<const volatile float *>(stats)[size_t(blockIdx.x) * 16384 + 8192];
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf((i == int(threadIdx.x) ? first : in[i]) - top) / sum;
}
