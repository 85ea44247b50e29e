/*klineage
surface = "cuda"

[[workspace]]
name = "records"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64) * 4384"]
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
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "52480"
args = ["tm_q", "tm_k", "g", "beta", "records", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_recur"
grid = ["2", "HV", "B"]
cluster = ["2", "1", "1"]
block = ["224"]
shared = "228480"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "records", "initial_state", "output", "final_state", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gated delta rule in chunks of 64 tokens.
//   G: running sum of g within the chunk.  L_ij = beta_i (k_i . k_j) exp(G_i - G_j), j < i.  T = (I + L)^-1.
//   R = beta (V - exp(G) K S);  U = R + (T - I) R;  O = scale exp(G) Q S + P U;  S = exp(G_C) S + K^T (exp(G_C - G) U).
// A record (17536 bytes) of a chunk and value head: T - I (64 x 64 fp16, 128-byte swizzle), P (the same),
// then float[4][64]: beta, -beta exp(G), scale exp(G), exp(G_C - G), then exp(G_C).

struct alignas(64) TensorMap { unsigned long long opaque[16]; };
typedef unsigned int u32;
typedef unsigned long long u64;

#define RECORD_BYTES 17536u

// ---------------------------------------------------------------------------------------------- helpers

__device__ __forceinline__ u32 smem_u32(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void mbar_init(u32 bar, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void mbar_init_fence()
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
    u32 ok;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(ok)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (!ok);
}

// The same barrier of the block `cta` of the cluster.
__device__ __forceinline__ void mbar_arrive_cluster(u32 bar, u32 cta)
{
    asm volatile("{\n"
                 ".reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
                 "}\n" ::"r"(bar), "r"(cta)
                 : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ u64 evict_first()
{
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ __forceinline__ void tma_load_once(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3, u64 policy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "l"(policy)
                 : "memory");
}

// To both blocks of the cluster, at the same place in each, announced at the same barrier of each.
__device__ __forceinline__ void tma_load_both(u32 dst, const TensorMap *map, u32 bar, int c0, int c1, int c2, int c3)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(dst),
                 "l"((u64)map), "r"(bar), "h"((unsigned short)3), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void bulk_load_both(u32 dst, const void *src, u32 bytes, u32 bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(dst),
                 "l"((u64)src), "r"(bytes), "r"(bar), "h"((unsigned short)3)
                 : "memory");
}

__device__ __forceinline__ void bulk_store(void *dst, u32 src, u32 bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"((u64)dst), "r"(src), "r"(bytes) : "memory");
}

__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void bulk_wait_all() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void sts_f1(u32 a, float v) { asm volatile("st.shared.f32 [%0], %1;" ::"r"(a), "f"(v) : "memory"); }
__device__ __forceinline__ void sts_f2(u32 a, float x, float y)
{
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(a), "f"(x), "f"(y) : "memory");
}
__device__ __forceinline__ void sts_u32(u32 a, u32 v) { asm volatile("st.shared.u32 [%0], %1;" ::"r"(a), "r"(v) : "memory"); }
__device__ __forceinline__ void sts_f16(u32 a, float v)
{
    unsigned short s;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(s) : "f"(v));
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(a), "h"(s) : "memory");
}

__device__ __forceinline__ float lds_f1(u32 a)
{
    float v;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(a) : "memory");
    return v;
}
__device__ __forceinline__ void lds_f2(u32 a, float &x, float &y)
{
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x), "=f"(y) : "r"(a) : "memory");
}
__device__ __forceinline__ void lds_f4(u32 a, float (&v)[4])
{
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]) : "r"(a) : "memory");
}

__device__ __forceinline__ void stg_f4(float *p, const float (&v)[4])
{
    asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"((u64)p), "f"(v[0]), "f"(v[1]), "f"(v[2]), "f"(v[3]) : "memory");
}

__device__ __forceinline__ void ldsm(u32 a, u32 (&v)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(a) : "memory");
}
__device__ __forceinline__ void ldsm_t(u32 a, u32 (&v)[4])
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(a) : "memory");
}

__device__ __forceinline__ u32 pack_bf16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
__device__ __forceinline__ u32 pack_f16(float lo, float hi)
{
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}
__device__ __forceinline__ float ex2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ void mma_f16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two n-blocks at once: b holds the operands of both.
__device__ __forceinline__ void mma_pair(float (&d0)[4], float (&d1)[4], const u32 (&a)[4], u32 address)
{
    u32 b[4];
    ldsm_t(address, b);
    mma_f16(d0, a, b[0], b[1]);
    mma_f16(d1, a, b[2], b[3]);
}

__device__ __forceinline__ void to_operand(u32 (&a)[4], const float (&d0)[4], const float (&d1)[4])
{
    a[0] = pack_f16(d0[0], d0[1]);
    a[1] = pack_f16(d0[2], d0[3]);
    a[2] = pack_f16(d1[0], d1[1]);
    a[3] = pack_f16(d1[2], d1[3]);
}

// ------------------------------------------------------------------------------------------------ wgmma

#define ACC32(d)                                                                                                         \
    "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),          \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),           \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),          \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define LIST32                                                                                                           \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "    \
    "%24, %25, %26, %27, %28, %29, %30, %31}"

__device__ __forceinline__ void wg_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wg_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wg_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

__device__ __forceinline__ void pin(float (&d)[32])
{
#pragma unroll
    for (int i = 0; i < 32; ++i)
        asm volatile("" : "+f"(d[i])::"memory");
}

// 128-byte swizzle, groups of 8 rows 1024 bytes apart.
__device__ __forceinline__ u64 desc_k_major(u32 address)
{
    return (u64)((address & 0x3FFFFu) >> 4) | ((u64)1 << 16) | ((u64)64 << 32) | ((u64)1 << 62);
}
__device__ __forceinline__ u64 desc_mn_major(u32 address)
{
    return (u64)((address & 0x3FFFFu) >> 4) | ((u64)64 << 16) | ((u64)64 << 32) | ((u64)1 << 62);
}

template <int TransB>
__device__ __forceinline__ void wgmma_bf16(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 desc, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32 ", {%32, %33, %34, %35}, %36, p, 1, 1, %38;\n"
                 "}\n"
                 : ACC32(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(accumulate), "n"(TransB));
}

__device__ __forceinline__ void wgmma_f16(float (&d)[32], u32 a0, u32 a1, u32 a2, u32 a3, u64 desc, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %37, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " LIST32 ", {%32, %33, %34, %35}, %36, p, 1, 1, 0;\n"
                 "}\n"
                 : ACC32(d)
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(desc), "r"(accumulate));
}

__device__ __forceinline__ void wgmma_ss(float (&d)[32], u64 desc_a, u64 desc_b, int accumulate)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %34, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32 ", %32, %33, p, 1, 1, 0, 0;\n"
                 "}\n"
                 : ACC32(d)
                 : "l"(desc_a), "l"(desc_b), "r"(accumulate));
}

// ---------------------------------------------------------------------------------------------- prepare
// A block has one chunk of one query head and makes the records of its value heads, in turn. Warp w has rows 16w to 16w + 15.

#define PREP_REC0 32768u /* the record of even value heads; that of odd ones is at 0, over k and q */
#define PREP_L 17920u    /* 64 x 64 fp16, swizzled: L left of the diagonal blocks */
#define PREP_D 26112u    /* a diagonal block of L a warp, float, transposed, 20 floats a row */
#define PREP_BAR 50304u
#define PREP_G 50432u /* g and beta of the chunk, 64 floats each, for even and for odd value heads */

