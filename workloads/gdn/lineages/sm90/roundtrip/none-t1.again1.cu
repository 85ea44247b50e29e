/*klineage
surface = "cuda"

[[launch]]
kernel = "gdn_prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "53312"
args = ["tm_q", "tm_k", "g", "beta", "mats", "gates", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "gdn_scan"
grid = ["2", "HV", "B"]
block = ["224"]
cluster = ["2", "1", "1"]
shared = "207424"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "mats", "gates", "initial_state", "output", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[workspace]]
name = "mats"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64) * 8192"]
init = "poison"

[[workspace]]
name = "gates"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64) * 128"]
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
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the sums of g within a chunk, the updates of a chunk solve
//     (I + A) u = beta (v - exp(G) K S),   A_ij = beta_i exp(G_i - G_j) k_i.k_j  for j < i,
// and output_i = scale (exp(G_i) S^T q_i + sum_{j <= i} exp(G_i - G_j) q_i.k_j u_j), S' = exp(G_63) S + sum_j exp(G_63 - G_j) k_j u_j^T.
// gdn_prepare writes (I + A)^-1 diag(beta) and the matrix of the output, as bf16 tiles in the 128-byte swizzle.
// gdn_scan walks the chunks with S^T (64 columns of values by 128 keys) in registers. The two blocks of a head are a cluster:
// each loads one half of what both need into the shared memory of both. Two warps of their own write the outputs.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

__device__ __forceinline__ unsigned shared_address(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void barrier_init(unsigned bar, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
}

__device__ __forceinline__ void barrier_expect(unsigned bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// Arrives at the barrier that lies at the same place in block `rank` of the cluster.
__device__ __forceinline__ void barrier_arrive_at(unsigned bar, unsigned rank)
{
    asm volatile("{\n\t.reg .b32 remote;\n\t"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
                 "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n\t}" ::"r"(bar),
                 "r"(rank)
                 : "memory");
}

__device__ __forceinline__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned bar, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(bar), "r"(parity)
                     : "memory");
    } while (done == 0);
}

__device__ __forceinline__ void load_box(unsigned to, const TensorMap *map, int c0, int c1, int c2, int c3, unsigned bar)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
                 "l"((unsigned long long)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
                 : "memory");
}

__device__ __forceinline__ void load_bytes(unsigned to, const void *from, unsigned bytes, unsigned bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"((unsigned long long)from), "r"(bytes), "r"(bar)
                 : "memory");
}

// The same into both blocks of a cluster, and to the barriers of both.
__device__ __forceinline__ void load_box_both(unsigned to, const TensorMap *map, int c0, int c1, int c2, int c3, unsigned bar)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
                 "l"((unsigned long long)map), "r"(bar), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "h"((unsigned short)3)
                 : "memory");
}

__device__ __forceinline__ void load_bytes_both(unsigned to, const void *from, unsigned bytes, unsigned bar)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"((unsigned long long)from), "r"(bytes), "r"(bar), "h"((unsigned short)3)
                 : "memory");
}

__device__ __forceinline__ void store_bytes(void *to, unsigned from, unsigned bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"((unsigned long long)to), "r"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ __forceinline__ void store_wait_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ __forceinline__ void store_wait() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ __forceinline__ void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void mma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void mma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void mma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// Keeps the compiler from moving uses of registers across the fences and waits of wgmma.
template <int N> __device__ __forceinline__ void hold(float (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(r[i])::"memory");
}
template <int N> __device__ __forceinline__ void hold(unsigned (&r)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+r"(r[i])::"memory");
}

// Descriptor of a tile in the 128-byte swizzle: groups of 8 rows lie 1024 bytes apart.
__device__ __forceinline__ unsigned long long descriptor(unsigned address, unsigned leading)
{
    return (unsigned long long)((address & 0x3FFFFu) >> 4) | ((unsigned long long)(leading >> 4) << 16) | ((unsigned long long)(1024u >> 4) << 32) |
           (1ull << 62);
}

// D = A B (+ D) with 64 rows, 16 deep. A in registers or in shared memory; B has its depth contiguous in shared memory ...
__device__ __forceinline__ void mma_register_n64(float (&d)[32], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %37, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, p, 1, 1, 0;\n\t}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

__device__ __forceinline__ void mma_shared_n64(float (&d)[32], unsigned long long a, unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %34, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, p, 1, 1, 0, 0;\n\t}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(accumulate));
}

// ... or, here, its 128 columns.
__device__ __forceinline__ void mma_register_n128(float (&d)[64], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %69, 0;\n\t"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, p, 1, 1, 1;\n\t}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b), "r"(accumulate));
}

// 16 x 8, 16 deep, on fp16.
__device__ __forceinline__ void mma_half(float &d0, float &d1, float &d2, float &d3, const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned pack_bf16(float low, float high)
{
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ unsigned pack_half(float low, float high)
{
    unsigned r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ float exp_base2(float x)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// Byte of (row, column) in a tile of 64 columns of bf16 in the 128-byte swizzle.
__device__ __forceinline__ unsigned tile_byte(int row, int column)
{
    return (unsigned)(row * 128 + (((column >> 3) ^ (row & 7)) << 4) + (column & 7) * 2);
}

// Offsets in the shared memory of gdn_prepare. K and Q are dead once their products are in registers: their room
// becomes two buffers for what a head sends out (the inverse, then the matrix of the output).
#define P_K 0
#define P_Q 16384
#define P_A 32768 /* fp16, 64 x 72: A below its diagonal blocks */
#define P_DIAGONAL 41984 /* f32, 4 x 16 x 20: the diagonal blocks of A */
#define P_INVERSE 47104 /* fp16, 4 x 16 x 24: their inverses */
#define P_GATES 50176 /* f32, for each warp 64 sums of gates and 64 beta */
#define P_BARRIER 52224

