/*klineage
surface = "cuda"

[[workspace]]
name = "chunks"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64)", "4224"]
init = "poison"

[[tensormap]]
name = "tm_q"
tensor = "q"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_k"
tensor = "k"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "256B"

[[tensormap]]
name = "tm_v"
tensor = "v"
box = [1, 64, 1, 64]
swizzle = "128B"
l2_promotion = "128B"

[[tensormap]]
name = "tm_o"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "gdn_prepare"
grid = ["ceil_div(T, 64)", "HQ", "B"]
block = ["128"]
shared = "52992"
args = ["tm_q", "tm_k", "g", "beta", "chunks", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["2", "HV", "B"]
block = ["288"]
cluster = ["2", "1", "1"]
shared = "217216"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_o", "initial_state", "chunks", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the running sum of g in a chunk and S the state before it:
//   A[i][j] = beta_i exp(G_i - G_j) k_i.k_j  (j < i),   T = (I + A)^-1,   P[i][j] = scale exp(G_i - G_j) q_i.k_j  (j <= i)
//   R = V - exp(G) K S,   U = T diag(beta) R,   O = scale exp(G) Q S + P U,   S' = exp(G_63) S + Kt (exp(G_63 - G) U)
// Tokens beyond T count as k = q = v = 0, g = 0, beta = 0 and change nothing.

#include <cuda_bf16.h>

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

typedef unsigned int u32;
typedef unsigned long long u64;

// What the first kernel leaves for a chunk of a head, in bytes: T diag(beta), P, exp(G), exp(G_63 - G).
#define IMAGE_P 8192
#define IMAGE_GATES 16384
#define IMAGE_BYTES 16896
#define IMAGE_FLOATS 4224

// A stage of the second kernel.
#define STAGES 3
#define STAGE_Q 16384
#define STAGE_V 32768
#define STAGE_T 40960
#define STAGE_P (STAGE_T + IMAGE_P)
#define STAGE_GATES (STAGE_T + IMAGE_GATES)
#define STAGE_BYTES 58368
#define STAGE_LOADED (STAGE_T + IMAGE_BYTES)

// Behind the stages of the second kernel: the state and the updates as bf16, the output, the barriers.
#define SCAN_STATE (STAGES * STAGE_BYTES)
#define SCAN_UPDATE (SCAN_STATE + 16384)
#define SCAN_OUT (SCAN_UPDATE + 8192)
#define SCAN_BARS (SCAN_OUT + 16384)

#define PITCH 68

__device__ __forceinline__ u32 smem_addr(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// Barriers and copies

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_init_done()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void mbar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// By the lanes for which `active` is not 0.
__device__ __forceinline__ void mbar_arrive(u32 bar, u32 active)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.u32 p, %1, 0;\n"
                 "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
                 "}\n" ::"r"(bar),
                 "r"(active)
                 : "memory");
}

// On the barrier at the same place in both blocks of the cluster: lanes 0 and 1, one each.
__device__ __forceinline__ void mbar_arrive_both(u32 bar, u32 lane)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 ".reg .b32 remote;\n"
                 "setp.lt.u32 p, %1, 2;\n"
                 "@p mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "@p mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(bar),
                 "r"(lane)
                 : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ void mbar_wait(u32 bar, u32 parity)
{
    u32 done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!done);
}

__device__ __forceinline__ void tma_load(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

// To the same place in both blocks of the cluster, whose barriers each count the bytes.
__device__ __forceinline__ void tma_load_both(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "h"((unsigned short)3), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void bulk_load_both(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
                 " [%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"((u64)__cvta_generic_to_global(src)), "r"(bytes), "r"(bar), "h"((unsigned short)3)
                 : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap *map, u32 src, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"((u64)map),
                 "r"(src), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void bulk_store(void *dst, u32 src, u32 bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     (u64)__cvta_generic_to_global(dst)),
                 "r"(src), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// WGMMA

// 128-byte swizzle; tiles start at multiples of 1024 bytes.
__device__ __forceinline__ u64 make_desc(u32 addr, u32 leading, u32 stride)
{
    return (u64)((addr & 0x3ffff) >> 4) | ((u64)(leading >> 4) << 16) | ((u64)(stride >> 4) << 32) | ((u64)1 << 62);
}

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

template <int N> __device__ __forceinline__ void keep(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}

template <int N> __device__ __forceinline__ void keep(u32 (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(d[i])::"memory");
}

#define F4(d, i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define F16(d, i) F4(d, (i)), F4(d, (i) + 4), F4(d, (i) + 8), F4(d, (i) + 12)

// A and B in shared memory, both with K innermost.
__device__ __forceinline__ void wgmma_ss_n64(float (&d)[32], u64 a, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31}, "
                 "%32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : F16(d, 0), F16(d, 16)
                 : "l"(a), "l"(b), "r"(accumulate));
}

// A in registers, B with K innermost.
__device__ __forceinline__ void wgmma_rs_n64(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : F16(d, 0), F16(d, 16)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// A in registers, B with N innermost.
__device__ __forceinline__ void wgmma_rs_n128_t(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, "
                 "%8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, "
                 "%24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, "
                 "%48, %49, %50, %51, %52, %53, %54, %55, "
                 "%56, %57, %58, %59, %60, %61, %62, %63}, "
                 "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : F16(d, 0), F16(d, 16), F16(d, 32), F16(d, 48)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// Arithmetic

__device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}

__device__ __forceinline__ u32 tf32(float x)
{
    u32 y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ void mma_tf32(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The running sums of g (to the base 2) and the betas of up to four heads, one a warp.
__device__ __forceinline__ void load_gates(const float *g, const float *beta, float *sums, float *betas, int batch,
                                           int t0, int T, int HV, int head, bool active, int warp, int lane)
{
    if (!active)
        return;
    const float log2e = 1.4426950408889634f;
    const size_t first = ((size_t)batch * T + t0 + lane) * HV + head;
    const size_t second = first + (size_t)32 * HV;
    float a = 0.0f, c = 0.0f, beta_a = 0.0f, beta_c = 0.0f;
    if (t0 + lane < T) {
        a = g[first] * log2e;
        beta_a = beta[first];
    }
    if (t0 + lane + 32 < T) {
        c = g[second] * log2e;
        beta_c = beta[second];
    }
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
        const float x = __shfl_up_sync(0xffffffffu, a, o);
        const float y = __shfl_up_sync(0xffffffffu, c, o);
        if (lane >= o) {
            a += x;
            c += y;
        }
    }
    c += __shfl_sync(0xffffffffu, a, 31);
    sums[warp * 64 + lane] = a;
    sums[warp * 64 + 32 + lane] = c;
    betas[warp * 64 + lane] = beta_a;
    betas[warp * 64 + 32 + lane] = beta_c;
}

// A block: a chunk of a head of q and k, and all heads of values that use it.
extern "C" __global__ void __launch_bounds__(128, 4)
    gdn_prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g,
                const float *beta, float *chunks, int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char raw[];
    unsigned char *base = raw + ((1024 - (smem_addr(raw) & 1023)) & 1023);
    // K and Q (32 KiB) give way to A, kept transposed: at[j * PITCH + i] = A[i][j].
    float *at = reinterpret_cast<float *>(base);
    unsigned char *image = base + 32768;
    float *sums = reinterpret_cast<float *>(base + 49664);
    float *betas = reinterpret_cast<float *>(base + 50688);
    const u32 base_addr = smem_addr(base);
    const u32 bar = base_addr + 51712;

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int chunk = blockIdx.x, hq = blockIdx.y, batch = blockIdx.z;
    const int chunk_count = gridDim.x, t0 = chunk * 64, group = HV / HQ;

    if (tid == 0) {
        mbar_init(bar, 1);
        mbar_init_done();
    }
    __syncthreads();
    if (tid == 0) {
        mbar_expect(bar, 32768);
        tma_load(base_addr, &tm_k, bar, 0, hq, t0, batch);
        tma_load(base_addr + 8192, &tm_k, bar, 64, hq, t0, batch);
        tma_load(base_addr + 16384, &tm_q, bar, 0, hq, t0, batch);
        tma_load(base_addr + 24576, &tm_q, bar, 64, hq, t0, batch);
    }
    __syncwarp();
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    // The blocks of T above the diagonal are zero, for all heads: that of 32 by 32, then the two of 16 by 16.
    {
        const int row = tid >> 2, part = 4 + (tid & 3);
        *reinterpret_cast<uint4 *>(image + row * 128 + ((part ^ (row & 7)) << 4)) = make_uint4(0, 0, 0, 0);
    }
    if (tid < 64) {
        const int which = tid >> 5, row = 32 * which + ((tid >> 1) & 15), part = 2 + 4 * which + (tid & 1);
        *reinterpret_cast<uint4 *>(image + row * 128 + ((part ^ (row & 7)) << 4)) = make_uint4(0, 0, 0, 0);
    }
    load_gates(g, beta, sums, betas, batch, t0, T, HV, hq * group + warp, warp < group, warp, lane);

    mbar_wait(bar, 0);
    __syncwarp();
    float kk[32], qk[32];
    {
        const u64 k_desc = make_desc(base_addr, 16, 1024), q_desc = make_desc(base_addr + 16384, 16, 1024);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const int off = (s >> 2) * 512 + (s & 3) * 2;
            wgmma_ss_n64(kk, k_desc + off, k_desc + off, s > 0);
        }
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const int off = (s >> 2) * 512 + (s & 3) * 2;
            wgmma_ss_n64(qk, q_desc + off, k_desc + off, s > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        keep(kk);
        keep(qk);
    }

    const int quad = lane >> 2, t = lane & 3;

    for (int r0 = 0; r0 < group; r0 += 4) {
        const int count = group - r0 < 4 ? group - r0 : 4;
        for (int r = 0; r < count; ++r) {
            const int head = hq * group + r0 + r;
            const float *G = sums + r * 64;
            const float *bt = betas + r * 64;

            // The image of the head before has been read; K, Q and the matrix of the head before are done with.
            if (tid == 0)
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            __syncthreads();

            {
                const int i0 = 16 * warp + quad, i1 = i0 + 8;
                const float g0 = G[i0], g1 = G[i1], b0 = bt[i0], b1 = bt[i1];
                unsigned char *p_row = image + IMAGE_P + i0 * 128 + 4 * t;
#pragma unroll
                for (int n = 0; n < 8; ++n) {
                    const int j = 8 * n + 2 * t;
                    u32 p0 = 0, p1 = 0;
                    if (n <= 2 * warp + 1) {
                        const float2 gj = *reinterpret_cast<const float2 *>(G + j);
                        const float e00 = ex2(g0 - gj.x), e01 = ex2(g0 - gj.y);
                        const float e10 = ex2(g1 - gj.x), e11 = ex2(g1 - gj.y);
                        at[j * PITCH + i0] = i0 > j ? b0 * e00 * kk[4 * n] : 0.0f;
                        at[(j + 1) * PITCH + i0] = i0 > j + 1 ? b0 * e01 * kk[4 * n + 1] : 0.0f;
                        at[j * PITCH + i1] = i1 > j ? b1 * e10 * kk[4 * n + 2] : 0.0f;
                        at[(j + 1) * PITCH + i1] = i1 > j + 1 ? b1 * e11 * kk[4 * n + 3] : 0.0f;
                        const float p00 = i0 >= j ? scale * e00 * qk[4 * n] : 0.0f;
                        const float p01 = i0 >= j + 1 ? scale * e01 * qk[4 * n + 1] : 0.0f;
                        const float p10 = i1 >= j ? scale * e10 * qk[4 * n + 2] : 0.0f;
                        const float p11 = i1 >= j + 1 ? scale * e11 * qk[4 * n + 3] : 0.0f;
                        p0 = pack(p00, p01);
                        p1 = pack(p10, p11);
                    }
                    const int place = (n ^ quad) << 4;  // i0 & 7 and i1 & 7 are quad
                    *reinterpret_cast<u32 *>(p_row + place) = p0;
                    *reinterpret_cast<u32 *>(p_row + 1024 + place) = p1;
                }
                if (tid < 64) {
                    float *gates = reinterpret_cast<float *>(image + IMAGE_GATES);
                    gates[tid] = ex2(G[tid]);
                    gates[64 + tid] = ex2(G[63] - G[tid]);
                }
            }
            __syncthreads();

            // The inverses of the four diagonal blocks of I + A: a warp each, a lane of either half a column.
            {
                float *block = at + 16 * warp * PITCH + 16 * warp;
                const int col = lane & 15, side = lane >> 4;
                float x[16];
#pragma unroll
                for (int i = 0; i < 16; ++i)
                    x[i] = i == col ? 1.0f : 0.0f;
#pragma unroll
                for (int m = 0; m < 15; ++m) {
                    const float xm = x[m];
#pragma unroll
                    for (int c = (m + 1) / 4; c < 4; ++c) {
                        const float4 a = *reinterpret_cast<const float4 *>(block + m * PITCH + 4 * c);
                        if (4 * c > m)
                            x[4 * c] = fmaf(-a.x, xm, x[4 * c]);
                        if (4 * c + 1 > m)
                            x[4 * c + 1] = fmaf(-a.y, xm, x[4 * c + 1]);
                        if (4 * c + 2 > m)
                            x[4 * c + 2] = fmaf(-a.z, xm, x[4 * c + 2]);
                        if (4 * c + 3 > m)
                            x[4 * c + 3] = fmaf(-a.w, xm, x[4 * c + 3]);
                    }
                }
                __syncwarp();
                // Each half writes eight rows.
                float y[8];
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    y[i] = side ? x[8 + i] : x[i];
                float *column = block + col * PITCH + 8 * side;
                *reinterpret_cast<float4 *>(column) = make_float4(y[0], y[1], y[2], y[3]);
                *reinterpret_cast<float4 *>(column + 4) = make_float4(y[4], y[5], y[6], y[7]);
                const float bj = bt[16 * warp + col];
                const int part = 2 * warp + (col >> 3);
                unsigned char *t_column = image + (16 * warp + 8 * side) * 128 + 2 * (col & 7);
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    *reinterpret_cast<__nv_bfloat16 *>(t_column + i * 128 + ((part ^ i) << 4)) =
                        __float2bfloat16_rn(y[i] * bj);
            }
            __syncthreads();

            // The blocks of 16 by 16 below: T21 = -T22 (A21 T11) for two pairs, eight columns a warp.
            {
                const int pair = warp >> 1, h8 = 8 * (warp & 1);
                float *corner = at + 32 * pair * PITCH + 32 * pair;
                float m[4] = {0.0f, 0.0f, 0.0f, 0.0f}, d[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    const float *right = corner + (h8 + quad) * PITCH + 8 * s + t;
                    const float *left = corner + (8 * s + t) * PITCH + 16 + quad;
                    mma_tf32(m, tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]), tf32(left[4 * PITCH + 8]),
                             tf32(right[0]), tf32(right[4]));
                }
                float *middle = corner + (16 + h8) * PITCH;  // the product, transposed, above the diagonal of A
                {
                    float *to = middle + 2 * t * PITCH + quad;
                    to[0] = m[0];
                    to[PITCH] = m[1];
                    to[8] = m[2];
                    to[PITCH + 8] = m[3];
                }
                __syncwarp();
#pragma unroll
                for (int s = 0; s < 2; ++s) {
                    const float *right = middle + quad * PITCH + 8 * s + t;
                    const float *left = corner + (16 + 8 * s + t) * PITCH + 16 + quad;
                    mma_tf32(d, tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]), tf32(left[4 * PITCH + 8]),
                             tf32(right[0]), tf32(right[4]));
                }
                __syncthreads();  // A21 has been read by both warps of the pair and gives way to T21
                {
                    float *to = corner + (h8 + 2 * t) * PITCH + 16 + quad;
                    to[0] = -d[0];
                    to[PITCH] = -d[1];
                    to[8] = -d[2];
                    to[PITCH + 8] = -d[3];
                    const float2 bj = *reinterpret_cast<const float2 *>(bt + 32 * pair + h8 + 2 * t);
                    const int part = 4 * pair + (warp & 1);
                    unsigned char *place = image + (32 * pair + 16 + quad) * 128 + ((part ^ quad) << 4) + 4 * t;
                    *reinterpret_cast<u32 *>(place) = pack(-d[0] * bj.x, -d[1] * bj.y);
                    *reinterpret_cast<u32 *>(place + 1024) = pack(-d[2] * bj.x, -d[3] * bj.y);
                }
            }
            __syncthreads();

            // The block of 32 by 32 below in the same way, eight columns a warp. The blocks of 16 by 16 above the
            // diagonals of T11 and T22 are zero and not kept: their products are left out.
            {
                float m[2][4], d[2][4];
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        m[h][e] = d[h][e] = 0.0f;
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    if (s >= 2 * (warp >> 1)) {
                        const float *right = at + (8 * warp + quad) * PITCH + 8 * s + t;
                        const u32 b0 = tf32(right[0]), b1 = tf32(right[4]);
#pragma unroll
                        for (int h = 0; h < 2; ++h) {
                            const float *left = at + (8 * s + t) * PITCH + 32 + 16 * h + quad;
                            mma_tf32(m[h], tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]),
                                     tf32(left[4 * PITCH + 8]), b0, b1);
                        }
                    }
                }
                float *middle = at + (32 + 8 * warp) * PITCH;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    float *to = middle + 2 * t * PITCH + 16 * h + quad;
                    to[0] = m[h][0];
                    to[PITCH] = m[h][1];
                    to[8] = m[h][2];
                    to[PITCH + 8] = m[h][3];
                }
                __syncwarp();
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    const float *right = middle + quad * PITCH + 8 * s + t;
                    const u32 b0 = tf32(right[0]), b1 = tf32(right[4]);
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        if (s < 2 || h == 1) {
                            const float *left = at + (32 + 8 * s + t) * PITCH + 32 + 16 * h + quad;
                            mma_tf32(d[h], tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]),
                                     tf32(left[4 * PITCH + 8]), b0, b1);
                        }
                    }
                }
                const float2 bj = *reinterpret_cast<const float2 *>(bt + 8 * warp + 2 * t);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    unsigned char *to = image + (32 + 16 * h + quad) * 128 + ((warp ^ quad) << 4) + 4 * t;
                    *reinterpret_cast<u32 *>(to) = pack(-d[h][0] * bj.x, -d[h][1] * bj.y);
                    *reinterpret_cast<u32 *>(to + 1024) = pack(-d[h][2] * bj.x, -d[h][3] * bj.y);
                }
            }
            asm volatile("fence.proxy.async;" ::: "memory");
            __syncthreads();
            if (tid == 0)
                bulk_store(chunks + (((size_t)batch * HV + head) * chunk_count + chunk) * IMAGE_FLOATS,
                           base_addr + 32768, IMAGE_BYTES);
            __syncwarp();
        }
        if (r0 + 4 < group)
            load_gates(g, beta, sums, betas, batch, t0, T, HV, hq * group + r0 + 4 + warp, r0 + 4 + warp < group, warp,
                       lane);
    }
    if (tid == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void pack_state(u32 (&to)[32], const float (&from)[64])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        to[i] = pack(from[2 * i], from[2 * i + 1]);
}

// Four 8 by 8 matrices, a lane l of which holds row l / 4 and two columns, to the rows that the lanes' addresses name.
__device__ __forceinline__ void store_matrices(u32 addr, u32 a, u32 b, u32 c, u32 d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(addr), "r"(a), "r"(b), "r"(c),
                 "r"(d)
                 : "memory");
}

// What this thread wrote to shared memory becomes visible to WGMMA and TMA.
__device__ __forceinline__ void fence_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// A block: 64 columns of a head's state; a cluster: both halves of it. Warps 0 to 3 hold the state's transpose, 64
// columns by 128 keys, and carry it from chunk to chunk; warps 4 to 7 compute the output; warp 8 loads.
extern "C" __global__ void __launch_bounds__(288, 1)
    gdn_scan(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k,
             const __grid_constant__ TensorMap tm_v, const __grid_constant__ TensorMap tm_o, const float *initial_state,
             const float *chunks, float *final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char raw[];
    unsigned char *base = raw + ((1024 - (smem_addr(raw) & 1023)) & 1023);
    const u32 base_addr = smem_addr(base);
    const u32 full = base_addr + SCAN_BARS, empty = full + 8 * STAGES;
    const u32 state_ready = empty + 8 * STAGES, state_free = state_ready + 8;
    const u32 update_ready = state_ready + 16, update_free = state_ready + 24;

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int rank = blockIdx.x;  // in the cluster
    const int column = 64 * rank, head = blockIdx.y, batch = blockIdx.z;
    const int chunk_count = (T + 63) / 64;
    const int quad = lane >> 2, t2 = 2 * (lane & 3);

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + 8 * s, 1);
            mbar_init(empty + 8 * s, 16);  // eight warps of either block
        }
        mbar_init(state_ready, 4);
        mbar_init(state_free, 4);
        mbar_init(update_ready, 4);
        mbar_init(update_free, 4);
        mbar_init_done();
    }
    __syncthreads();
    cluster_sync();

    if (warp == 8) {
        if (lane == 0) {
            asm volatile("griddepcontrol.wait;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory");
            const int hq = head / (HV / HQ);
            const float *from = chunks + ((size_t)batch * HV + head) * chunk_count * IMAGE_FLOATS;
            int s = 0;
            u32 parity = 1;  // of the stage's last release; the first round passes
            for (int c = 0; c < chunk_count; ++c) {
                mbar_wait(empty + 8 * s, parity);
                const u32 bar = full + 8 * s, stage = base_addr + s * STAGE_BYTES;
                const int t0 = c * 64;
                // Each block loads its half of what both need, to both.
                mbar_expect(bar, STAGE_LOADED);
                tma_load_both(stage + 8192 * rank, &tm_k, bar, 64 * rank, hq, t0, batch);
                tma_load_both(stage + STAGE_Q + 8192 * rank, &tm_q, bar, 64 * rank, hq, t0, batch);
                tma_load(stage + STAGE_V, &tm_v, bar, column, head, t0, batch);
                const float *image = from + (size_t)c * IMAGE_FLOATS;
                if (rank == 0)
                    bulk_load_both(stage + STAGE_T, image, IMAGE_P, bar);
                else
                    bulk_load_both(stage + STAGE_P, image + IMAGE_P / 4, IMAGE_BYTES - IMAGE_P, bar);
                if (++s == STAGES) {
                    s = 0;
                    parity ^= 1;
                }
            }
        }
        __syncwarp();
    } else if (warp < 4) {
        const int my_column = column + 16 * warp + quad;

        // state[4n + e]: key 8n + t2 + (e & 1), column my_column + 8 (e >> 1)
        float state[64];
        u32 state16[32];
        const size_t state_first = (((size_t)batch * HV + head) * 128 + t2) * 128 + my_column;
        {
            const float *from = initial_state + state_first;
#pragma unroll
            for (int n = 0; n < 16; ++n) {
                state[4 * n] = from[8 * n * 128];
                state[4 * n + 1] = from[8 * n * 128 + 128];
                state[4 * n + 2] = from[8 * n * 128 + 8];
                state[4 * n + 3] = from[8 * n * 128 + 136];
            }
        }
        pack_state(state16, state);
        keep(state);
        keep(state16);

        // Lane l of ldmatrix gives the row (l & 7) of the 8 by 8 matrix l >> 3: tokens +0, +0, +8, +8, columns +0, +8, +0, +8.
        const int v_part = 2 * warp + ((lane >> 3) & 1);
        const u32 v_offset = STAGE_V + (8 * (lane >> 4) + (lane & 7)) * 128 + ((v_part ^ (lane & 7)) << 4);

        // Lane l of stmatrix likewise: columns +0, +8, +0, +8, keys or tokens +0, +0, +8, +8.
        const u32 row_offset = (16 * warp + 8 * ((lane >> 3) & 1) + (lane & 7)) * 128;
        const u32 part = (lane >> 4) ^ (lane & 7);
        const u32 state_to = base_addr + SCAN_STATE + row_offset;
        const u32 update_to = base_addr + SCAN_UPDATE + row_offset;
        const u32 first_lane = lane == 0;

        int s = 0;
        u32 parity = 0;
        for (int c = 0; c < chunk_count; ++c) {
            const u32 stage = base_addr + s * STAGE_BYTES;
            const float *gates = reinterpret_cast<const float *>(base + s * STAGE_BYTES + STAGE_GATES);
            const u64 k_desc = make_desc(stage, 16, 1024);
            const u64 t_desc = make_desc(stage + STAGE_T, 16, 1024);
            const u64 kt_desc = make_desc(stage, 8192, 1024);  // keys innermost: 64 keys to 8192 bytes, 8 tokens to 1024

            mbar_wait(full + 8 * s, parity);
            mbar_wait(state_free, (c & 1) ^ 1);  // of the chunk before; the first passes
            __syncwarp();

            // K S, transposed
            float work[32];
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 8; ++k)
                wgmma_rs_n64(work, state16[4 * k], state16[4 * k + 1], state16[4 * k + 2], state16[4 * k + 3],
                             k_desc + ((k >> 2) * 512 + (k & 3) * 2), k > 0);
            wgmma_commit();

            // The state for the output
#pragma unroll
            for (int i = 0; i < 8; ++i)
                store_matrices(state_to + (i >> 2) * 8192 + ((part ^ (2 * (i & 3))) << 4), state16[4 * i],
                               state16[4 * i + 1], state16[4 * i + 2], state16[4 * i + 3]);
            fence_shared();
            __syncwarp();
            mbar_arrive(state_ready, first_lane);

            const float decay = gates[63];
            float2 grown[8];
            u32 v[16];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                grown[n] = *reinterpret_cast<const float2 *>(gates + 8 * n + t2);
#pragma unroll
            for (int n = 0; n < 4; ++n)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[4 * n]), "=r"(v[4 * n + 1]), "=r"(v[4 * n + 2]), "=r"(v[4 * n + 3])
                             : "r"(stage + v_offset + n * 2048)
                             : "memory");
#pragma unroll
            for (int i = 0; i < 64; ++i)
                state[i] *= decay;
            keep(state);

            wgmma_wait<0>();
            keep(work);
            keep(state16);

            // R = V - exp(G) K S
            u32 residual[16];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const u32 v0 = v[2 * n], v1 = v[2 * n + 1];
                const float r00 = fmaf(-grown[n].x, work[4 * n], __uint_as_float(v0 << 16));
                const float r01 = fmaf(-grown[n].y, work[4 * n + 1], __uint_as_float(v0 & 0xffff0000u));
                const float r10 = fmaf(-grown[n].x, work[4 * n + 2], __uint_as_float(v1 << 16));
                const float r11 = fmaf(-grown[n].y, work[4 * n + 3], __uint_as_float(v1 & 0xffff0000u));
                residual[2 * n] = pack(r00, r01);
                residual[2 * n + 1] = pack(r10, r11);
            }
            keep(residual);

            // U = T diag(beta) R
            float update[32];
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma_rs_n64(update, residual[4 * k], residual[4 * k + 1], residual[4 * k + 2], residual[4 * k + 3],
                             t_desc + 2 * k, k > 0);
            wgmma_commit();

            float2 left[8];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                left[n] = *reinterpret_cast<const float2 *>(gates + 64 + 8 * n + t2);

            wgmma_wait<0>();
            keep(update);
            keep(residual);

            u32 update16[16], decayed16[16];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                decayed16[2 * n] = pack(update[4 * n] * left[n].x, update[4 * n + 1] * left[n].y);
                decayed16[2 * n + 1] = pack(update[4 * n + 2] * left[n].x, update[4 * n + 3] * left[n].y);
                update16[2 * n] = pack(update[4 * n], update[4 * n + 1]);
                update16[2 * n + 1] = pack(update[4 * n + 2], update[4 * n + 3]);
            }
            keep(decayed16);
            keep(update16);

            mbar_wait(update_free, (c & 1) ^ 1);  // of the chunk before; the first passes
            __syncwarp();

            // The state
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma_rs_n128_t(state, decayed16[4 * k], decayed16[4 * k + 1], decayed16[4 * k + 2],
                                decayed16[4 * k + 3], kt_desc + 128 * k, 1);
            wgmma_commit();

            // The updates for the output
#pragma unroll
            for (int i = 0; i < 4; ++i)
                store_matrices(update_to + ((part ^ (2 * i)) << 4), update16[4 * i], update16[4 * i + 1],
                               update16[4 * i + 2], update16[4 * i + 3]);
            fence_shared();
            __syncwarp();
            mbar_arrive(update_ready, first_lane);

            wgmma_wait<0>();
            keep(state);
            keep(decayed16);
            __syncwarp();
            mbar_arrive_both(empty + 8 * s, lane);

            pack_state(state16, state);
            keep(state16);
            if (++s == STAGES) {
                s = 0;
                parity ^= 1;
            }
        }

        float *final_to = final_state + state_first;
#pragma unroll
        for (int n = 0; n < 16; ++n) {
            final_to[8 * n * 128] = state[4 * n];
            final_to[8 * n * 128 + 128] = state[4 * n + 1];
            final_to[8 * n * 128 + 8] = state[4 * n + 2];
            final_to[8 * n * 128 + 136] = state[4 * n + 3];
        }
        __syncwarp();
    } else {
        const int w = warp - 4;
        const u32 first_lane = lane == 0;
        const u64 s_desc = make_desc(base_addr + SCAN_STATE, 16, 1024);
        const u64 u_desc = make_desc(base_addr + SCAN_UPDATE, 16, 1024);

        // The output waits for TMA as two tiles of 64 tokens by 32 columns, 128-byte swizzle. This thread has the
        // tokens 8n + t2 and 8n + t2 + 1, the columns 16w + quad and 16w + quad + 8.
        unsigned char *tile = base + SCAN_OUT + (w >> 1) * 8192 + t2 * 128 + 4 * (quad & 3);
        const int part = 4 * (w & 1) + (quad >> 2);
        float *to00 = reinterpret_cast<float *>(tile + ((part ^ t2) << 4));
        float *to01 = reinterpret_cast<float *>(tile + 128 + ((part ^ (t2 + 1)) << 4));
        float *to10 = reinterpret_cast<float *>(tile + (((part + 2) ^ t2) << 4));
        float *to11 = reinterpret_cast<float *>(tile + 128 + (((part + 2) ^ (t2 + 1)) << 4));

        int s = 0;
        u32 parity = 0;
        for (int c = 0; c < chunk_count; ++c) {
            const u32 stage = base_addr + s * STAGE_BYTES;
            const float *gates = reinterpret_cast<const float *>(base + s * STAGE_BYTES + STAGE_GATES);
            const u64 q_desc = make_desc(stage + STAGE_Q, 16, 1024);
            const u64 p_desc = make_desc(stage + STAGE_P, 16, 1024);

            mbar_wait(full + 8 * s, parity);
            mbar_wait(state_ready, c & 1);
            __syncwarp();

            // Q S, transposed
            float out[32];
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 8; ++k) {
                const int off = (k >> 2) * 512 + (k & 3) * 2;
                wgmma_ss_n64(out, s_desc + off, q_desc + off, k > 0);
            }
            wgmma_commit();

            float2 grown[8];
#pragma unroll
            for (int n = 0; n < 8; ++n)
                grown[n] = *reinterpret_cast<const float2 *>(gates + 8 * n + t2);

            wgmma_wait<0>();
            keep(out);
            __syncwarp();
            mbar_arrive(state_free, first_lane);
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const float x = grown[n].x * scale, y = grown[n].y * scale;
                out[4 * n] *= x;
                out[4 * n + 1] *= y;
                out[4 * n + 2] *= x;
                out[4 * n + 3] *= y;
            }
            keep(out);

            mbar_wait(update_ready, c & 1);
            __syncwarp();

            // + P U, transposed
            wgmma_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wgmma_ss_n64(out, u_desc + 2 * k, p_desc + 2 * k, 1);
            wgmma_commit();
            wgmma_wait<0>();
            keep(out);
            __syncwarp();
            mbar_arrive(update_free, first_lane);
            mbar_arrive_both(empty + 8 * s, lane);

            // The tiles of the chunk before have been read.
            if (tid == 128)
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            __syncwarp();
            asm volatile("bar.sync 1, 128;" ::: "memory");
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                to00[256 * n] = out[4 * n];
                to01[256 * n] = out[4 * n + 1];
                to10[256 * n] = out[4 * n + 2];
                to11[256 * n] = out[4 * n + 3];
            }
            fence_shared();
            asm volatile("bar.sync 1, 128;" ::: "memory");
            if (tid == 128) {
                const u32 from = base_addr + SCAN_OUT;
                tma_store(&tm_o, from, column, head, c * 64, batch);
                tma_store(&tm_o, from + 8192, column + 32, head, c * 64, batch);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
            __syncwarp();

            if (++s == STAGES) {
                s = 0;
                parity ^= 1;
            }
        }
        if (tid == 128)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        __syncwarp();
    }

    // Neither block leaves while the other may still reach its barriers.
    cluster_sync();
}