extern "C" __global__ void __launch_bounds__(128, 4)
gdn_prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g, const float *beta,
            unsigned char *records, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 base = (smem_u32(smem_raw) + 1023u) & ~1023u;
    const u32 bar = base + PREP_BAR;
    const int tid = threadIdx.x, lane = tid & 31;
    const int warp = __shfl_sync(0xFFFFFFFFu, tid >> 5, 0);
    const int hq = blockIdx.x, batch = blockIdx.z;
    const int chunks = gridDim.y;
    const int chunk = chunks - 1 - (int)blockIdx.y; // the first chunks last: they are read first
    const int t0 = chunk * 64;
    const int group = HV / HQ;

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    if (tid == 0) {
        mbar_init(bar, 1);
        mbar_init_fence();
    }
    __syncthreads();
    if (tid == 0) {
        const u64 once = evict_first();
        mbar_expect(bar, 32768);
        tma_load_once(base, &tm_k, bar, 0, hq, t0, batch, once);
        tma_load_once(base + 8192, &tm_k, bar, 64, hq, t0, batch, once);
        tma_load_once(base + 16384, &tm_q, bar, 0, hq, t0, batch, once);
        tma_load_once(base + 24576, &tm_q, bar, 64, hq, t0, batch, once);
    }
    __syncwarp();

    // Threads 0 to 63 fetch g of a token each, the others beta.
    const int token = t0 + (tid & 63);
    const bool has = token < T;
    const float *source = (tid < 64 ? g : beta) + ((size_t)batch * T + token) * HV + (size_t)hq * group;
    {
        float now = 0.0f;
        if (has)
            now = source[0];
        sts_f1(base + PREP_G + (u32)tid * 4u, now);
    }

    mbar_wait(bar, 0);
    __syncwarp();
    float kk[32], qk[32];
    {
        const u64 dk = desc_k_major(base), dq = desc_k_major(base + 16384);
        wg_fence();
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const u64 o = (u64)((s >> 2) * 512 + (s & 3) * 2);
            wgmma_ss(kk, dk + o, dk + o, s > 0);
        }
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const u64 o = (u64)((s >> 2) * 512 + (s & 3) * 2);
            wgmma_ss(qk, dq + o, dk + o, s > 0);
        }
        wg_commit();
        wg_wait<0>();
        pin(kk);
        pin(qk);
    }
    __syncthreads(); // k and q are done with: their space is taken for other things

    const int r0 = lane >> 2;                 // row within the block of 16, the other is r0 + 8
    const int i0 = warp * 16 + r0;            // the same within the chunk; i0 & 7 == r0
    const u32 row_bytes = (u32)i0 * 128u + (u32)(lane & 3) * 4u;
    // ldmatrix: 16 rows, two neighbouring 16-byte columns
    const u32 lm_row = (u32)((lane & 7) + ((lane >> 3) & 1) * 8) * 128u;
    const u32 lm_x = (u32)(lane & 7), lm_c = (u32)(lane >> 4);
    const u32 lmat = base + PREP_L;
    const u32 dmat = base + PREP_D + (u32)warp * 1280u;
    const int row_lane = warp * 8 + (lane >> 3); // the lane with the gates of row i0
    const bool row_odd = (r0 & 1) != 0;