extern "C" __global__ void __launch_bounds__(128, 4)
gdn_prepare(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const float *g, const float *beta,
            unsigned short *mats, float *gates, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char raw[];
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    // The last chunks first: what the scan begins with is then the newest in L2.
    const int hq = blockIdx.x, batch = blockIdx.z;
    const int chunks = (T + 63) >> 6, ratio = HV / HQ, chunk = chunks - 1 - (int)blockIdx.y, first = chunk * 64;
    const unsigned start = shared_address(raw);
    const unsigned base = (start + 1023u) & ~1023u;
    unsigned char *sm = raw + (base - start);
    const unsigned bar = base + P_BARRIER;

    if (tid == 0) {
        barrier_init(bar, 1);
        barrier_init_fence();
    }
    __syncthreads();
    if (tid == 0) {
        barrier_expect(bar, 32768);
        load_box(base + P_K, &tm_k, 0, hq, first, batch, bar);
        load_box(base + P_K + 8192, &tm_k, 64, hq, first, batch, bar);
        load_box(base + P_Q, &tm_q, 0, hq, first, batch, bar);
        load_box(base + P_Q + 8192, &tm_q, 64, hq, first, batch, bar);
    }
    __syncwarp();

    // A lane holds the gates of two tokens; those of the next head are on their way while a head is computed.
    const int token_a = first + lane, token_b = token_a + 32;
    const size_t gate_a = ((size_t)batch * T + token_a) * HV + (size_t)hq * ratio;
    const size_t gate_b = gate_a + (size_t)32 * HV;
    float ga = 0.0f, gb = 0.0f, ba = 0.0f, bb = 0.0f;
    if (token_a < T) {
        ga = g[gate_a];
        ba = beta[gate_a];
    }
    if (token_b < T) {
        gb = g[gate_b];
        bb = beta[gate_b];
    }

    float kk[32], qk[32];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        kk[i] = qk[i] = 0.0f;

    barrier_wait(bar, 0);
    __syncwarp();
    {
        const unsigned long long dk = descriptor(base + P_K, 16), dq = descriptor(base + P_Q, 16);
        hold(kk);
        hold(qk);
        mma_fence();
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const unsigned long long step = (unsigned long long)((s >> 2) * 512 + (s & 3) * 2);
            mma_shared_n64(kk, dk + step, dk + step, s != 0);
        }
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            const unsigned long long step = (unsigned long long)((s >> 2) * 512 + (s & 3) * 2);
            mma_shared_n64(qk, dq + step, dk + step, s != 0);
        }
        mma_commit();
        mma_wait<0>();
        hold(kk);
        hold(qk);
    }
    __syncthreads();

    const int quad = lane >> 2, q2 = (lane & 3) * 2;
    const int row0 = 16 * warp + quad, row1 = row0 + 8;
    unsigned short *a_half = (unsigned short *)(sm + P_A);
    float *diagonal = (float *)(sm + P_DIAGONAL) + warp * 320;
    unsigned short *inverse = (unsigned short *)(sm + P_INVERSE);
    float *sums = (float *)(sm + P_GATES) + warp * 128;
    float *betas = sums + 64;

    for (int r = 0; r < ratio; ++r) {
        const size_t tile = ((size_t)batch * HV + (size_t)hq * ratio + r) * chunks + chunk;
        const unsigned out_offset = (unsigned)(r & 1) * 16384u;
        unsigned char *out_t = sm + out_offset;
        unsigned char *out_p = out_t + 8192;

        // Sums of the gates, in every warp for itself, as logarithms to base 2.
        float ca = ga, cb = gb;
#pragma unroll
        for (int o = 1; o < 32; o <<= 1) {
            const float ya = __shfl_up_sync(0xffffffffu, ca, o);
            const float yb = __shfl_up_sync(0xffffffffu, cb, o);
            if (lane >= o) {
                ca += ya;
                cb += yb;
            }
        }
        cb += __shfl_sync(0xffffffffu, ca, 31);
        ca *= 1.4426950408889634f;
        cb *= 1.4426950408889634f;
        const float last = __shfl_sync(0xffffffffu, cb, 31);
        __syncwarp();
        sums[lane] = ca;
        sums[lane + 32] = cb;
        betas[lane] = ba;
        betas[lane + 32] = bb;
        if (warp == 0) {
            float *to = gates + tile * 128;
            to[lane] = exp_base2(ca);
            to[lane + 32] = exp_base2(cb);
            to[lane + 64] = exp_base2(last - ca);
            to[lane + 96] = exp_base2(last - cb);
        }
        if (r + 1 < ratio) {
            if (token_a < T) {
                ga = g[gate_a + r + 1];
                ba = beta[gate_a + r + 1];
            }
            if (token_b < T) {
                gb = g[gate_b + r + 1];
                bb = beta[gate_b + r + 1];
            }
        }
        __syncwarp();

        // Rows 16 warp .. 16 warp + 15 of A and of the matrix of the output.
        {
            const float s0 = sums[row0], s1 = sums[row1], b0 = betas[row0], b1 = betas[row1];
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int column = 8 * n + q2;
                unsigned p0 = 0u, p1 = 0u;
                if (n <= 2 * warp + 1) {
                    const float2 sc = *(const float2 *)(sums + column);
                    const float d00 = exp_base2(s0 - sc.x), d01 = exp_base2(s0 - sc.y);
                    const float d10 = exp_base2(s1 - sc.x), d11 = exp_base2(s1 - sc.y);
                    p0 = pack_bf16(column <= row0 ? scale * qk[4 * n] * d00 : 0.0f, column + 1 <= row0 ? scale * qk[4 * n + 1] * d01 : 0.0f);
                    p1 = pack_bf16(column <= row1 ? scale * qk[4 * n + 2] * d10 : 0.0f, column + 1 <= row1 ? scale * qk[4 * n + 3] * d11 : 0.0f);
                    const float a00 = column < row0 ? b0 * kk[4 * n] * d00 : 0.0f;
                    const float a01 = column + 1 < row0 ? b0 * kk[4 * n + 1] * d01 : 0.0f;
                    const float a10 = column < row1 ? b1 * kk[4 * n + 2] * d10 : 0.0f;
                    const float a11 = column + 1 < row1 ? b1 * kk[4 * n + 3] * d11 : 0.0f;
                    if (n >= 2 * warp) {
                        const int within = column - 16 * warp;
                        *(float2 *)(diagonal + quad * 20 + within) = make_float2(a00, a01);
                        *(float2 *)(diagonal + (quad + 8) * 20 + within) = make_float2(a10, a11);
                    } else {
                        *(unsigned *)(a_half + row0 * 72 + column) = pack_half(a00, a01);
                        *(unsigned *)(a_half + row1 * 72 + column) = pack_half(a10, a11);
                    }
                } else {
                    *(unsigned *)(out_t + tile_byte(row0, column)) = 0u;
                    *(unsigned *)(out_t + tile_byte(row1, column)) = 0u;
                }
                *(unsigned *)(out_p + tile_byte(row0, column)) = p0;
                *(unsigned *)(out_p + tile_byte(row1, column)) = p1;
            }
        }
        __syncwarp();

        // The inverse of the warp's diagonal block, a lane a column (both halves of the warp compute all 16).
        {
            const int c = lane & 15;
            float x[16];
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                float sum = i == c ? 1.0f : 0.0f;
#pragma unroll
                for (int k4 = 0; k4 < 4; ++k4) {
                    if (4 * k4 < i) {
                        const float4 a = *(const float4 *)(diagonal + i * 20 + 4 * k4);
                        sum -= a.x * x[4 * k4];
                        if (4 * k4 + 1 < i)
                            sum -= a.y * x[4 * k4 + 1];
                        if (4 * k4 + 2 < i)
                            sum -= a.z * x[4 * k4 + 2];
                        if (4 * k4 + 3 < i)
                            sum -= a.w * x[4 * k4 + 3];
                    }
                }
                x[i] = sum;
            }
            if (lane < 16) {
                unsigned short *to = inverse + warp * 384 + c;
#pragma unroll
                for (int i = 0; i < 16; ++i)
                    to[i * 24] = (unsigned short)(pack_half(x[i], 0.0f) & 0xffffu);
            } else {
                const float b = betas[16 * warp + c];
#pragma unroll
                for (int i = 0; i < 16; ++i)
                    *(unsigned short *)(out_t + tile_byte(16 * warp + i, 16 * warp + c)) = (unsigned short)(pack_bf16(x[i] * b, 0.0f) & 0xffffu);
            }
        }
        if (tid == 0)
            store_wait_read(); // the buffer that the next head fills is free
        __syncthreads();

        // Below the diagonal, warp j computes column j of blocks, transposed: T_ij^T = -(sum_k T_kj^T A_ik^T) T_ii^T.
        if (warp < 3) {
            unsigned tf[4][4];
            {
                const unsigned short *own = inverse + warp * 384;
                const unsigned f0 = (unsigned)own[q2 * 24 + quad] | ((unsigned)own[(q2 + 1) * 24 + quad] << 16);
                const unsigned f1 = (unsigned)own[q2 * 24 + quad + 8] | ((unsigned)own[(q2 + 1) * 24 + quad + 8] << 16);
                const unsigned f2 = (unsigned)own[(q2 + 8) * 24 + quad] | ((unsigned)own[(q2 + 9) * 24 + quad] << 16);
                const unsigned f3 = (unsigned)own[(q2 + 8) * 24 + quad + 8] | ((unsigned)own[(q2 + 9) * 24 + quad + 8] << 16);
#pragma unroll
                for (int k = 0; k < 4; ++k) { // overwritten below for k > warp, not read for k < warp
                    tf[k][0] = f0;
                    tf[k][1] = f1;
                    tf[k][2] = f2;
                    tf[k][3] = f3;
                }
            }
            const float bl = betas[16 * warp + quad], bh = betas[16 * warp + quad + 8];
#pragma unroll
            for (int i = 1; i < 4; ++i) {
                if (i > warp) {
                    float s[8];
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        s[e] = 0.0f;
#pragma unroll
                    for (int k = 0; k < i; ++k) {
                        if (k >= warp) {
                            const unsigned short *from = a_half + (16 * i + quad) * 72 + 16 * k + q2;
                            mma_half(s[0], s[1], s[2], s[3], tf[k], *(const unsigned *)from, *(const unsigned *)(from + 8));
                            mma_half(s[4], s[5], s[6], s[7], tf[k], *(const unsigned *)(from + 8 * 72), *(const unsigned *)(from + 8 * 72 + 8));
                        }
                    }
                    unsigned sf[4];
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        sf[e] = pack_half(-s[2 * e], -s[2 * e + 1]);
                    float t[8];
#pragma unroll
                    for (int e = 0; e < 8; ++e)
                        t[e] = 0.0f;
                    const unsigned short *from = inverse + i * 384 + quad * 24 + q2;
                    mma_half(t[0], t[1], t[2], t[3], sf, *(const unsigned *)from, *(const unsigned *)(from + 8));
                    mma_half(t[4], t[5], t[6], t[7], sf, *(const unsigned *)(from + 8 * 24), *(const unsigned *)(from + 8 * 24 + 8));
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        tf[i][e] = pack_half(t[2 * e], t[2 * e + 1]);
#pragma unroll
                    for (int e = 0; e < 8; ++e) {
                        const int high = (e >> 1) & 1;
                        const int column = 16 * warp + quad + 8 * high, row = 16 * i + q2 + (e & 1) + 8 * (e >> 2);
                        *(unsigned short *)(out_t + tile_byte(row, column)) = (unsigned short)(pack_bf16(t[e] * (high ? bh : bl), 0.0f) & 0xffffu);
                    }
                }
            }
        }
        proxy_fence();
        __syncthreads();
        if (tid == 0) {
            store_bytes(mats + tile * 8192, base + out_offset, 16384);
            store_commit();
        }
        __syncwarp();
    }
    if (tid == 0)
        store_wait();
}

