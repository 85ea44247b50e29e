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

[[launch]]
kernel = "gdn_prepare"
grid = ["ceil_div(T, 64)", "HQ", "B"]
block = ["128"]
shared = "52992"
args = ["tm_q", "tm_k", "g", "beta", "chunks", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "176384"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "initial_state", "chunks", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
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

__device__ __forceinline__ void mbar_arrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
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

__device__ __forceinline__ void bulk_load(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"((u64)__cvta_generic_to_global(src)), "r"(bytes), "r"(bar)
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

    // The block of T above the diagonal is zero, for all heads.
    {
        const int row = tid >> 2, part = 4 + (tid & 3);
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

            // The inverses of the two diagonal blocks of I + A: a warp each, a lane a column.
            if (warp < 2) {
                float *block = at + 32 * warp * PITCH + 32 * warp;
                float x[32];
#pragma unroll
                for (int i = 0; i < 32; ++i)
                    x[i] = i == lane ? 1.0f : 0.0f;
#pragma unroll
                for (int m = 0; m < 31; ++m) {
                    const float xm = x[m];
#pragma unroll
                    for (int c = (m + 1) / 4; c < 8; ++c) {
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
#pragma unroll
                for (int c = 0; c < 8; ++c)
                    *reinterpret_cast<float4 *>(block + lane * PITCH + 4 * c) =
                        make_float4(x[4 * c], x[4 * c + 1], x[4 * c + 2], x[4 * c + 3]);
                const float bj = bt[32 * warp + lane];
                const int part = 4 * warp + (lane >> 3);
                unsigned char *t_column = image + 32 * warp * 128 + 2 * (lane & 7);
#pragma unroll
                for (int i = 0; i < 32; ++i)
                    *reinterpret_cast<__nv_bfloat16 *>(t_column + i * 128 + ((part ^ (i & 7)) << 4)) =
                        __float2bfloat16_rn(x[i] * bj);
            }
            __syncthreads();

            // The block below: T21 = -T22 (A21 T11), eight columns a warp.
            {
                float m[2][4], d[2][4];
#pragma unroll
                for (int h = 0; h < 2; ++h)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        m[h][e] = d[h][e] = 0.0f;
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    const float *right = at + (8 * warp + quad) * PITCH + 8 * s + t;
                    const u32 b0 = tf32(right[0]), b1 = tf32(right[4]);
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        const float *left = at + (8 * s + t) * PITCH + 32 + 16 * h + quad;
                        mma_tf32(m[h], tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]), tf32(left[4 * PITCH + 8]),
                                 b0, b1);
                    }
                }
                float *middle = at + (32 + 8 * warp) * PITCH;  // the product, transposed, above the diagonal of A
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
                        const float *left = at + (32 + 8 * s + t) * PITCH + 32 + 16 * h + quad;
                        mma_tf32(d[h], tf32(left[0]), tf32(left[8]), tf32(left[4 * PITCH]), tf32(left[4 * PITCH + 8]),
                                 b0, b1);
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

// A block: 64 columns of a head's state. Warps 0 to 3 hold its transpose, 64 columns by 128 keys; warp 4 loads.
extern "C" __global__ void __launch_bounds__(160, 1)
    gdn_scan(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k,
             const __grid_constant__ TensorMap tm_v, const float *initial_state, const float *chunks, float *output,
             float *final_state, int T, int HQ, int HV, float scale)
{
    extern __shared__ __align__(1024) unsigned char raw[];
    unsigned char *base = raw + ((1024 - (smem_addr(raw) & 1023)) & 1023);
    const u32 base_addr = smem_addr(base);
    const u32 full = base_addr + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int column = 64 * blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int chunk_count = (T + 63) / 64;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + 8 * s, 1);
            mbar_init(empty + 8 * s, 4);
        }
        mbar_init_done();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            asm volatile("griddepcontrol.wait;" ::: "memory");
            asm volatile("fence.proxy.async;" ::: "memory");
            const int hq = head / (HV / HQ);
            const float *from = chunks + ((size_t)batch * HV + head) * chunk_count * IMAGE_FLOATS;
            int s = 0;
            u32 parity = 1;  // of the stage's last release; the first round needs none
            for (int c = 0; c < chunk_count; ++c) {
                if (c >= STAGES)
                    mbar_wait(empty + 8 * s, parity);
                const u32 bar = full + 8 * s, stage = base_addr + s * STAGE_BYTES;
                const int t0 = c * 64;
                mbar_expect(bar, STAGE_LOADED);
                tma_load(stage, &tm_k, bar, 0, hq, t0, batch);
                tma_load(stage + 8192, &tm_k, bar, 64, hq, t0, batch);
                tma_load(stage + STAGE_V, &tm_v, bar, column, head, t0, batch);
                bulk_load(stage + STAGE_T, from + (size_t)c * IMAGE_FLOATS, IMAGE_BYTES, bar);
                tma_load(stage + STAGE_Q, &tm_q, bar, 0, hq, t0, batch);
                tma_load(stage + STAGE_Q + 8192, &tm_q, bar, 64, hq, t0, batch);
                if (++s == STAGES) {
                    s = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    const int quad = lane >> 2, t2 = 2 * (lane & 3);
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
    asm volatile("griddepcontrol.wait;" ::: "memory");
    pack_state(state16, state);
    keep(state);
    keep(state16);

    const size_t token_pitch = (size_t)HV * 128;
    float *to = output + (((size_t)batch * T + t2) * HV + head) * 128 + my_column;  // of the chunk to be written next

    // Lane l of ldmatrix gives the row (l & 7) of the 8 by 8 matrix l >> 3: tokens +0, +0, +8, +8, columns +0, +8, +0, +8.
    const int v_part = 2 * warp + ((lane >> 3) & 1);
    const u32 v_offset = STAGE_V + (8 * (lane >> 4) + (lane & 7)) * 128 + ((v_part ^ (lane & 7)) << 4);

    float out[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        out[i] = 0.0f;

    int s = 0;
    u32 parity = 0;
    for (int c = 0; c < chunk_count; ++c) {
        const u32 stage = base_addr + s * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(base + s * STAGE_BYTES + STAGE_GATES);
        const u64 k_desc = make_desc(stage, 16, 1024);
        const u64 q_desc = make_desc(stage + STAGE_Q, 16, 1024);
        const u64 t_desc = make_desc(stage + STAGE_T, 16, 1024);
        const u64 p_desc = make_desc(stage + STAGE_P, 16, 1024);
        const u64 kt_desc = make_desc(stage, 8192, 1024);  // keys innermost: 64 keys to 8192 bytes, 8 tokens to 1024

        mbar_wait(full + 8 * s, parity);
        __syncwarp();

        // K S, transposed
        float work[32];
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 8; ++k)
            wgmma_rs_n64(work, state16[4 * k], state16[4 * k + 1], state16[4 * k + 2], state16[4 * k + 3],
                         k_desc + ((k >> 2) * 512 + (k & 3) * 2), k > 0);
        wgmma_commit();

        // The chunk before, which is a whole one
        if (c > 0) {
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                float *p = to + (size_t)(8 * n) * token_pitch;
                __stcs(p, out[4 * n]);
                __stcs(p + 8, out[4 * n + 2]);
                p += token_pitch;
                __stcs(p, out[4 * n + 1]);
                __stcs(p + 8, out[4 * n + 3]);
            }
            to += 64 * token_pitch;
        }

        // Q S, transposed
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 8; ++k)
            wgmma_rs_n64(out, state16[4 * k], state16[4 * k + 1], state16[4 * k + 2], state16[4 * k + 3],
                         q_desc + ((k >> 2) * 512 + (k & 3) * 2), k > 0);
        wgmma_commit();

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

        wgmma_wait<1>();
        keep(work);

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

        wgmma_wait<1>();  // Q S
        keep(out);
        keep(state16);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float x = grown[n].x * scale, y = grown[n].y * scale;
            out[4 * n] *= x;
            out[4 * n + 1] *= y;
            out[4 * n + 2] *= x;
            out[4 * n + 3] *= y;
        }
        keep(out);

        wgmma_wait<0>();  // U
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

        // The state, then the output
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma_rs_n128_t(state, decayed16[4 * k], decayed16[4 * k + 1], decayed16[4 * k + 2], decayed16[4 * k + 3],
                            kt_desc + 128 * k, 1);
        wgmma_commit();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma_rs_n64(out, update16[4 * k], update16[4 * k + 1], update16[4 * k + 2], update16[4 * k + 3],
                         p_desc + 2 * k, 1);
        wgmma_commit();

        wgmma_wait<1>();
        keep(state);
        keep(decayed16);
        pack_state(state16, state);
        keep(state16);

        wgmma_wait<0>();
        keep(out);
        keep(update16);
        __syncwarp();
        if (lane == 0)
            mbar_arrive(empty + 8 * s);
        __syncwarp();
        if (++s == STAGES) {
            s = 0;
            parity ^= 1;
        }
    }

    // The last chunk, which may be a part of one
    {
        const int rest = T - (chunk_count - 1) * 64 - t2;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            float *p = to + (size_t)(8 * n) * token_pitch;
            if (8 * n < rest) {
                __stcs(p, out[4 * n]);
                __stcs(p + 8, out[4 * n + 2]);
            }
            p += token_pitch;
            if (8 * n + 1 < rest) {
                __stcs(p, out[4 * n + 1]);
                __stcs(p + 8, out[4 * n + 3]);
            }
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
}