#define TILE16(tile, block, column) ((tile) + (u32)(block) * 2048u + lm_row + ((((u32)(column) + lm_c) ^ lm_x) << 4))
#define AT(nb) (row_bytes + ((u32)((nb) ^ r0) << 4))

    for (int gi = 0; gi < group; ++gi) {
        const u32 rec = base + ((gi & 1) ? 0u : PREP_REC0);
        const u32 pmat = rec + 8192u;

        // Running sums of the gates, in base 2: a lane has tokens 2 lane and 2 lane + 1.
        const u32 gv = base + PREP_G + (u32)(gi & 1) * 512u;
        float x2, y2;
        lds_f2(gv + (u32)lane * 8u, x2, y2);
        const float br0 = lds_f1(gv + 256u + (u32)i0 * 4u), br1 = lds_f1(gv + 256u + (u32)i0 * 4u + 32u);
        float next = 0.0f;
        if (gi + 1 < group && has)
            next = source[gi + 1];
        x2 *= 1.4426950408889634f;
        y2 *= 1.4426950408889634f;
        float sum = x2 + y2;
#pragma unroll
        for (int d = 1; d < 32; d <<= 1) {
            const float n = __shfl_up_sync(0xFFFFFFFFu, sum, d);
            if (lane >= d)
                sum += n;
        }
        const float cy = sum, cx = sum - y2;
        const float total = __shfl_sync(0xFFFFFFFFu, sum, 31);

        if (warp == 0) {
            const u32 v = rec + 16384u + (u32)lane * 8u;
            const float ex = ex2(cx), ey = ex2(cy);
            float beta_a, beta_b;
            lds_f2(gv + 256u + (u32)lane * 8u, beta_a, beta_b);
            sts_f2(v, beta_a, beta_b);
            sts_f2(v + 256, -beta_a * ex, -beta_b * ey);
            sts_f2(v + 512, scale * ex, scale * ey);
            sts_f2(v + 768, ex2(total - cx), ex2(total - cy));
            if (lane == 31)
                sts_f1(rec + 16384u + 1024u, ex2(total));
        }
        __syncwarp();

        // Gates of this thread's two rows.
        float gr0, gr1;
        {
            const float ax = __shfl_sync(0xFFFFFFFFu, cx, row_lane), ay = __shfl_sync(0xFFFFFFFFu, cy, row_lane);
            const float cx1 = __shfl_sync(0xFFFFFFFFu, cx, row_lane + 4), cy1 = __shfl_sync(0xFFFFFFFFu, cy, row_lane + 4);
            gr0 = row_odd ? ay : ax;
            gr1 = row_odd ? cy1 : cx1;
        }

        // P, L, and zeros right of the diagonal blocks.
        float gm[6][4];
#pragma unroll
        for (int nb = 0; nb < 8; ++nb) {
            const u32 at = AT(nb);
            if (nb < 6) {
                gm[nb][0] = 0.0f;
                gm[nb][1] = 0.0f;
                gm[nb][2] = 0.0f;
                gm[nb][3] = 0.0f;
            }
            if (nb <= 2 * warp + 1) {
                const int src = nb * 4 + (lane & 3);
                const float gc0 = __shfl_sync(0xFFFFFFFFu, cx, src), gc1 = __shfl_sync(0xFFFFFFFFu, cy, src);
                float e00 = ex2(gr0 - gc0), e01 = ex2(gr0 - gc1), e10 = ex2(gr1 - gc0), e11 = ex2(gr1 - gc1);
                const int j0 = nb * 8 + 2 * (lane & 3), j1 = j0 + 1;
                const int i1 = i0 + 8;
                e00 = j0 <= i0 ? e00 : 0.0f;
                e01 = j1 <= i0 ? e01 : 0.0f;
                e10 = j0 <= i1 ? e10 : 0.0f;
                e11 = j1 <= i1 ? e11 : 0.0f;
                sts_u32(pmat + at, pack_f16(qk[nb * 4 + 0] * (e00 * scale), qk[nb * 4 + 1] * (e01 * scale)));
                sts_u32(pmat + at + 1024, pack_f16(qk[nb * 4 + 2] * (e10 * scale), qk[nb * 4 + 3] * (e11 * scale)));
                const float l00 = j0 < i0 ? kk[nb * 4 + 0] * (e00 * br0) : 0.0f;
                const float l01 = j1 < i0 ? kk[nb * 4 + 1] * (e01 * br0) : 0.0f;
                const float l10 = j0 < i1 ? kk[nb * 4 + 2] * (e10 * br1) : 0.0f;
                const float l11 = j1 < i1 ? kk[nb * 4 + 3] * (e11 * br1) : 0.0f;
                if (nb < 2 * warp) {
                    if (nb < 6) {
                        gm[nb][0] = l00;
                        gm[nb][1] = l01;
                        gm[nb][2] = l10;
                        gm[nb][3] = l11;
                    }
                    sts_u32(lmat + at, pack_f16(l00, l01));
                    sts_u32(lmat + at + 1024, pack_f16(l10, l11));
                } else {
                    const u32 d = dmat + (u32)((((nb & 1) * 8) + 2 * (lane & 3)) * 20 + r0) * 4u;
                    sts_f1(d, l00);
                    sts_f1(d + 80, l01);
                    sts_f1(d + 32, l10);
                    sts_f1(d + 112, l11);
                }
            } else if (gi < 2) { // they stay where they are
                sts_u32(pmat + at, 0u);
                sts_u32(pmat + at + 1024, 0u);
                sts_u32(rec + at, 0u);
                sts_u32(rec + at + 1024, 0u);
            }
        }
        __syncwarp();

        // The inverse of the diagonal block: lane j (and j + 16) has column j.
        {
            const int j = lane & 15;
            float x[16];
#pragma unroll
            for (int i = 0; i < 16; ++i)
                x[i] = i == j ? 1.0f : 0.0f;
#pragma unroll
            for (int i = 0; i < 15; ++i) {
#pragma unroll
                for (int q = (i + 1) / 4; q < 4; ++q) {
                    float l[4];
                    lds_f4(dmat + (u32)(i * 80 + q * 16), l);
#pragma unroll
                    for (int m = 0; m < 4; ++m)
                        if (q * 4 + m > i)
                            x[q * 4 + m] = fmaf(-l[m], x[i], x[q * 4 + m]);
                }
            }
            const bool low = lane < 16;
            const u32 column = (u32)(2 * warp + (j >> 3));
            const u32 to = rec + (u32)(warp * 16 + (low ? 0 : 8)) * 128u + (u32)(j & 7) * 2u;
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                float v = low ? x[i] : x[i + 8];
                const int row = low ? i : i + 8;
                v = row == j ? 0.0f : v;
                sts_f16(to + (u32)i * 128u + ((column ^ (u32)i) << 4), v);
            }
        }
        __syncwarp();

        // G = L + (T_ww - I) L left of the diagonal block.
        u32 ga_op[3][4];
        {
            u32 a[4];
            ldsm(TILE16(rec, warp, 2 * warp), a);
#pragma unroll
            for (int np = 0; np < 3; ++np) {
                if (np < warp)
                    mma_pair(gm[2 * np], gm[2 * np + 1], a, TILE16(lmat, warp, 2 * np));
                to_operand(ga_op[np], gm[2 * np], gm[2 * np + 1]);
            }
        }
        __syncthreads();

        // Blocks (1, 0) and (3, 2).
        if (warp == 1) {
            mma_pair(gm[0], gm[1], ga_op[0], TILE16(rec, 0, 0));
#pragma unroll
            for (int nb = 0; nb < 2; ++nb) {
                sts_u32(rec + AT(nb), pack_f16(-gm[nb][0], -gm[nb][1]));
                sts_u32(rec + AT(nb) + 1024, pack_f16(-gm[nb][2], -gm[nb][3]));
            }
        } else if (warp == 3) {
            mma_pair(gm[4], gm[5], ga_op[2], TILE16(rec, 2, 4));
            u32 t[4];
#pragma unroll
            for (int nb = 4; nb < 6; ++nb) {
                const u32 top = pack_f16(-gm[nb][0], -gm[nb][1]), bottom = pack_f16(-gm[nb][2], -gm[nb][3]);
                sts_u32(rec + AT(nb), top);
                sts_u32(rec + AT(nb) + 1024, bottom);
                t[(nb - 4) * 2] = top;
                t[(nb - 4) * 2 + 1] = bottom;
            }
            mma_pair(gm[0], gm[1], t, TILE16(lmat, 2, 0));
            mma_pair(gm[2], gm[3], t, TILE16(lmat, 2, 2));
            to_operand(ga_op[0], gm[0], gm[1]);
            to_operand(ga_op[1], gm[2], gm[3]);
        }
        __syncthreads();

        // Rows 32 to 63 of columns 0 to 31.
        if (warp >= 2) {
            mma_pair(gm[0], gm[1], ga_op[0], TILE16(rec, 0, 0));
            mma_pair(gm[0], gm[1], ga_op[1], TILE16(rec, 1, 0));
            mma_pair(gm[2], gm[3], ga_op[1], TILE16(rec, 1, 2));
#pragma unroll
            for (int nb = 0; nb < 4; ++nb) {
                sts_u32(rec + AT(nb), pack_f16(-gm[nb][0], -gm[nb][1]));
                sts_u32(rec + AT(nb) + 1024, pack_f16(-gm[nb][2], -gm[nb][3]));
            }
        }
        if (gi + 1 < group)
            sts_f1(base + PREP_G + (u32)((gi + 1) & 1) * 512u + (u32)tid * 4u, next);
        fence_async();
        if (tid == 0)
            bulk_wait_read(); // the record before this one has left: the next may take its place
        __syncthreads();
        if (tid == 0) {
            const size_t index = ((size_t)batch * HV + (size_t)hq * group + gi) * chunks + chunk;
            bulk_store(records + index * RECORD_BYTES, rec, RECORD_BYTES);
            bulk_commit();
        }
        __syncwarp();
    }
    if (tid == 0)
        bulk_wait_all();
}