// Offsets in the shared memory of gdn_scan.
#define STAGES 3
#define STAGE_BYTES 57344 /* K 16384, Q 16384, V 8192, inverse 8192, matrix of the output 8192 */
#define STAGE_TX 57856    /* and the gates */
#define S_Q 16384
#define S_V 32768
#define S_T 40960
#define S_P 49152
#define S_OUT 172032   /* two buffers of 64 tokens by 64 columns, f32, as two boxes of 32 columns */
#define S_GATES 204800 /* STAGES x 512 */
#define S_BARRIER 206336

// The output of a chunk, from the accumulators (columns by tokens) to a buffer (tokens by columns) in the 128-byte swizzle.
__device__ __forceinline__ void put_output(const float (&o)[32], unsigned buffer, const unsigned (&offset)[4])
{
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            asm volatile("st.shared.f32 [%0], %1;" ::"r"(buffer + offset[e] + j * 1024), "f"(o[4 * j + e]) : "memory");
}

// Named barriers of the four warps that compute and the two that write outputs: 1 and 2, a buffer is full; 3 and 4, it is free.
__device__ __forceinline__ void named_sync(unsigned id) { asm volatile("bar.sync %0, 192;" ::"r"(id) : "memory"); }
__device__ __forceinline__ void named_arrive(unsigned id) { asm volatile("bar.arrive %0, 192;" ::"r"(id) : "memory"); }

