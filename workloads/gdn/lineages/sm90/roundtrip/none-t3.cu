/*klineage
surface = "cuda"

[[launch]]
kernel = "gdn_prepare"
grid = ["ceil_div(T, 64)", "HQ", "B"]
block = ["128"]
shared = "53504"
args = ["tm_q", "tm_k", "g", "beta", "records", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["2 * HV", "B"]
block = ["160"]
shared = "195712"
args = ["tm_q", "tm_k", "tm_v", "tm_o", "records", "initial_state", "final_state", "int T", "int HQ", "int HV"]

[[workspace]]
name = "records"
dtype = "f32"
shape = ["B", "HV", "ceil_div(T, 64)", "4384"]
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
box = [1, 64, 1, 16]
swizzle = "64B"
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the running sum of g in a chunk and S the state before it:
//   X = beta (V - exp(G) K S),  U = (I + A)^-1 X,  A_ij = beta_i exp(G_i - G_j) k_i.k_j  (j < i)
//   O = scale exp(G) Q S + P U,  P_ij = scale exp(G_i - G_j) q_i.k_j  (j <= i)
//   S' = exp(G_63) S + K^T (exp(G_63 - G) U)
// A record holds, for a chunk of a head: N = (I + A)^-1 - I and P (bf16, 64 x 64, rows of 128 bytes, swizzled), then
// beta, beta exp(G), scale exp(G), exp(G_63 - G) (64 floats each) and exp(G_63).

typedef unsigned int u32;
typedef unsigned long long u64;

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

#define RECORD_BYTES 17536
#define STAGES 3
#define STAGE_BYTES 59392
#define AT_K 0
#define AT_Q 16384
#define AT_V 32768
#define AT_N 40960
#define AT_P 49152
#define AT_GATES 57344
#define AT_OUT (STAGES * STAGE_BYTES)
#define AT_BARS (AT_OUT + 16384)

// ---------------------------------------------------------------------------------------------------- helpers

__device__ __forceinline__ u32 smem_u32(const void *p)
{
    return static_cast<u32>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void bar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void bar_fence_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ void bar_expect(u32 bar, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bar_arrive(u32 bar)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ __forceinline__ void bar_wait(u32 bar, u32 parity)
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

__device__ __forceinline__ void tma_load(u32 to, const TensorMap &map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"(reinterpret_cast<u64>(&map)), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap &map, u32 from, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(
                     reinterpret_cast<u64>(&map)),
                 "r"(from), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void bulk_load(u32 to, const void *from, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(bar)
                 : "memory");
}

__device__ __forceinline__ void bulk_store(void *to, u32 from, u32 bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void bulk_commit()
{
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void bulk_wait_read()
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void bulk_wait_all()
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void fence_async_shared()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Two floats as bf16, the first in the lower half.
__device__ __forceinline__ u32 pack(float low, float high)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ unsigned short as_bf16(float x)
{
    return static_cast<unsigned short>(pack(x, 0.0f) & 0xffffu);
}

__device__ __forceinline__ float low_half(u32 x)
{
    return __uint_as_float(x << 16);
}

__device__ __forceinline__ float high_half(u32 x)
{
    return __uint_as_float(x & 0xffff0000u);
}

__device__ __forceinline__ float ex2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ u32 tf32(float x)
{
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ void ldmatrix(u32 (&r)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrix_trans(u32 (&r)[4], u32 address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void mma_bf16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                 " {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_tf32(float &d0, float &d1, float &d2, float &d3, u32 a0, u32 a1, u32 a2, u32 a3,
                                         u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9},"
                 " {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// ---------------------------------------------------------------------------------------------------- the chunks

extern "C" __global__ void __launch_bounds__(128, 4)
    gdn_prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g,
                const float *beta, float *records, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 raw = smem_u32(smem_raw);
    const u32 base = (raw + 1023u) & ~1023u;
    unsigned char *sm = smem_raw + (base - raw);
    // K and Q come first; once they have been multiplied, A (rows of 72) and the inverses of its diagonal blocks
    // (four of 16 rows of 24) take their place.
    float *sA = reinterpret_cast<float *>(sm);
    float *sD = reinterpret_cast<float *>(sm + 18432);
    unsigned char *rec = sm + 32768;
    float *gates = reinterpret_cast<float *>(rec + 16384);
    float *sG = reinterpret_cast<float *>(sm + 50304);
    float *sB = reinterpret_cast<float *>(sm + 51328);
    const u32 bar = base + 52352;

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int gr = lane >> 2, t4 = lane & 3;
    const int chunk = blockIdx.x, hq = blockIdx.y, batch = blockIdx.z, chunks = gridDim.x;
    const int R = HV / HQ;

    if (tid == 0) {
        bar_init(bar, 1);
        bar_fence_init();
        bar_expect(bar, 32768);
        tma_load(base, tm_k, bar, 0, hq, chunk * 64, batch);
        tma_load(base + 8192, tm_k, bar, 64, hq, chunk * 64, batch);
        tma_load(base + 16384, tm_q, bar, 0, hq, chunk * 64, batch);
        tma_load(base + 24576, tm_q, bar, 64, hq, chunk * 64, batch);
    }

    // What lies above the diagonal blocks of N and P stays zero.
    for (int i = tid; i < 1024; i += 128)
        reinterpret_cast<uint4 *>(rec)[i] = make_uint4(0u, 0u, 0u, 0u);

    // Running sums of the gates, in powers of two, of up to four heads at once: one a warp. exp(-40) is nothing
    // beside the numbers here, and a bound keeps the differences of the sums accurate.
    auto sum_gates = [&](int first) {
        const int r = first + warp;
        if (r < R) {
            const int t = chunk * 64 + 2 * lane;
            const size_t at = (size_t(batch) * T + t) * HV + hq * R + r;
            float g0 = 0.0f, g1 = 0.0f, b0 = 0.0f, b1 = 0.0f;
            if (t < T) {
                g0 = fmaxf(g[at], -40.0f) * 1.4426950408889634f;
                b0 = beta[at];
            }
            if (t + 1 < T) {
                g1 = fmaxf(g[at + HV], -40.0f) * 1.4426950408889634f;
                b1 = beta[at + HV];
            }
            float sum = g0 + g1;
#pragma unroll
            for (int d = 1; d < 32; d <<= 1) {
                const float up = __shfl_up_sync(0xffffffffu, sum, d);
                if (lane >= d)
                    sum += up;
            }
            float before = __shfl_up_sync(0xffffffffu, sum, 1);
            if (lane == 0)
                before = 0.0f;
            sG[warp * 64 + 2 * lane] = before + g0;
            sG[warp * 64 + 2 * lane + 1] = (before + g0) + g1;
            sB[warp * 64 + 2 * lane] = b0;
            sB[warp * 64 + 2 * lane + 1] = b1;
        }
    };
    sum_gates(0);

    __syncthreads();
    bar_wait(bar, 0);
    __syncwarp();

    // Rows 16 warp .. 16 warp + 15 of K K^T and Q K^T, up to the diagonal.
    float kk[8][4], qk[8][4];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            kk[n][e] = 0.0f;
            qk[n][e] = 0.0f;
        }
    }
    {
        const int mi = lane >> 3, r = lane & 7;
        const u32 a_row = (16 * warp + (mi & 1) * 8 + r) * 128;
        const u32 b_row = ((mi >> 1) * 8 + r) * 128;
#pragma unroll
        for (int ks = 0; ks < 8; ++ks) {
            const u32 half = (ks >> 2) * 8192;
            const u32 a_at = base + half + a_row + (((((ks & 3) * 2 + (mi >> 1)) ^ r)) << 4);
            const u32 b_at = base + half + b_row + (((((ks & 3) * 2 + (mi & 1)) ^ r)) << 4);
            u32 ak[4], aq[4];
            ldmatrix(ak, a_at);
            ldmatrix(aq, a_at + 16384);
#pragma unroll
            for (int np = 0; np < 4; ++np) {
                if (np <= warp) {
                    u32 b[4];
                    ldmatrix(b, b_at + np * 2048);
                    mma_bf16(kk[2 * np], ak, b[0], b[1]);
                    mma_bf16(kk[2 * np + 1], ak, b[2], b[3]);
                    mma_bf16(qk[2 * np], aq, b[0], b[1]);
                    mma_bf16(qk[2 * np + 1], aq, b[2], b[3]);
                }
            }
        }
    }

#pragma unroll 1
    for (int r = 0; r < R; ++r) {
        if (r > 0 && (r & 3) == 0) {
            __syncthreads();
            sum_gates(r);
        }
        if (tid == 0)
            bulk_wait_read();
        __syncthreads();

        // A and P, and the gates.
        const float *hG = sG + (r & 3) * 64;
        const float *hB = sB + (r & 3) * 64;
        {
            const int r0 = 16 * warp + gr, r1 = r0 + 8;
            const float G0 = hG[r0], G1 = hG[r1], b0 = hB[r0], b1 = hB[r1];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                if (n <= 2 * warp + 1) {
                    const int c0 = 8 * n + 2 * t4, c1 = c0 + 1;
                    const float2 Gc = *reinterpret_cast<const float2 *>(hG + c0);
                    const float e00 = ex2(G0 - Gc.x), e01 = ex2(G0 - Gc.y);
                    const float e10 = ex2(G1 - Gc.x), e11 = ex2(G1 - Gc.y);
                    float2 a0, a1;
                    a0.x = c0 < r0 ? b0 * e00 * kk[n][0] : 0.0f;
                    a0.y = c1 < r0 ? b0 * e01 * kk[n][1] : 0.0f;
                    a1.x = c0 < r1 ? b1 * e10 * kk[n][2] : 0.0f;
                    a1.y = c1 < r1 ? b1 * e11 * kk[n][3] : 0.0f;
                    *reinterpret_cast<float2 *>(sA + r0 * 72 + c0) = a0;
                    *reinterpret_cast<float2 *>(sA + r1 * 72 + c0) = a1;
                    const float p00 = c0 <= r0 ? scale * e00 * qk[n][0] : 0.0f;
                    const float p01 = c1 <= r0 ? scale * e01 * qk[n][1] : 0.0f;
                    const float p10 = c0 <= r1 ? scale * e10 * qk[n][2] : 0.0f;
                    const float p11 = c1 <= r1 ? scale * e11 * qk[n][3] : 0.0f;
                    const int at = ((n ^ gr) << 4) + t4 * 4; // r0 and r1 are both gr modulo 8
                    *reinterpret_cast<u32 *>(rec + 8192 + r0 * 128 + at) = pack(p00, p01);
                    *reinterpret_cast<u32 *>(rec + 8192 + r1 * 128 + at) = pack(p10, p11);
                }
            }
        }
        if (tid < 64) {
            const float G = hG[tid], last = hG[63], b = hB[tid], decay = ex2(G);
            gates[tid] = b;
            gates[64 + tid] = b * decay;
            gates[128 + tid] = scale * decay;
            gates[192 + tid] = ex2(last - G);
            if (tid == 0)
                gates[256] = ex2(last);
        }
        __syncthreads();

        // The inverse of diagonal block `warp`, a column a lane (the upper half of the warp repeats the lower one).
        {
            const int j = lane & 15;
            const float *a = sA + (16 * warp) * 72 + 16 * warp;
            float x[16];
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                float s = i == j ? 1.0f : 0.0f;
#pragma unroll
                for (int k = 0; k < 16; k += 4) {
                    if (k < i) {
                        const float4 row = *reinterpret_cast<const float4 *>(a + i * 72 + k);
                        s = fmaf(-row.x, x[k], s);
                        if (k + 1 < i)
                            s = fmaf(-row.y, x[k + 1], s);
                        if (k + 2 < i)
                            s = fmaf(-row.z, x[k + 2], s);
                        if (k + 3 < i)
                            s = fmaf(-row.w, x[k + 3], s);
                    }
                }
                x[i] = s;
            }
            if (lane < 16) {
                float *d = sD + warp * 384;
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    d[i * 24 + j] = x[i];
                    const int row = 16 * warp + i;
                    const int at = row * 128 + (((2 * warp + (j >> 3)) ^ (i & 7)) << 4) + (j & 7) * 2;
                    *reinterpret_cast<unsigned short *>(rec + at) = as_bf16(i > j ? x[i] : 0.0f);
                }
            }
        }
        __syncthreads();

        // Column `warp` of blocks below the diagonal, transposed, so that an accumulator is the next operand:
        // Z_I = -(sum over J < I of Z_J A_IJ^T) D_I^T, where Z_warp = D_warp^T. Within 8 of the summed index the
        // order is that of the accumulators, 0 2 4 6 1 3 5 7, in both operands.
        {
            u32 z[3][8];
#pragma unroll
            for (int J = 0; J < 3; ++J) {
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    z[J][e] = 0u;
                if (J == warp) {
                    const float *d = sD + J * 384;
#pragma unroll
                    for (int ks = 0; ks < 2; ++ks) {
                        const int row = 8 * ks + 2 * t4;
                        z[J][4 * ks + 0] = tf32(d[row * 24 + gr]);
                        z[J][4 * ks + 1] = tf32(d[(row + 1) * 24 + gr]);
                        z[J][4 * ks + 2] = tf32(d[row * 24 + gr + 8]);
                        z[J][4 * ks + 3] = tf32(d[(row + 1) * 24 + gr + 8]);
                    }
                }
            }
#pragma unroll
            for (int I = 1; I < 4; ++I) {
                if (I > warp) {
                    float s[8], y[8];
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        s[e] = 0.0f;
                        y[e] = 0.0f;
                    }
#pragma unroll
                    for (int J = 0; J < I; ++J) {
                        if (J >= warp) {
#pragma unroll
                            for (int ks = 0; ks < 2; ++ks) {
#pragma unroll
                                for (int nt = 0; nt < 2; ++nt) {
                                    const float2 b = *reinterpret_cast<const float2 *>(
                                        sA + (16 * I + 8 * nt + gr) * 72 + 16 * J + 8 * ks + 2 * t4);
                                    mma_tf32(s[4 * nt], s[4 * nt + 1], s[4 * nt + 2], s[4 * nt + 3], z[J][4 * ks],
                                             z[J][4 * ks + 2], z[J][4 * ks + 1], z[J][4 * ks + 3], tf32(b.x),
                                             tf32(b.y));
                                }
                            }
                        }
                    }
#pragma unroll
                    for (int ks = 0; ks < 2; ++ks) {
                        const u32 a0 = tf32(-s[4 * ks]), a1 = tf32(-s[4 * ks + 2]);
                        const u32 a2 = tf32(-s[4 * ks + 1]), a3 = tf32(-s[4 * ks + 3]);
#pragma unroll
                        for (int nt = 0; nt < 2; ++nt) {
                            const float2 b = *reinterpret_cast<const float2 *>(sD + I * 384 + (8 * nt + gr) * 24 +
                                                                              8 * ks + 2 * t4);
                            mma_tf32(y[4 * nt], y[4 * nt + 1], y[4 * nt + 2], y[4 * nt + 3], a0, a1, a2, a3, tf32(b.x),
                                     tf32(b.y));
                        }
                    }
#pragma unroll
                    for (int nt = 0; nt < 2; ++nt) {
#pragma unroll
                        for (int f = 0; f < 2; ++f) {
#pragma unroll
                            for (int e = 0; e < 2; ++e) {
                                const int row = 16 * I + 8 * nt + 2 * t4 + e;
                                const int at = row * 128 + (((2 * warp + f) ^ (2 * t4 + e)) << 4) + gr * 2;
                                *reinterpret_cast<unsigned short *>(rec + at) = as_bf16(y[4 * nt + 2 * f + e]);
                            }
                        }
                    }
                    if (I < 3) {
#pragma unroll
                        for (int e = 0; e < 8; ++e)
                            z[I < 3 ? I : 0][e] = tf32(y[e]);
                    }
                }
            }
        }
        fence_async_shared();
        __syncthreads();
        if (tid == 0) {
            const size_t record = (size_t(batch) * HV + hq * R + r) * chunks + chunk;
            bulk_store(reinterpret_cast<unsigned char *>(records) + record * RECORD_BYTES, base + 32768, RECORD_BYTES);
            bulk_commit();
        }
    }
    if (tid == 0)
        bulk_wait_all();
}

// ---------------------------------------------------------------------------------------------------- wgmma

__device__ __forceinline__ void wgmma_fence()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int Pending> __device__ __forceinline__ void wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// Keeps the compiler from moving what reads or writes these registers over this point.
template <int N> __device__ __forceinline__ void pin(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}

template <int N> __device__ __forceinline__ void pin(u32 (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

// Tiles of rows of 128 bytes with the 128-byte swizzle; groups of eight rows are 1024 bytes apart.
__device__ __forceinline__ u64 tile_k_major(u32 address)
{
    return (u64(1) << 62) | (u64(64) << 32) | (u64(1) << 16) | u64((address & 0x3ffffu) >> 4);
}

__device__ __forceinline__ u64 tile_n_major(u32 address)
{
    return (u64(1) << 62) | (u64(64) << 32) | (u64(64) << 16) | u64((address & 0x3ffffu) >> 4);
}

// d (64 x 64) = [d +] a (64 x 16, registers) times b (16 x 64, shared memory; TransB: n runs along its rows).
template <int TransB>
__device__ __forceinline__ void wgmma(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, p, 1, 1, %38;\n"
                 "}\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                   "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
                   "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                   "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
                   "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate), "n"(TransB));
}

// ---------------------------------------------------------------------------------------------------- the state

// A warp's accumulators, 16 columns by 64 tokens, as a tile of 64 rows of 64 bytes with the 64-byte swizzle. Odd threads
// store the odd tokens first, so that a store meets every bank once.
__device__ __forceinline__ void stage_output(unsigned char *tile, const float (&o)[32], int gr, int t4)
{
    const int odd = t4 & 1;
    const int inner = (((gr >> 2) ^ t4) << 4) + (gr & 3) * 4;
    unsigned char *first = tile + (2 * t4 + odd) * 64;
    unsigned char *second = tile + (2 * t4 + 1 - odd) * 64;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
        for (int f = 0; f < 2; ++f) {
            const float even_token = o[4 * n + 2 * f], odd_token = o[4 * n + 2 * f + 1];
            const int at = n * 512 + (inner ^ (f * 32));
            *reinterpret_cast<float *>(first + at) = odd ? odd_token : even_token;
            *reinterpret_cast<float *>(second + at) = odd ? even_token : odd_token;
        }
    }
}

extern "C" __global__ void __launch_bounds__(160, 1)
    gdn_scan(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k,
             const __grid_constant__ TensorMap tm_v, const __grid_constant__ TensorMap tm_o, const float *records,
             const float *initial_state, float *final_state, int T, int HQ, int HV)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 raw = smem_u32(smem_raw);
    const u32 base = (raw + 1023u) & ~1023u;
    unsigned char *sm = smem_raw + (base - raw);

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int head = blockIdx.x >> 1, column0 = (blockIdx.x & 1) * 64, batch = blockIdx.y;
    const int hq = head / (HV / HQ);
    const int chunks = (T + 63) / 64;
    const u32 full = base + AT_BARS, empty = full + 8 * STAGES;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            bar_init(full + 8 * s, 1);
            bar_init(empty + 8 * s, 4);
        }
        bar_fence_init();
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const unsigned char *from = reinterpret_cast<const unsigned char *>(records) +
                                        (size_t(batch) * HV + head) * chunks * RECORD_BYTES;
            int s = 0;
            u32 phase = 1;
            for (int c = 0; c < chunks; ++c) {
                if (c >= STAGES)
                    bar_wait(empty + 8 * s, phase);
                const u32 to = base + s * STAGE_BYTES, bar = full + 8 * s;
                bar_expect(bar, 16384 + 16384 + 8192 + RECORD_BYTES);
                tma_load(to + AT_K, tm_k, bar, 0, hq, c * 64, batch);
                tma_load(to + AT_K + 8192, tm_k, bar, 64, hq, c * 64, batch);
                tma_load(to + AT_Q, tm_q, bar, 0, hq, c * 64, batch);
                tma_load(to + AT_Q + 8192, tm_q, bar, 64, hq, c * 64, batch);
                tma_load(to + AT_V, tm_v, bar, column0, head, c * 64, batch);
                bulk_load(to + AT_N, from + size_t(c) * RECORD_BYTES, RECORD_BYTES, bar);
                if (++s == STAGES) {
                    s = 0;
                    phase ^= 1;
                }
            }
        }
        return;
    }

    // One warpgroup. Rows are the columns of the state (values), columns its keys or the tokens of a chunk: a thread holds
    // rows gr and gr + 8 of its warp's 16, and of every eight columns 2 t4 and 2 t4 + 1.
    const int gr = lane >> 2, t4 = lane & 3;
    const size_t state_at = (size_t(batch) * HV + head) * 16384 + column0 + warp * 16 + gr;
    float s0[32], s1[32], x[32], o[32];
    u32 sb[32];
    {
        const float *from = initial_state + state_at;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            const float *p = from + (8 * n + 2 * t4) * 128;
            s0[4 * n + 0] = p[0];
            s0[4 * n + 1] = p[128];
            s0[4 * n + 2] = p[8];
            s0[4 * n + 3] = p[136];
            s1[4 * n + 0] = p[8192];
            s1[4 * n + 1] = p[8192 + 128];
            s1[4 * n + 2] = p[8192 + 8];
            s1[4 * n + 3] = p[8192 + 136];
        }
    }
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        x[i] = 0.0f;
        o[i] = 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        sb[i] = pack(s0[2 * i], s0[2 * i + 1]);
        sb[16 + i] = pack(s1[2 * i], s1[2 * i + 1]);
    }

    unsigned char *out_tile = sm + AT_OUT + warp * 4096;
    const u32 out_at = base + AT_OUT + warp * 4096;
    const int v_row = (lane >> 4) * 8 + (lane & 7);
    const u32 v_at = v_row * 128 + (((2 * warp + ((lane >> 3) & 1)) ^ (lane & 7)) << 4);

    int s = 0;
    u32 phase = 0;
#pragma unroll 1
    for (int c = 0; c < chunks; ++c) {
        const u32 at = base + s * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(sm + s * STAGE_BYTES + AT_GATES) + 2 * t4;
        bar_wait(full + 8 * s, phase);
        __syncwarp();

        // S^T K^T
        pin(sb);
        pin(x);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 8; ++k)
            wgmma<0>(x, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3],
                     tile_k_major(at + AT_K + (k >> 2) * 8192 + (k & 3) * 32), k > 0);
        wgmma_commit();

        // The output of the chunk before leaves meanwhile.
        if (lane == 0)
            bulk_wait_read();
        __syncwarp();
        stage_output(out_tile, o, gr, t4);
        fence_async_shared();
        __syncwarp();
        if (lane == 0 && c > 0) {
            tma_store(tm_o, out_at, column0 + warp * 16, head, (c - 1) * 64, batch);
            bulk_commit();
        }
        __syncwarp();

        // S^T Q^T, the first half of the keys
        pin(o);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma<0>(o, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3],
                     tile_k_major(at + AT_Q + k * 32), k > 0);
        wgmma_commit();

        // X = beta V - beta exp(G) K S
        float bv[32];
        float2 bg[8];
#pragma unroll
        for (int p = 0; p < 4; ++p) {
            u32 v[4];
            ldmatrix_trans(v, at + AT_V + v_at + p * 2048);
#pragma unroll
            for (int f = 0; f < 2; ++f) {
                const int n = 2 * p + f;
                const float2 b = *reinterpret_cast<const float2 *>(gates + 8 * n);
                bg[n] = *reinterpret_cast<const float2 *>(gates + 64 + 8 * n);
                bv[4 * n + 0] = b.x * low_half(v[2 * f]);
                bv[4 * n + 1] = b.y * high_half(v[2 * f]);
                bv[4 * n + 2] = b.x * low_half(v[2 * f + 1]);
                bv[4 * n + 3] = b.y * high_half(v[2 * f + 1]);
            }
        }
        wgmma_wait<1>();
        pin(x);
        u32 xb[16];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            x[4 * n + 0] = fmaf(-bg[n].x, x[4 * n + 0], bv[4 * n + 0]);
            x[4 * n + 1] = fmaf(-bg[n].y, x[4 * n + 1], bv[4 * n + 1]);
            x[4 * n + 2] = fmaf(-bg[n].x, x[4 * n + 2], bv[4 * n + 2]);
            x[4 * n + 3] = fmaf(-bg[n].y, x[4 * n + 3], bv[4 * n + 3]);
            xb[2 * n] = pack(x[4 * n], x[4 * n + 1]);
            xb[2 * n + 1] = pack(x[4 * n + 2], x[4 * n + 3]);
        }

        // U = X + N X
        pin(x);
        pin(xb);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma<0>(x, xb[4 * k], xb[4 * k + 1], xb[4 * k + 2], xb[4 * k + 3], tile_k_major(at + AT_N + k * 32), 1);
        wgmma_commit();
        // and the second half of S^T Q^T
#pragma unroll
        for (int k = 4; k < 8; ++k)
            wgmma<0>(o, sb[4 * k], sb[4 * k + 1], sb[4 * k + 2], sb[4 * k + 3],
                     tile_k_major(at + AT_Q + 8192 + (k & 3) * 32), 1);
        wgmma_commit();

        // The state forgets, while nothing else has its registers.
        const float forget = gates[256 - 2 * t4];
        float2 left[8], seen[8];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            left[n] = *reinterpret_cast<const float2 *>(gates + 192 + 8 * n);
            seen[n] = *reinterpret_cast<const float2 *>(gates + 128 + 8 * n);
        }
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            s0[i] *= forget;
            s1[i] *= forget;
        }
        wgmma_wait<1>();
        pin(x);

        // S = exp(G_63) S + K^T (exp(G_63 - G) U)
        u32 ud[16], ub[16];
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            ud[2 * n] = pack(x[4 * n] * left[n].x, x[4 * n + 1] * left[n].y);
            ud[2 * n + 1] = pack(x[4 * n + 2] * left[n].x, x[4 * n + 3] * left[n].y);
        }
        pin(ud);
        pin(s0);
        pin(s1);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma<1>(s0, ud[4 * k], ud[4 * k + 1], ud[4 * k + 2], ud[4 * k + 3],
                     tile_n_major(at + AT_K + k * 2048), 1);
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma<1>(s1, ud[4 * k], ud[4 * k + 1], ud[4 * k + 2], ud[4 * k + 3],
                     tile_n_major(at + AT_K + 8192 + k * 2048), 1);
        wgmma_commit();

        // O = scale exp(G) Q S + P U
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            ub[2 * n] = pack(x[4 * n], x[4 * n + 1]);
            ub[2 * n + 1] = pack(x[4 * n + 2], x[4 * n + 3]);
        }
        wgmma_wait<1>();
        pin(o);
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            o[4 * n + 0] *= seen[n].x;
            o[4 * n + 1] *= seen[n].y;
            o[4 * n + 2] *= seen[n].x;
            o[4 * n + 3] *= seen[n].y;
        }
        pin(o);
        pin(ub);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < 4; ++k)
            wgmma<0>(o, ub[4 * k], ub[4 * k + 1], ub[4 * k + 2], ub[4 * k + 3], tile_k_major(at + AT_P + k * 32), 1);
        wgmma_commit();

        wgmma_wait<1>();
        pin(s0);
        pin(s1);
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            sb[i] = pack(s0[2 * i], s0[2 * i + 1]);
            sb[16 + i] = pack(s1[2 * i], s1[2 * i + 1]);
        }
        wgmma_wait<0>();
        pin(o);
        __syncwarp();
        if (lane == 0)
            bar_arrive(empty + 8 * s);
        if (++s == STAGES) {
            s = 0;
            phase ^= 1;
        }
    }

    if (lane == 0)
        bulk_wait_read();
    __syncwarp();
    stage_output(out_tile, o, gr, t4);
    fence_async_shared();
    __syncwarp();
    if (lane == 0) {
        tma_store(tm_o, out_at, column0 + warp * 16, head, (chunks - 1) * 64, batch);
        bulk_commit();
    }

    {
        float *to = final_state + state_at;
#pragma unroll
        for (int n = 0; n < 8; ++n) {
            float *p = to + (8 * n + 2 * t4) * 128;
            p[0] = s0[4 * n + 0];
            p[128] = s0[4 * n + 1];
            p[8] = s0[4 * n + 2];
            p[136] = s0[4 * n + 3];
            p[8192] = s1[4 * n + 0];
            p[8192 + 128] = s1[4 * n + 1];
            p[8192 + 8] = s1[4 * n + 2];
            p[8192 + 136] = s1[4 * n + 3];
        }
    }
    if (lane == 0)
        bulk_wait_all();
}