// ------------------------------------------------------------------------------------------------ recur
// A block has 64 columns of the state of one head, a cluster both halves. Warps 0 to 3 compute, warp 4 loads: of what both
// halves need it fetches one part, for both. Warps 5 and 6 write the outputs, which reach them through shared memory.

#define STAGES 3
#define STAGE_BYTES 59392u
#define OFF_Q 16384u
#define OFF_V 32768u
#define OFF_T 40960u
#define OFF_P 49152u
#define OFF_G 57344u
#define OUTS 3
#define OUT_AT (STAGES * STAGE_BYTES)
#define BARS_AT (OUT_AT + OUTS * 16384u)

// The outputs of a chunk, transposed in the registers, to shared memory: two tiles of 64 tokens by 32 columns, swizzled.
__device__ __forceinline__ void write_output(const float (&o)[32], u32 out, int warp, int lane)
{
    const u32 tile = out + (u32)(warp >> 1) * 8192u + (u32)((lane >> 2) & 3) * 4u;
    const u32 unit = (u32)((warp & 1) * 4 + (lane >> 4));
    const u32 k0 = (u32)(2 * (lane & 3)), k1 = k0 + 1;
    const u32 a00 = tile + k0 * 128u + ((unit ^ k0) << 4);
    const u32 a01 = tile + k1 * 128u + ((unit ^ k1) << 4);
    const u32 a10 = tile + k0 * 128u + (((unit + 2) ^ k0) << 4);
    const u32 a11 = tile + k1 * 128u + (((unit + 2) ^ k1) << 4);
#pragma unroll
    for (int nb = 0; nb < 8; ++nb) {
        sts_f1(a00 + nb * 1024, o[nb * 4 + 0]);
        sts_f1(a01 + nb * 1024, o[nb * 4 + 1]);
        sts_f1(a10 + nb * 1024, o[nb * 4 + 2]);
        sts_f1(a11 + nb * 1024, o[nb * 4 + 3]);
    }
}