extern "C" __global__ void __launch_bounds__(224, 1)
gdn_scan(const __grid_constant__ TensorMap tm_q, const __grid_constant__ TensorMap tm_k, const __grid_constant__ TensorMap tm_v,
         const unsigned short *mats, const float *gates, const float *initial_state, float *output, float *final_state, int T, int HQ, int HV,
         float scale)
{
    extern __shared__ unsigned char raw[];
    const int tid = threadIdx.x, warp = tid >> 5, lane = tid & 31;
    const int half = blockIdx.x, hv = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + 63) >> 6;
    const unsigned base = (shared_address(raw) + 1023u) & ~1023u;
    const unsigned full = base + S_BARRIER, empty = full + 8 * STAGES;

    if (tid == 0) {
        for (int s = 0; s < STAGES; ++s) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 8); // four warps of each of the two blocks
        }
        barrier_init_fence();
    }
    __syncwarp();
    cluster_sync();

    if (warp == 4) {
        if (lane == 0) {
            asm volatile("griddepcontrol.wait;" ::: "memory");
            unsigned rank;
            asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
            const int hq = hv / (HV / HQ);
            const size_t tile = ((size_t)batch * HV + hv) * chunks;
            int s = 0;
            unsigned parity = 1; // a barrier nobody has arrived at lets the first round pass
            for (int c = 0; c < chunks; ++c) {
                const unsigned bar = full + 8 * s, stage = base + s * STAGE_BYTES;
                barrier_wait(empty + 8 * s, parity);
                barrier_expect(bar, STAGE_TX);
                if (rank == 0) {
                    load_box_both(stage, &tm_k, 0, hq, c * 64, batch, bar);
                    load_box_both(stage + 8192, &tm_k, 64, hq, c * 64, batch, bar);
                    load_bytes_both(stage + S_T, mats + (tile + c) * 8192, 8192, bar);
                } else {
                    load_box_both(stage + S_Q, &tm_q, 0, hq, c * 64, batch, bar);
                    load_box_both(stage + S_Q + 8192, &tm_q, 64, hq, c * 64, batch, bar);
                    load_bytes_both(stage + S_P, mats + (tile + c) * 8192 + 4096, 8192, bar);
                }
                load_box(stage + S_V, &tm_v, half * 64, hv, c * 64, batch, bar);
                load_bytes(base + S_GATES + s * 512, gates + (tile + c) * 128, 512, bar);
                if (++s == STAGES) {
                    s = 0;
                    parity ^= 1;
                }
            }
        }
    } else if (warp > 4) {
        // A thread writes 16 bytes of every fourth token. The first buffer of all holds nothing.
        const int w = tid - 160, piece = w & 15, row0 = w >> 4;
        float *to = output + ((size_t)batch * T * HV + hv) * 128 + half * 64 + piece * 4;
        named_arrive(3);
        named_arrive(4);
        for (int m = 0; m <= chunks; ++m) {
            const unsigned b = (unsigned)(m & 1);
            const unsigned buffer = base + S_OUT + b * 16384u + (unsigned)((piece >> 3) * 8192);
            named_sync(1 + b);
            float y[64];
#pragma unroll
            for (int i = 0; i < 16; ++i) {
                const int row = 4 * i + row0;
                asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(y[4 * i]), "=f"(y[4 * i + 1]), "=f"(y[4 * i + 2]), "=f"(y[4 * i + 3])
                             : "r"(buffer + (unsigned)(row * 128 + (((piece & 7) ^ (row & 7)) << 4)))
                             : "memory");
            }
            if (m + 2 <= chunks)
                named_arrive(3 + b);
            if (m > 0) {
#pragma unroll
                for (int i = 0; i < 16; ++i) {
                    const int token = (m - 1) * 64 + 4 * i + row0;
                    if (token < T)
                        asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + (size_t)token * HV * 128), "f"(y[4 * i]),
                                     "f"(y[4 * i + 1]), "f"(y[4 * i + 2]), "f"(y[4 * i + 3])
                                     : "memory");
                }
            }
            __syncwarp();
        }
    } else {
        // Four warps, 16 columns of values each. Accumulators: a lane holds the columns quad and quad + 8 of them,
        // and of each 8 keys (or tokens) the two from q2 on.
        const int quad = lane >> 2, q2 = (lane & 3) * 2;
        const size_t state_at = ((size_t)batch * HV + hv) * 16384 + (size_t)q2 * 128 + half * 64 + warp * 16 + quad;

        float state[64];
        {
            const float *from = initial_state + state_at;
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                state[4 * j] = from[j * 1024];
                state[4 * j + 1] = from[j * 1024 + 128];
                state[4 * j + 2] = from[j * 1024 + 8];
                state[4 * j + 3] = from[j * 1024 + 136];
            }
        }
        unsigned sb[32]; // the state as an operand
