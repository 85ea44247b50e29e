/*klineage
surface = "cuda"

[[workspace]]
name = "maps"
dtype = "u32"
shape = ["R", "64"]

[[tensormap]]
name = "tm_x"
tensor = "x"
box = [1, 256]
l2_promotion = "none"

[[launch]]
kernel = "softmax"
when = "C % 4 == 0 && C <= 256"
grid = ["R"]
block = [256]
args = ["tm_x", "maps", "x", "y", "int R", "int C"]

[[launch]]
kernel = "softmax_plain"
when = "C % 4 != 0 || C > 256"
grid = ["R"]
block = [256]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Each block makes a tensor map of its own row in its workspace, and fetches the row through it.

typedef unsigned long long u64;

// Over the 256 threads of a block.
__device__ float blockMax(float v)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    for (int w = 0; w < 8; ++w)
        v = fmaxf(v, parts[w]);
    __syncthreads();
    return v;
}

__device__ float blockAdd(float v)
{
    __shared__ float parts[8];
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0.0f;
    for (int w = 0; w < 8; ++w)
        v += parts[w];
    __syncthreads();
    return v;
}

__device__ void softmaxRow(const float *in, float *out, int C)
{
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 256)
        top = fmaxf(top, in[i]);
    top = blockMax(top);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 256)
        sum += expf(in[i] - top);
    sum = blockAdd(sum);
    for (int i = threadIdx.x; i < C; i += 256)
        out[i] = expf(in[i] - top) / sum;
}

struct __align__(128) Map { unsigned words[32]; };

extern "C" __global__ __launch_bounds__(256) void softmax_plain(const float *x, float *y, int R, int C)
{
    softmaxRow(x + size_t(blockIdx.x) * C, y + size_t(blockIdx.x) * C, C);
}
extern "C" __global__ __launch_bounds__(256) void softmax(const __grid_constant__ Map map, unsigned *maps, const float *x, float *y, int R, int C)
{
    __shared__ Map changed;
    __shared__ __align__(128) float row[256];
    __shared__ __align__(8) u64 barrier;
    const unsigned bar = unsigned(__cvta_generic_to_shared(&barrier));
    unsigned *own = maps + size_t(blockIdx.x) * 64;
    if (threadIdx.x < 32) {
        changed.words[threadIdx.x] = map.words[threadIdx.x];
        __syncwarp();
        const unsigned at = unsigned(__cvta_generic_to_shared(&changed));
        if (threadIdx.x == 0) {
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" : : "r"(at), "l"(x + size_t(blockIdx.x) * C) : "memory");
            asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, 1;" : : "r"(at) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.proxy.async.shared::cta;" : : "r"(bar) : "memory");
        }
        __syncwarp();
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;"
                     : : "l"(own), "r"(at) : "memory");
        if (threadIdx.x == 0) {
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" : : "l"(own) : "memory");
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" : : "r"(bar) : "memory");
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                         : : "r"(unsigned(__cvta_generic_to_shared(row))), "l"(own), "r"(0), "r"(0), "r"(bar) : "memory");
        }
    }
    __syncthreads();
    asm volatile("{ .reg .pred done;\nTRY: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n@!done bra TRY; }" : : "r"(bar) : "memory");
    softmaxRow(row, y + size_t(blockIdx.x) * C, C);
}