extern "C" __global__ void __launch_bounds__(224, 1)
gdn_recur(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const __grid_constant__ TensorMap tm_v,
          const unsigned char *records, const float *initial_state, float *output, float *final_state, int T, int HQ, int HV)
{
    extern __shared__ unsigned char smem_raw[];
    const u32 base = (smem_u32(smem_raw) + 1023u) & ~1023u;
    const u32 full = base + BARS_AT, empty = full + STAGES * 8;
    const u32 out_full = empty + STAGES * 8, out_empty = out_full + OUTS * 8;
    const int tid = threadIdx.x, lane = tid & 31;
    const int warp = __shfl_sync(0xFFFFFFFFu, tid >> 5, 0);
    const int half = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + 63) / 64;
    const int column0 = half * 64;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            mbar_init(full + s * 8, 1);
            mbar_init(empty + s * 8, 8); // the computing warps of both blocks
        }
        for (int s = 0; s < OUTS; ++s) {
            mbar_init(out_full + s * 8, 4);
            mbar_init(out_empty + s * 8, 2);
        }
        mbar_init_fence();
    }
    __syncthreads();
    cluster_sync();

    if (warp == 4) {
        if (lane == 0) {
            const u64 once = evict_first();
            const int hq = head / (HV / HQ);
            const u32 skip = half ? 8192u : 0u;
            const u32 record_bytes = half ? RECORD_BYTES - 8192u : 8192u;
            const unsigned char *record = records + ((size_t)batch * HV + head) * chunks * RECORD_BYTES + skip;
            int stage = 0;
            u32 phase = 1; // the first round finds the stages empty
            for (int c = 0; c < chunks; ++c) {
                const u32 st = base + stage * STAGE_BYTES;
                const u32 bar = full + stage * 8;
                if (c >= STAGES)
                    mbar_wait(empty + stage * 8, phase);
                mbar_expect(bar, 16384u + 16384u + 8192u + RECORD_BYTES);
                tma_load_both(st + skip, &tm_k, bar, column0, hq, c * 64, batch);
                tma_load_once(st + OFF_V, &tm_v, bar, column0, head, c * 64, batch, once);
                tma_load_both(st + OFF_Q + skip, &tm_q, bar, column0, hq, c * 64, batch);
                if (c == 0) {
                    asm volatile("griddepcontrol.wait;" ::: "memory"); // the records are there
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                bulk_load_both(st + OFF_T + skip, record + (size_t)c * RECORD_BYTES, record_bytes, bar);
                if (++stage == STAGES) {
                    stage = 0;
                    phase ^= 1;
                }
            }
        }
    } else if (warp >= 5) {
        // Two tokens at a time, 256 bytes each.
        const int row = (warp - 5) * 2 + (lane >> 4);
        const int tile = (lane >> 3) & 1, unit = lane & 7;
        const size_t token_step = (size_t)HV * 128;
        float *to = output + (((size_t)batch * T + row) * HV + head) * 128 + column0 + tile * 32 + unit * 4;
        int b = 0;
        u32 phase = 0;
        for (int c = 0; c < chunks; ++c) {
            mbar_wait(out_full + b * 8, phase);
            __syncwarp();
            const u32 from = base + OUT_AT + (u32)b * 16384u + (u32)tile * 8192u;
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float v[8][4];
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const int t = row + 4 * (h * 8 + i);
                    lds_f4(from + (u32)t * 128u + (u32)((unit ^ (t & 7)) << 4), v[i]);
                }
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    if (c * 64 + row + 4 * (h * 8 + i) < T)
                        stg_f4(to + (size_t)(4 * (h * 8 + i)) * token_step, v[i]);
                }
            }
            __syncwarp();
            if (lane == 0)
                mbar_arrive(out_empty + b * 8);
            to += 64 * token_step;
            if (++b == OUTS) {
                b = 0;
                phase ^= 1;
            }
        }
    } else {
        // The state, transposed: rows are columns of values, columns are keys.
        float s0[32], s1[32]; // keys 0 to 63, 64 to 127
        const size_t state_at = ((size_t)batch * HV + head) * 16384u + (size_t)(2 * (lane & 3)) * 128u + column0 + warp * 16 + (lane >> 2);
        {
            const float *from = initial_state + state_at;
#pragma unroll
            for (int nb = 0; nb < 8; ++nb) {
                s0[nb * 4 + 0] = from[nb * 1024];
                s0[nb * 4 + 1] = from[nb * 1024 + 128];
                s0[nb * 4 + 2] = from[nb * 1024 + 8];
                s0[nb * 4 + 3] = from[nb * 1024 + 136];
                s1[nb * 4 + 0] = from[nb * 1024 + 8192];
                s1[nb * 4 + 1] = from[nb * 1024 + 8320];
                s1[nb * 4 + 2] = from[nb * 1024 + 8200];
                s1[nb * 4 + 3] = from[nb * 1024 + 8328];
            }
        }
        u32 sb[32];
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            sb[i] = pack_bf16(s0[2 * i], s0[2 * i + 1]);
            sb[16 + i] = pack_bf16(s1[2 * i], s1[2 * i + 1]);
        }

        float r[32], o[32];
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            r[i] = 0.0f;
            o[i] = 0.0f;
        }

        const u32 v_lane = (u32)((lane >> 4) & 1) * 1024u + (u32)(lane & 7) * 128u +
                           (((u32)(2 * warp + ((lane >> 3) & 1)) ^ (u32)(lane & 7)) << 4);
        const u32 g_lane = OFF_G + (u32)(lane & 3) * 8u;

        int stage = 0, before = 0, ob = 0;
        u32 phase = 0, out_phase = 1; // the first round finds the buffers of the outputs empty
        for (int c = 0; c < chunks; ++c) {
            const u32 st = base + stage * STAGE_BYTES;
            mbar_wait(full + stage * 8, phase);
            __syncwarp();
            const u64 dk = desc_k_major(st), dq = desc_k_major(st + OFF_Q);
            const u64 dt = desc_k_major(st + OFF_T), dp = desc_k_major(st + OFF_P);
            const u64 du = desc_mn_major(st);

            // r = S^T K^T
            wg_fence();
#pragma unroll
            for (int s = 0; s < 8; ++s)
                wgmma_bf16<0>(r, sb[4 * s], sb[4 * s + 1], sb[4 * s + 2], sb[4 * s + 3], dk + (u64)((s >> 2) * 512 + (s & 3) * 2), s > 0);
            wg_commit();

            // Meanwhile the outputs of the chunk before: its last product has ended, its stage is free.
            wg_wait<1>();
            pin(o);
            if (c > 0) {
                __syncwarp();
                if (lane < 2)
                    mbar_arrive_cluster(empty + before * 8, (u32)lane);
                __syncwarp();
                mbar_wait(out_empty + ob * 8, out_phase);
                __syncwarp();
                write_output(o, base + OUT_AT + (u32)ob * 16384u, warp, lane);
            }

            // o = S^T Q^T, the first half of the keys
            wg_fence();
#pragma unroll
            for (int s = 0; s < 4; ++s)
                wgmma_bf16<0>(o, sb[4 * s], sb[4 * s + 1], sb[4 * s + 2], sb[4 * s + 3], dq + (u64)(s * 2), s > 0);
            wg_commit();

            if (c > 0) {
                __syncwarp();
                if (lane == 0)
                    mbar_arrive(out_full + ob * 8);
                __syncwarp();
                if (++ob == OUTS) {
                    ob = 0;
                    out_phase ^= 1;
                }
            }

            // beta V, transposed, and the decay of the state
            float bv[32], a1[16];
#pragma unroll
            for (int np = 0; np < 4; ++np) {
                u32 v[4];
                ldsm_t(st + OFF_V + v_lane + np * 2048, v);
                float x0, x1, y0, y1;
                lds_f2(st + g_lane + np * 64, x0, x1);
                lds_f2(st + g_lane + np * 64 + 32, y0, y1);
                lds_f2(st + g_lane + 256 + np * 64, a1[np * 4 + 0], a1[np * 4 + 1]);
                lds_f2(st + g_lane + 256 + np * 64 + 32, a1[np * 4 + 2], a1[np * 4 + 3]);
                bv[np * 8 + 0] = x0 * __uint_as_float(v[0] << 16);
                bv[np * 8 + 1] = x1 * __uint_as_float(v[0] & 0xFFFF0000u);
                bv[np * 8 + 2] = x0 * __uint_as_float(v[1] << 16);
                bv[np * 8 + 3] = x1 * __uint_as_float(v[1] & 0xFFFF0000u);
                bv[np * 8 + 4] = y0 * __uint_as_float(v[2] << 16);
                bv[np * 8 + 5] = y1 * __uint_as_float(v[2] & 0xFFFF0000u);
                bv[np * 8 + 6] = y0 * __uint_as_float(v[3] << 16);
                bv[np * 8 + 7] = y1 * __uint_as_float(v[3] & 0xFFFF0000u);
            }
            const float decay = lds_f1(st + OFF_G + 1024u);
#pragma unroll
            for (int i = 0; i < 32; ++i) {
                s0[i] *= decay;
                s1[i] *= decay;
            }
            pin(s0);
            pin(s1);

            // r = R, and then U = R + (T - I) R
            wg_wait<1>();
            pin(r);
            u32 rb[16];
#pragma unroll
            for (int nb = 0; nb < 8; ++nb) {
                r[nb * 4 + 0] = fmaf(a1[nb * 2], r[nb * 4 + 0], bv[nb * 4 + 0]);
                r[nb * 4 + 1] = fmaf(a1[nb * 2 + 1], r[nb * 4 + 1], bv[nb * 4 + 1]);
                r[nb * 4 + 2] = fmaf(a1[nb * 2], r[nb * 4 + 2], bv[nb * 4 + 2]);
                r[nb * 4 + 3] = fmaf(a1[nb * 2 + 1], r[nb * 4 + 3], bv[nb * 4 + 3]);
                rb[nb * 2] = pack_f16(r[nb * 4 + 0], r[nb * 4 + 1]);
                rb[nb * 2 + 1] = pack_f16(r[nb * 4 + 2], r[nb * 4 + 3]);
            }
            pin(r);
            wg_fence();
#pragma unroll
            for (int s = 0; s < 4; ++s)
                wgmma_f16(r, rb[4 * s], rb[4 * s + 1], rb[4 * s + 2], rb[4 * s + 3], dt + (u64)(s * 2), 1);
            wg_commit();

            // The other half of S^T Q^T keeps the tensor cores busy while U is rounded.
#pragma unroll
            for (int s = 4; s < 8; ++s)
                wgmma_bf16<0>(o, sb[4 * s], sb[4 * s + 1], sb[4 * s + 2], sb[4 * s + 3], dq + (u64)(512 + (s & 3) * 2), 1);
            wg_commit();

            float a3[16];
#pragma unroll
            for (int nb = 0; nb < 8; ++nb)
                lds_f2(st + g_lane + 768 + nb * 32, a3[nb * 2], a3[nb * 2 + 1]);

            wg_wait<1>();
            pin(r);
            u32 us[16];
#pragma unroll
            for (int i = 0; i < 16; ++i)
                us[i] = pack_bf16(r[2 * i] * a3[(i >> 1) * 2], r[2 * i + 1] * a3[(i >> 1) * 2 + 1]);

            // The state takes the updates, then the outputs do.
            wg_fence();
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                wgmma_bf16<1>(s0, us[4 * s], us[4 * s + 1], us[4 * s + 2], us[4 * s + 3], du + (u64)(s * 128), 1);
                wgmma_bf16<1>(s1, us[4 * s], us[4 * s + 1], us[4 * s + 2], us[4 * s + 3], du + (u64)(512 + s * 128), 1);
            }
            wg_commit();

            u32 ub[16];