#pragma unroll
        for (int i = 0; i < 32; ++i)
            sb[i] = pack_bf16(state[2 * i], state[2 * i + 1]);

        unsigned out_offset[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int row = q2 + (e & 1), piece = 4 * (warp & 1) + (lane >> 4) + 2 * (e >> 1);
            out_offset[e] = (unsigned)((warp >> 1) * 8192 + row * 128 + ((piece ^ row) << 4) + (quad & 3) * 4);
        }
        const unsigned v_offset = (unsigned)(S_V + ((lane >> 4) * 8 + (lane & 7)) * 128 + (((2 * warp + ((lane >> 3) & 1)) ^ (lane & 7)) << 4));

        float x[32], o[32];
#pragma unroll
        for (int i = 0; i < 32; ++i)
            x[i] = o[i] = 0.0f;

        int s = 0;
        unsigned parity = 0;
        for (int c = 0; c < chunks; ++c) {
            const unsigned stage = base + s * STAGE_BYTES, gate = base + S_GATES + s * 512;
            const unsigned long long dk = descriptor(stage, 16), dq = descriptor(stage + S_Q, 16);
            const unsigned long long dt = descriptor(stage + S_T, 16), dp = descriptor(stage + S_P, 16);
            const unsigned long long dk_columns = descriptor(stage, 8192);
            barrier_wait(full + 8 * s, parity);
            __syncwarp();

            // X^T = S^T K^T.
            hold(sb);
            hold(x);
            mma_fence();
#pragma unroll
            for (int i = 0; i < 8; ++i)
                mma_register_n64(x, sb[4 * i], sb[4 * i + 1], sb[4 * i + 2], sb[4 * i + 3], dk + (unsigned long long)((i >> 2) * 512 + (i & 3) * 2), i != 0);
            mma_commit();

            unsigned v[16];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(v[4 * j]), "=r"(v[4 * j + 1]), "=r"(v[4 * j + 2]), "=r"(v[4 * j + 3])
                             : "r"(stage + v_offset + j * 2048)
                             : "memory");
            float eg[16];
