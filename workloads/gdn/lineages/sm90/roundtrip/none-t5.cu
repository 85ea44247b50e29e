/*klineage
surface = "cuda"

[[workspace]]
name = "wt"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64)", "4096"]
init = "poison"

[[workspace]]
name = "wp"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64)", "4096"]
init = "poison"

[[workspace]]
name = "wg"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64)", "192"]
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
kernel = "gdn_prep"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = 65536
args = ["tm_q", "tm_k", "g", "beta", "wt", "wp", "wg", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["2", "HV", "B"]
block = ["160"]
shared = 177152
pdl = true
args = ["tm_q", "tm_k", "tm_v", "wt", "wp", "wg", "initial_state", "output", "final_state", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With c the running sum of g within a chunk and S0 the state before it:
//   A[i][j] = beta_i exp(c_i - c_j) k_i.k_j  (j < i),   X = (I + A)^-1 diag(beta)
//   U = X (V - exp(c) K S0),   O = scale (exp(c) Q S0 + (exp(c_i - c_j) q_i.k_j)(j <= i) U)
//   S = exp(c_last) S0 + K^T (exp(c_last - c) U)
// X and the matrix before U do not depend on the state: gdn_prep computes them for all chunks at once, as fp16.
// They lie in the workspaces (declared as bf16, which is as wide) in the order of bytes that wgmma wants in shared memory.

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

// ---------------------------------------------------------------------------------------------- barriers and copies

__device__ __forceinline__ u32 smem_u32(const void *p)
{
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
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
    } while (done == 0);
}

__device__ __forceinline__ void init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void proxy_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Box of 64 tokens by 64 elements of one head: coordinates innermost first.
__device__ __forceinline__ void tma_load(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(dst),
                 "l"(reinterpret_cast<u64>(map)), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void bulk_load(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(dst),
                 "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(bar)
                 : "memory");
}

__device__ __forceinline__ void bulk_store(void *dst, u32 src, u32 bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(dst)), "r"(src), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// ------------------------------------------------------------------------------------------------ small arithmetic

__device__ __forceinline__ float ex2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// The first argument goes to the lower half.
__device__ __forceinline__ u32 pack_half(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

__device__ __forceinline__ u32 pack_bf16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

__device__ __forceinline__ unsigned short to_half(float x)
{
    unsigned short r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ u32 mul_half2(u32 a, u32 b)
{
    u32 r;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}

// ------------------------------------------------------------------------------------------------ mma of one warp

__device__ __forceinline__ void ldm(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void ldm_t(u32 (&r)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

__device__ __forceinline__ void mma8(float *d, const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// d (16 by 16) += a (16 by 16) b (16 by 16)
__device__ __forceinline__ void mma16(float (&d)[8], const u32 (&a)[4], const u32 (&b)[4])
{
    mma8(d, a, b[0], b[1]);
    mma8(d + 4, a, b[2], b[3]);
}

__device__ __forceinline__ void clear8(float (&d)[8])
{
#pragma unroll
    for (int i = 0; i < 8; ++i)
        d[i] = 0.0f;
}

// Accumulators of 16 by 16 as an A operand.
__device__ __forceinline__ void as_a(u32 (&a)[4], const float (&d)[8])
{
    a[0] = pack_half(d[0], d[1]);
    a[1] = pack_half(d[2], d[3]);
    a[2] = pack_half(d[4], d[5]);
    a[3] = pack_half(d[6], d[7]);
}

// ---------------------------------------------------------------------------------------------------------- wgmma

// Swizzle 128B; rows of 128 bytes, groups of eight rows 1024 bytes apart.
__device__ __forceinline__ u64 desc_of(u32 at, u32 lead)
{
    return (1ull << 62) | (64ull << 32) | (u64(lead) << 16) | u64((at & 0x3FFFFu) >> 4);
}

__device__ __forceinline__ void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int N> __device__ __forceinline__ void wg_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps the compiler from moving uses of these registers across the fences and waits.
template <int N> __device__ __forceinline__ void pin(float (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(d[i]));
}

template <int N> __device__ __forceinline__ void pin(u32 (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(d[i]));
}

// These operands are alive until here.
template <int N> __device__ __forceinline__ void hold(const u32 (&d)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" ::"r"(d[i]));
}

#define OP4(d, i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define OP16(d, i) OP4(d, (i)), OP4(d, (i) + 4), OP4(d, (i) + 8), OP4(d, (i) + 12)
#define LIST32                                                                                                   \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LIST64                                                                                                   \
    LIST32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                     \
           "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// d (64 by 64) = a (64 by 16, shared) b (16 by 64, shared), plus d where keep is not 0; both with k innermost.
__device__ __forceinline__ void wg_ss_bf16(float (&d)[32], u64 a, u64 b, int keep)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, %32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : OP16(d, 0), OP16(d, 16)
                 : "l"(a), "l"(b), "r"(keep));
}

// The same with a in registers.
__device__ __forceinline__ void wg_rs_bf16(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int keep)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LIST32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : OP16(d, 0), OP16(d, 16)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}

__device__ __forceinline__ void wg_rs_half(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int keep)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LIST32 "}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : OP16(d, 0), OP16(d, 16)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(keep));
}

// d (64 by 128) += a (64 by 16, registers) b (16 by 128, shared, n innermost).
__device__ __forceinline__ void wg_rs_bf16_wide(float (&d)[64], u32 a0, u32 a1, u32 a2, u32 a3, u64 b)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %69, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LIST64 "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n"
                 "}\n"
                 : OP16(d, 0), OP16(d, 16), OP16(d, 32), OP16(d, 48)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(1));
}

// ------------------------------------------------------------------------------------- what the state is not needed for

// Shared memory, in bytes: K at 0, Q at 16384; once they are used up, for each of three heads the inverse at 0 and the
// other matrix at 24576 (64 rows of 128 bytes, swizzled); diagonal blocks in single precision at 49152.
#define PREP_OTHER 24576
#define PREP_DIAGONAL 49152
#define PREP_GATES 61440
#define PREP_BETAS 62208
#define PREP_BAR 62976

extern "C" __global__ void __launch_bounds__(128, 3)
gdn_prep(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g, const float *beta,
         unsigned char *wt, unsigned char *wp, float *wg, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char raw[];
    unsigned char *sm = raw + ((1024u - (smem_u32(raw) & 1023u)) & 1023u);
    const u32 sa = smem_u32(sm);
    const u32 bar = sa + PREP_BAR;
    float *const gate_s = reinterpret_cast<float *>(sm + PREP_GATES);
    float *const beta_s = reinterpret_cast<float *>(sm + PREP_BETAS);

    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int gq = lane >> 2, cq = lane & 3; // row and column pair of a fragment
    const int chunks = (T + 63) >> 6;
    const int chunk = chunks - 1 - int(blockIdx.y); // the first ones last, so that they are still in L2
    const int kh = blockIdx.x, batch = blockIdx.z;
    const int ratio = HV / HQ;

    if (threadIdx.x == 0) {
        mbar_init(bar, 1);
        init_fence();
        proxy_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        mbar_expect(bar, 32768);
        tma_load(sa, &tm_k, bar, 0, kh, chunk * 64, batch);
        tma_load(sa + 8192, &tm_k, bar, 64, kh, chunk * 64, batch);
        tma_load(sa + 16384, &tm_q, bar, 0, kh, chunk * 64, batch);
        tma_load(sa + 24576, &tm_q, bar, 64, kh, chunk * 64, batch);
    }
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    // A warp sums up the gates of one head, two tokens a lane; in powers of two.
    auto gates = [&](int h0) {
        if (warp < 3 && h0 + warp < ratio) {
            const int head = kh * ratio + h0 + warp;
            const int t = chunk * 64 + 2 * lane;
            const size_t at = (size_t(batch) * T + t) * HV + head;
            float g0 = 0.0f, g1 = 0.0f, b0 = 0.0f, b1 = 0.0f;
            if (t < T) {
                g0 = g[at];
                b0 = beta[at];
            }
            if (t + 1 < T) {
                g1 = g[at + HV];
                b1 = beta[at + HV];
            }
            // exp(-120) is 0 in single precision: nothing is lost, and sums stay finite.
            g0 = fmaxf(g0, -120.0f) * 1.4426950408889634f;
            g1 = fmaxf(g1, -120.0f) * 1.4426950408889634f;
            float sum = g0 + g1;
#pragma unroll
            for (int d = 1; d < 32; d <<= 1) {
                const float other = __shfl_up_sync(0xFFFFFFFFu, sum, d);
                if (lane >= d)
                    sum += other;
            }
            float before = __shfl_up_sync(0xFFFFFFFFu, sum, 1);
            if (lane == 0)
                before = 0.0f;
            const float last = __shfl_sync(0xFFFFFFFFu, sum, 31);
            const float c0 = before + g0, c1 = sum;
            *reinterpret_cast<float2 *>(gate_s + warp * 64 + 2 * lane) = make_float2(c0, c1);
            *reinterpret_cast<float2 *>(beta_s + warp * 64 + 2 * lane) = make_float2(b0, b1);

            float *to = wg + ((size_t(batch) * HV + head) * chunks + chunk) * 192 + 2 * lane;
            const float e0 = ex2(c0), e1 = ex2(c1);
            *reinterpret_cast<float2 *>(to) = make_float2(e0, e1);
            *reinterpret_cast<float2 *>(to + 64) = make_float2(e0 * scale, e1 * scale);
            *reinterpret_cast<float2 *>(to + 128) = make_float2(ex2(fminf(last - c0, 0.0f)), ex2(fminf(last - c1, 0.0f)));
        }
    };
    gates(0);

    float kk[32], qk[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        kk[i] = qk[i] = 0.0f;

    mbar_wait(bar, 0);
    {
        const u64 dk = desc_of(sa, 1), dq = desc_of(sa + 16384, 1);
        pin(kk);
        pin(qk);
        wg_fence();
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const u64 off = (s >> 2) * 512 + (s & 3) * 2; // in units of 16 bytes
            wg_ss_bf16(kk, dk + off, dk + off, s != 0);
        }
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const u64 off = (s >> 2) * 512 + (s & 3) * 2;
            wg_ss_bf16(qk, dq + off, dk + off, s != 0);
        }
        wg_commit();
        wg_wait<0>();
        pin(kk);
        pin(qk);
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
        qk[i] *= scale;
    __syncthreads(); // K and Q are used up, the gates are there

#pragma unroll 1
    for (int h0 = 0;;) {
        const int n = min(3, ratio - h0);

        // Gates onto both matrices: warp w has rows 16 w to 16 w + 15.
        const int row = 16 * warp + gq;
#pragma unroll 1
        for (int h = 0; h < n; ++h) {
            const float *gl = gate_s + h * 64;
            const float gi0 = gl[row], gi1 = gl[row + 8];
            const float bi0 = beta_s[h * 64 + row], bi1 = beta_s[h * 64 + row + 8];
            unsigned char *mrow = sm + h * 8192 + row * 128 + 4 * cq;
            unsigned char *prow = mrow + PREP_OTHER;
            float *drow = reinterpret_cast<float *>(sm + PREP_DIAGONAL + h * 4096 + warp * 1024) + gq * 16 + 2 * cq;
#pragma unroll
            for (int nt = 0; nt < 8; ++nt) {
                const int sw = (nt ^ gq) << 4;
                u32 p0 = 0, p1 = 0;
                if (nt < 2 * warp + 2) {
                    const float2 gj = *reinterpret_cast<const float2 *>(gl + 8 * nt + 2 * cq);
                    const float e00 = ex2(gi0 - gj.x), e01 = ex2(gi0 - gj.y);
                    const float e10 = ex2(gi1 - gj.x), e11 = ex2(gi1 - gj.y);
                    const float a00 = e00 * bi0 * kk[4 * nt], a01 = e01 * bi0 * kk[4 * nt + 1];
                    const float a10 = e10 * bi1 * kk[4 * nt + 2], a11 = e11 * bi1 * kk[4 * nt + 3];
                    float o00 = e00 * qk[4 * nt], o01 = e01 * qk[4 * nt + 1];
                    float o10 = e10 * qk[4 * nt + 2], o11 = e11 * qk[4 * nt + 3];
                    if (nt < 2 * warp) {
                        *reinterpret_cast<u32 *>(mrow + sw) = pack_half(-a00, -a01);
                        *reinterpret_cast<u32 *>(mrow + sw + 1024) = pack_half(-a10, -a11);
                    } else {
                        // Of the diagonal block, only what is below the diagonal is ever used.
                        float *d = drow + 8 * (nt - 2 * warp);
                        *reinterpret_cast<float2 *>(d) = make_float2(a00, a01);
                        *reinterpret_cast<float2 *>(d + 128) = make_float2(a10, a11);
                        const int j = 8 * nt + 2 * cq;
                        o00 = j <= row ? o00 : 0.0f;
                        o01 = j + 1 <= row ? o01 : 0.0f;
                        o10 = j <= row + 8 ? o10 : 0.0f;
                        o11 = j + 1 <= row + 8 ? o11 : 0.0f;
                    }
                    p0 = pack_half(o00, o01);
                    p1 = pack_half(o10, o11);
                } else {
                    *reinterpret_cast<u32 *>(mrow + sw) = 0;
                    *reinterpret_cast<u32 *>(mrow + sw + 1024) = 0;
                }
                *reinterpret_cast<u32 *>(prow + sw) = p0;
                *reinterpret_cast<u32 *>(prow + sw + 1024) = p1;
            }
        }
        proxy_fence();
        __syncthreads();

        // A warp inverts the matrix of one head.
        if (warp < n) {
            const int head = kh * ratio + h0 + warp;
            const size_t tile = (size_t(batch) * HV + head) * chunks + chunk;
            unsigned char *mp = sm + warp * 8192;
            const u32 m = sa + warp * 8192;
            if (lane == 0)
                bulk_store(wp + tile * 8192, m + PREP_OTHER, 8192);

            // Diagonal blocks: a lane solves for one column of block lane / 16 and of block lane / 16 + 2.
            {
                const int half = lane >> 4, col = lane & 15;
                const float4 *d0 = reinterpret_cast<const float4 *>(sm + PREP_DIAGONAL + warp * 4096 + half * 1024);
                const float4 *d1 = d0 + 128;
                float x0[16], x1[16];
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    float s0 = i == col ? 1.0f : 0.0f, s1 = s0;
#pragma unroll
                    for (int c = 0; c < 4; ++c) {
                        if (4 * c < i) {
                            const float4 r0 = d0[4 * i + c], r1 = d1[4 * i + c];
                            s0 -= r0.x * x0[4 * c];
                            s1 -= r1.x * x1[4 * c];
                            if (4 * c + 1 < i) {
                                s0 -= r0.y * x0[4 * c + 1];
                                s1 -= r1.y * x1[4 * c + 1];
                            }
                            if (4 * c + 2 < i) {
                                s0 -= r0.z * x0[4 * c + 2];
                                s1 -= r1.z * x1[4 * c + 2];
                            }
                            if (4 * c + 3 < i) {
                                s0 -= r0.w * x0[4 * c + 3];
                                s1 -= r1.w * x1[4 * c + 3];
                            }
                        }
                    }
                    x0[i] = s0;
                    x1[i] = s1;
                }
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    const int in = 2 * (col & 7);
                    const int k0 = ((2 * half + (col >> 3)) ^ (i & 7)) << 4;
                    const int k1 = ((2 * half + 4 + (col >> 3)) ^ (i & 7)) << 4;
                    *reinterpret_cast<unsigned short *>(mp + (16 * half + i) * 128 + k0 + in) = to_half(x0[i]);
                    *reinterpret_cast<unsigned short *>(mp + (16 * half + 32 + i) * 128 + k1 + in) = to_half(x1[i]);
                }
            }
            __syncwarp();

            // Block (I, J) of 16 by 16 for ldmatrix, and as the place of accumulators.
            u32 off[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                off[j] = m + (lane & 15) * 128 + (((2 * j + (lane >> 4)) ^ (lane & 7)) << 4);
            auto put = [&](int bi, int bj, const float(&x)[8]) {
#pragma unroll
                for (int nt = 0; nt < 2; ++nt) {
                    unsigned char *to = mp + (16 * bi + gq) * 128 + (((2 * bj + nt) ^ gq) << 4) + 4 * cq;
                    *reinterpret_cast<u32 *>(to) = pack_half(x[4 * nt], x[4 * nt + 1]);
                    *reinterpret_cast<u32 *>(to + 1024) = pack_half(x[4 * nt + 2], x[4 * nt + 3]);
                }
            };

            // Below the diagonal lies N = -A: X[1][0] = X[1][1] N[1][0] X[0][0], and the same for blocks 3 and 2.
#pragma unroll
            for (int p = 0; p < 2; ++p) {
                const int bi = 2 * p + 1, bj = 2 * p;
                u32 xa[4], nb[4], xb[4], wa[4];
                float w[8], x[8];
                ldm(xa, off[bi] + bi * 2048);
                ldm_t(nb, off[bj] + bi * 2048);
                ldm_t(xb, off[bj] + bj * 2048);
                clear8(w);
                clear8(x);
                mma16(w, xa, nb);
                as_a(wa, w);
                mma16(x, wa, xb);
                __syncwarp();
                put(bi, bj, x);
            }
            __syncwarp();

            // The lower left quarter: X[B][A] = X[B][B] N[B][A] X[A][A] in blocks of 32.
            {
                u32 x00[4], x10[4], x11[4], n20[4], n21[4];
                ldm_t(x00, off[0]);
                ldm_t(x10, off[0] + 2048);
                ldm_t(x11, off[1] + 2048);
                ldm_t(n20, off[0] + 2 * 2048);
                ldm_t(n21, off[1] + 2 * 2048);
                {
                    u32 a[4], b[4], wa0[4], wa1[4];
                    float w0[8], w1[8], x[8];
                    clear8(w0);
                    clear8(w1);
                    ldm(a, off[2] + 3 * 2048); // X[3][2]
                    mma16(w0, a, n20);
                    mma16(w1, a, n21);
                    ldm(a, off[3] + 3 * 2048); // X[3][3]
                    ldm_t(b, off[0] + 3 * 2048);
                    mma16(w0, a, b);
                    ldm_t(b, off[1] + 3 * 2048);
                    mma16(w1, a, b);
                    as_a(wa0, w0);
                    as_a(wa1, w1);
                    __syncwarp();
                    clear8(x);
                    mma16(x, wa0, x00);
                    mma16(x, wa1, x10);
                    put(3, 0, x);
                    clear8(x);
                    mma16(x, wa1, x11);
                    put(3, 1, x);
                }
                {
                    u32 a[4], wa0[4], wa1[4];
                    float w0[8], w1[8], x[8];
                    clear8(w0);
                    clear8(w1);
                    ldm(a, off[2] + 2 * 2048); // X[2][2]
                    mma16(w0, a, n20);
                    mma16(w1, a, n21);
                    as_a(wa0, w0);
                    as_a(wa1, w1);
                    __syncwarp();
                    clear8(x);
                    mma16(x, wa0, x00);
                    mma16(x, wa1, x10);
                    put(2, 0, x);
                    clear8(x);
                    mma16(x, wa1, x11);
                    put(2, 1, x);
                }
            }
            __syncwarp();

            // Columns times beta: a lane has eight columns.
            {
                const int lc = lane & 7;
                const float4 *from = reinterpret_cast<const float4 *>(beta_s + warp * 64 + 8 * lc);
                const float4 ba = from[0], bb = from[1];
                const u32 h0b = pack_half(ba.x, ba.y), h1b = pack_half(ba.z, ba.w);
                const u32 h2b = pack_half(bb.x, bb.y), h3b = pack_half(bb.z, bb.w);
#pragma unroll 4
                for (int it = 0; it < 16; ++it) {
                    const int r = 4 * it + (lane >> 3);
                    uint4 *at = reinterpret_cast<uint4 *>(mp + r * 128 + ((lc ^ (r & 7)) << 4));
                    uint4 x = *at;
                    x.x = mul_half2(x.x, h0b);
                    x.y = mul_half2(x.y, h1b);
                    x.z = mul_half2(x.z, h2b);
                    x.w = mul_half2(x.w, h3b);
                    *at = x;
                }
            }
            proxy_fence();
            __syncwarp();
            if (lane == 0) {
                bulk_store(wt + tile * 8192, m, 8192);
                asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            }
            __syncwarp();
        }

        h0 += 3;
        if (h0 >= ratio)
            break;
        __syncthreads();
        gates(h0);
        __syncthreads();
    }
}

// --------------------------------------------------------------------------------------------------- the recurrence

// A stage, in bytes: K (two boxes of 64 elements), Q (two boxes), V, the inverse, the other matrix, gates.
#define STAGES 3
#define AT_K 0
#define AT_Q 16384
#define AT_V 32768
#define AT_X 40960
#define AT_P 49152
#define AT_G 57344
#define STAGE_BYTES 58368
#define STAGE_TX 58112
#define AT_BARS (STAGES * STAGE_BYTES)

// Warps 0 to 3 hold the transposed state, 64 columns of values by 128 keys; warp 4 brings the tiles.
extern "C" __global__ void __launch_bounds__(160, 1)
gdn_scan(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const __grid_constant__ TensorMap tm_v,
         const unsigned char *wt, const unsigned char *wp, const float *wg, const float *initial_state, float *output,
         float *final_state, int T, int HQ, int HV)
{
    extern __shared__ unsigned char raw[];
    unsigned char *sm = raw + ((1024u - (smem_u32(raw) & 1023u)) & 1023u);
    const u32 sa = smem_u32(sm);
    const u32 full = sa + AT_BARS, empty = full + 8 * STAGES;

    const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const int side = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + 63) >> 6;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            mbar_init(full + 8 * i, 1);
            mbar_init(empty + 8 * i, 4);
        }
        init_fence();
        proxy_fence();
    }
    __syncthreads();

    if (warp == 4) {
        asm volatile("griddepcontrol.wait;" ::: "memory");
        if (lane == 0) {
            const int kh = head / (HV / HQ);
            const size_t tile = (size_t(batch) * HV + head) * chunks;
            int s = 0;
            u32 phase = 1; // the first round finds the stages empty
#pragma unroll 1
            for (int c = 0; c < chunks; ++c) {
                mbar_wait(empty + 8 * s, phase);
                const u32 at = sa + s * STAGE_BYTES, bar = full + 8 * s;
                mbar_expect(bar, STAGE_TX);
                tma_load(at + AT_K, &tm_k, bar, 0, kh, c * 64, batch);
                tma_load(at + AT_K + 8192, &tm_k, bar, 64, kh, c * 64, batch);
                tma_load(at + AT_Q, &tm_q, bar, 0, kh, c * 64, batch);
                tma_load(at + AT_Q + 8192, &tm_q, bar, 64, kh, c * 64, batch);
                bulk_load(at + AT_G, wg + (tile + c) * 192, 768, bar);
                tma_load(at + AT_V, &tm_v, bar, 64 * side, head, c * 64, batch);
                bulk_load(at + AT_X, wt + (tile + c) * 8192, 8192, bar);
                bulk_load(at + AT_P, wp + (tile + c) * 8192, 8192, bar);
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1;
                }
            }
        }
        return;
    }

    const int gq = lane >> 2, cq = lane & 3; // row and column pair of a fragment
    const int column = 64 * side + 16 * warp + gq; // of the values, and that plus 8

    // Accumulator 4 j + i: value column (i < 2 ? column : column + 8), key or token 8 j + 2 cq + (i & 1).
    float S[64], a[32], o[32];
    u32 sb[32];
    const size_t state_at = ((size_t(batch) * HV + head) * 128 + 2 * cq) * 128 + column;
    {
        const float *from = initial_state + state_at;
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            S[4 * j] = from[j * 1024];
            S[4 * j + 1] = from[j * 1024 + 128];
            S[4 * j + 2] = from[j * 1024 + 8];
            S[4 * j + 3] = from[j * 1024 + 136];
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i)
        a[i] = o[i] = 0.0f;
    asm volatile("griddepcontrol.wait;" ::: "memory");

    const size_t step = size_t(HV) * 128; // floats from token to token
    float *out = output + ((size_t(batch) * T + 2 * cq) * HV + head) * 128 + column;
    // Where a lane's row of V lies for ldmatrix: tokens by pairs of eight, chunk of 16 bytes 2 warp or 2 warp + 1.
    const u32 v_off = AT_V + ((lane >> 4) * 8 + (lane & 7)) * 128 + (((2 * warp + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);

    int s = 0;
    u32 phase = 0;

    // S^T K^T of the first chunk.
    mbar_wait(full, 0);
#pragma unroll
    for (int i = 0; i < 32; ++i)
        sb[i] = pack_bf16(S[2 * i], S[2 * i + 1]);
    {
        const u64 dk = desc_of(sa + AT_K, 1);
        pin(sb);
        pin(a);
        wg_fence();
#pragma unroll
        for (int k = 0; k < 8; ++k)
            wg_rs_bf16(a, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3], dk + ((k >> 2) * 512 + (k & 3) * 2), k != 0);
        wg_commit();
    }

#pragma unroll 1
    for (int c = 0; c < chunks; ++c) {
        const u32 at = sa + s * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(sm + s * STAGE_BYTES + AT_G) + 2 * cq;

        // S^T Q^T, behind S^T K^T.
        {
            const u64 dq = desc_of(at + AT_Q, 1);
            pin(o);
            wg_fence();
#pragma unroll
            for (int k = 0; k < 8; ++k)
                wg_rs_bf16(o, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3], dq + ((k >> 2) * 512 + (k & 3) * 2), k != 0);
            wg_commit();
        }

        // Meanwhile the state forgets, and V comes.
        {
            const float decay = *reinterpret_cast<const float *>(sm + s * STAGE_BYTES + AT_G + 63 * 4);
#pragma unroll
            for (int i = 0; i < 64; ++i)
                S[i] *= decay;
        }
        u32 vf[16];
        float2 e[8];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            u32 r[4];
            ldm_t(r, at + v_off + j * 2048);
            vf[4 * j] = r[0];
            vf[4 * j + 1] = r[1];
            vf[4 * j + 2] = r[2];
            vf[4 * j + 3] = r[3];
        }
#pragma unroll
        for (int j = 0; j < 8; ++j)
            e[j] = *reinterpret_cast<const float2 *>(gates + 8 * j);
        pin(S);

        wg_wait<1>(); // S^T K^T
        pin(a);

        // R^T = V^T - exp(c) S^T K^T
        u32 rb[16];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const u32 lo = vf[2 * j], hi = vf[2 * j + 1];
            const float r0 = __uint_as_float(lo << 16) - e[j].x * a[4 * j];
            const float r1 = __uint_as_float(lo & 0xFFFF0000u) - e[j].y * a[4 * j + 1];
            const float r2 = __uint_as_float(hi << 16) - e[j].x * a[4 * j + 2];
            const float r3 = __uint_as_float(hi & 0xFFFF0000u) - e[j].y * a[4 * j + 3];
            rb[2 * j] = pack_half(r0, r1);
            rb[2 * j + 1] = pack_half(r2, r3);
        }

        // U^T = R^T X^T
        {
            const u64 dx = desc_of(at + AT_X, 1);
            pin(rb);
            pin(a);
            wg_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wg_rs_half(a, rb[4 * k], rb[4 * k + 1], rb[4 * k + 2], rb[4 * k + 3], dx + 2 * k, k != 0);
            wg_commit();
        }

#pragma unroll
        for (int j = 0; j < 8; ++j)
            e[j] = *reinterpret_cast<const float2 *>(gates + 64 + 8 * j);
        wg_wait<1>(); // S^T Q^T
        hold(sb);
        pin(o);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            o[4 * j] *= e[j].x;
            o[4 * j + 1] *= e[j].y;
            o[4 * j + 2] *= e[j].x;
            o[4 * j + 3] *= e[j].y;
        }
#pragma unroll
        for (int j = 0; j < 8; ++j)
            e[j] = *reinterpret_cast<const float2 *>(gates + 128 + 8 * j);
        pin(o);
        wg_wait<0>(); // U^T
        hold(rb);
        pin(a);

        // S^T += (exp(c_last - c) U)^T K
        u32 ub[16], uh[16];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            ub[2 * j] = pack_bf16(a[4 * j] * e[j].x, a[4 * j + 1] * e[j].y);
            ub[2 * j + 1] = pack_bf16(a[4 * j + 2] * e[j].x, a[4 * j + 3] * e[j].y);
        }
        {
            const u64 dk = desc_of(at + AT_K, 512);
            pin(ub);
            pin(S);
            wg_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wg_rs_bf16_wide(S, ub[4 * k], ub[4 * k + 1], ub[4 * k + 2], ub[4 * k + 3], dk + 128 * k);
            wg_commit();
        }

        // O^T += U^T P^T
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            uh[2 * j] = pack_half(a[4 * j], a[4 * j + 1]);
            uh[2 * j + 1] = pack_half(a[4 * j + 2], a[4 * j + 3]);
        }
        {
            const u64 dp = desc_of(at + AT_P, 1);
            pin(uh);
            pin(o);
            wg_fence();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                wg_rs_half(o, uh[4 * k], uh[4 * k + 1], uh[4 * k + 2], uh[4 * k + 3], dp + 2 * k, 1);
            wg_commit();
        }

        // S^T K^T of the next chunk. After the last one there is none: what is computed then is not used.
        int next = s + 1;
        u32 next_phase = phase;
        if (next == STAGES) {
            next = 0;
            next_phase ^= 1;
        }
        if (c + 1 < chunks)
            mbar_wait(full + 8 * next, next_phase);
        wg_wait<1>(); // the state
        hold(ub);
        pin(S);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            sb[i] = pack_bf16(S[2 * i], S[2 * i + 1]);
        {
            const u64 dk = desc_of(sa + next * STAGE_BYTES + AT_K, 1);
            pin(sb);
            pin(a);
            wg_fence();
#pragma unroll
            for (int k = 0; k < 8; ++k)
                wg_rs_bf16(a, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3], dk + ((k >> 2) * 512 + (k & 3) * 2), k != 0);
            wg_commit();
        }

        wg_wait<1>(); // the output, and with it all that reads this stage
        hold(uh);
        pin(o);
        __syncwarp();
        if (lane == 0)
            mbar_arrive(empty + 8 * s);
        {
            const int left = T - c * 64 - 2 * cq;
            float *to = out + size_t(c) * 64 * step;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                if (8 * j < left) {
                    __stcs(to, o[4 * j]);
                    __stcs(to + 8, o[4 * j + 2]);
                }
                if (8 * j + 1 < left) {
                    __stcs(to + step, o[4 * j + 1]);
                    __stcs(to + step + 8, o[4 * j + 3]);
                }
                to += 8 * step;
            }
        }
        s = next;
        phase = next_phase;
    }

    wg_wait<0>();
    hold(sb);
    pin(a);
    {
        float *to = final_state + state_at;
#pragma unroll
        for (int j = 0; j < 16; ++j) {
            to[j * 1024] = S[4 * j];
            to[j * 1024 + 128] = S[4 * j + 1];
            to[j * 1024 + 8] = S[4 * j + 2];
            to[j * 1024 + 136] = S[4 * j + 3];
        }
    }
}