#pragma unroll
            for (int i = 0; i < 16; ++i)
                ub[i] = pack_f16(r[2 * i], r[2 * i + 1]);
            float a2[16];
#pragma unroll
            for (int nb = 0; nb < 8; ++nb)
                lds_f2(st + g_lane + 512 + nb * 32, a2[nb * 2], a2[nb * 2 + 1]);

            // o = scale exp(G) S^T Q^T
            wg_wait<1>();
            pin(o);
#pragma unroll
            for (int i = 0; i < 32; ++i)
                o[i] *= a2[(i >> 2) * 2 + (i & 1)];
            pin(o);
            wg_fence();
#pragma unroll
            for (int s = 0; s < 4; ++s)
                wgmma_f16(o, ub[4 * s], ub[4 * s + 1], ub[4 * s + 2], ub[4 * s + 3], dp + (u64)(s * 2), 1);
            wg_commit();

            wg_wait<1>();
            pin(s0);
            pin(s1);
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                sb[i] = pack_bf16(s0[2 * i], s0[2 * i + 1]);
                sb[16 + i] = pack_bf16(s1[2 * i], s1[2 * i + 1]);
            }

            before = stage;
            if (++stage == STAGES) {
                stage = 0;
                phase ^= 1;
            }
        }

        wg_wait<0>();
        pin(o);
        mbar_wait(out_empty + ob * 8, out_phase);
        __syncwarp();
        write_output(o, base + OUT_AT + (u32)ob * 16384u, warp, lane);
        __syncwarp();
        if (lane == 0)
            mbar_arrive(out_full + ob * 8);
        __syncwarp();

        {
            float *to = final_state + state_at;
#pragma unroll
            for (int nb = 0; nb < 8; ++nb) {
                to[nb * 1024] = s0[nb * 4 + 0];
                to[nb * 1024 + 128] = s0[nb * 4 + 1];
                to[nb * 1024 + 8] = s0[nb * 4 + 2];
                to[nb * 1024 + 136] = s0[nb * 4 + 3];
                to[nb * 1024 + 8192] = s1[nb * 4 + 0];
                to[nb * 1024 + 8320] = s1[nb * 4 + 1];
                to[nb * 1024 + 8200] = s1[nb * 4 + 2];
                to[nb * 1024 + 8328] = s1[nb * 4 + 3];
            }
        }
    }
    // A block stays until the other has signalled at its barriers for the last time.
    __syncwarp();
    cluster_sync();
}