#pragma unroll
            for (int j = 0; j < 8; ++j)
                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(eg[2 * j]), "=f"(eg[2 * j + 1]) : "r"(gate + (8 * j + q2) * 4) : "memory");

            // Meanwhile the output of the chunk before goes to the warps that write it.
            const unsigned b = (unsigned)(c & 1);
            named_sync(3 + b);
            put_output(o, base + S_OUT + b * 16384u, out_offset);
            named_arrive(1 + b);

            // O^T = S^T Q^T, its first half; the tensor cores have it while R is computed.
            hold(o);
            mma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                mma_register_n64(o, sb[4 * i], sb[4 * i + 1], sb[4 * i + 2], sb[4 * i + 3], dq + (unsigned long long)(i * 2), i != 0);
            mma_commit();

            mma_wait<1>();
            hold(x);

            // R^T = V^T - exp(G) X^T.
            unsigned ub[16];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const float r0 = __uint_as_float(v[2 * j] << 16) - eg[2 * j] * x[4 * j];
                const float r1 = __uint_as_float(v[2 * j] & 0xffff0000u) - eg[2 * j + 1] * x[4 * j + 1];
                const float r2 = __uint_as_float(v[2 * j + 1] << 16) - eg[2 * j] * x[4 * j + 2];
                const float r3 = __uint_as_float(v[2 * j + 1] & 0xffff0000u) - eg[2 * j + 1] * x[4 * j + 3];
                ub[2 * j] = pack_bf16(r0, r1);
                ub[2 * j + 1] = pack_bf16(r2, r3);
            }

            // U^T = R^T ((I + A)^-1 diag(beta))^T, then the second half of S^T Q^T.
            hold(ub);
            hold(x);
            mma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                mma_register_n64(x, ub[4 * i], ub[4 * i + 1], ub[4 * i + 2], ub[4 * i + 3], dt + (unsigned long long)(i * 2), i != 0);
            mma_commit();
#pragma unroll
            for (int i = 4; i < 8; ++i)
                mma_register_n64(o, sb[4 * i], sb[4 * i + 1], sb[4 * i + 2], sb[4 * i + 3], dq + (unsigned long long)(512 + (i - 4) * 2), 1);
            mma_commit();

            // Meanwhile what the chunk starts from is scaled.
            float decay, ed[16];
            asm volatile("ld.shared.f32 %0, [%1];" : "=f"(decay) : "r"(gate + 63 * 4) : "memory");
#pragma unroll
            for (int j = 0; j < 8; ++j)
                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(ed[2 * j]), "=f"(ed[2 * j + 1]) : "r"(gate + 256 + (8 * j + q2) * 4) : "memory");
#pragma unroll
            for (int i = 0; i < 64; ++i)
                state[i] *= decay;
            hold(state);
            mma_wait<1>();
            hold(x);
            hold(ub);

            unsigned ud[16]; // the updates as the end of the chunk sees them
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                ud[2 * j] = pack_bf16(x[4 * j] * ed[2 * j], x[4 * j + 1] * ed[2 * j + 1]);
                ud[2 * j + 1] = pack_bf16(x[4 * j + 2] * ed[2 * j], x[4 * j + 3] * ed[2 * j + 1]);
                ub[2 * j] = pack_bf16(x[4 * j], x[4 * j + 1]);
                ub[2 * j + 1] = pack_bf16(x[4 * j + 2], x[4 * j + 3]);
            }

            // S^T += (U exp(G_63 - G))^T K.
            hold(ud);
            hold(ub);
            hold(state);
            mma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                mma_register_n128(state, ud[4 * i], ud[4 * i + 1], ud[4 * i + 2], ud[4 * i + 3], dk_columns + (unsigned long long)(i * 128), 1);
            mma_commit();

            // O^T = scale exp(G) O^T + U^T P^T.
            float es[16];
#pragma unroll
            for (int j = 0; j < 8; ++j)
                asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(es[2 * j]), "=f"(es[2 * j + 1]) : "r"(gate + (8 * j + q2) * 4) : "memory");
            mma_wait<1>();
            hold(sb);
            hold(o);
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const float f0 = es[2 * j] * scale, f1 = es[2 * j + 1] * scale;
                o[4 * j] *= f0;
                o[4 * j + 1] *= f1;
                o[4 * j + 2] *= f0;
                o[4 * j + 3] *= f1;
            }
            hold(o);
            mma_fence();
#pragma unroll
            for (int i = 0; i < 4; ++i)
                mma_register_n64(o, ub[4 * i], ub[4 * i + 1], ub[4 * i + 2], ub[4 * i + 3], dp + (unsigned long long)(i * 2), 1);
            mma_commit();

            mma_wait<1>();
            hold(ud);
            hold(state);
#pragma unroll
            for (int i = 0; i < 32; ++i)
                sb[i] = pack_bf16(state[2 * i], state[2 * i + 1]);
            hold(sb);
            mma_wait<0>();
            hold(o);
            hold(ub);

            __syncwarp();
            if (lane < 2)
                barrier_arrive_at(empty + 8 * s, (unsigned)lane);
            if (++s == STAGES) {
                s = 0;
                parity ^= 1;
            }
            __syncwarp();
        }

        {
            const unsigned b = (unsigned)(chunks & 1);
            named_sync(3 + b);
            put_output(o, base + S_OUT + b * 16384u, out_offset);
            named_arrive(1 + b);
        }
        {
            float *to = final_state + state_at;
#pragma unroll
            for (int j = 0; j < 16; ++j) {
                to[j * 1024] = state[4 * j];
                to[j * 1024 + 128] = state[4 * j + 1];
                to[j * 1024 + 8] = state[4 * j + 2];
                to[j * 1024 + 136] = state[4 * j + 3];
            }
        }
    }

    // No block leaves while the other may still reach its shared memory.
    __syncwarp();
    cluster_sync();
}
