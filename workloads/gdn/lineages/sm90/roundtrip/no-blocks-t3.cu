/*klineage
surface = "cuda"

[[workspace]]
name = "solution"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64) * 4096"]
init = "poison"

[[workspace]]
name = "scores"
dtype = "bf16"
shape = ["B * HV * ceil_div(T, 64) * 4096"]
init = "poison"

[[workspace]]
name = "factors"
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
l2_promotion = "256B"

[[tensormap]]
name = "tm_out"
tensor = "output"
box = [1, 64, 1, 16]
swizzle = "64B"

[[launch]]
kernel = "prepare_chunks"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
shared = "53264"
args = ["tm_q", "tm_k", "g", "beta", "solution", "scores", "factors", "int T", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "walk_chunks"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "192512"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_out", "solution", "scores", "factors", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. With G the sums of the log gates within a chunk and S the state before it:
//   (I + L) U = diag(b) (V - diag(exp G) K S),   L[t][s] = b[t] exp(G[t] - G[s]) k[t] . k[s]   for s < t
//   out[t]    = scale (exp(G[t]) q[t] S + sum over s <= t of exp(G[t] - G[s]) (q[t] . k[s]) U[s])
//   S         = exp(G[63]) S + sum over s of exp(G[63] - G[s]) k[s] U[s]^T
// prepare_chunks: solution = (I + L)^-1 diag(b), scores = scale exp(G[t] - G[s]) q[t] . k[s], factors = exp(G), exp(G[63] - G).
// Both matrices are kept as tiles of 64 rows of 128 bytes, 16-byte chunk c of row r at c ^ (r % 8), as wgmma reads them.
// walk_chunks: a block owns 64 columns of one head's state.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int PITCH = 68;
constexpr int STAGES = 3;
constexpr unsigned K_AT = 0, Q_AT = 16384, V_AT = 32768, SOLUTION_AT = 40960, SCORES_AT = 49152, FACTORS_AT = 57344;
constexpr unsigned STAGE_BYTES = 58368, STAGE_FILLED = 57344 + 512;
constexpr unsigned long long ALONG = 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;              // rows are columns of the result
constexpr unsigned long long ACROSS = (8192ull >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;   // rows are summed over

__device__ __forceinline__ unsigned sharedAddress(const void *pointer)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void initBarrier(unsigned barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(count) : "memory");
}

__device__ __forceinline__ void expectBytes(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}

__device__ __forceinline__ void waitPhase(unsigned barrier, unsigned parity)
{
    unsigned done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap &map, int column, int head, int token, int batch, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2];"
                 :: "r"(to), "l"(reinterpret_cast<unsigned long long>(&map)), "r"(barrier), "r"(column), "r"(head), "r"(token), "r"(batch)
                 : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap &map, unsigned from, int column, int head, int token, int batch)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];"
                 :: "l"(reinterpret_cast<unsigned long long>(&map)), "r"(from), "r"(column), "r"(head), "r"(token), "r"(batch)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void copyBytes(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(static_cast<unsigned long long>(__cvta_generic_to_global(from))), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ float exp2Fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    unsigned r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ unsigned tf32(float x)
{
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return r;
}

__device__ __forceinline__ void loadMatrices(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void loadTransposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void storeShared(unsigned address, float x)
{
    asm volatile("st.shared.f32 [%0], %1;" :: "r"(address), "f"(x) : "memory");
}

__device__ __forceinline__ void storeShared(unsigned address, unsigned x)
{
    asm volatile("st.shared.b32 [%0], %1;" :: "r"(address), "r"(x) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---------------------------------------------------------------------------------------------------------------------
// What needs no state.

// Chunk of 16 bytes in a tile of 64 tokens of 128 bf16: two boxes of 64 columns, swizzled.
__device__ __forceinline__ unsigned place(int row, int chunk)
{
    return chunk / 8 * 8192 + row * 128 + ((chunk % 8) ^ (row % 8)) * 16;
}

// Inverts the four 16 x 16 blocks of the diagonal, a thread a column; threads 0 to 63.
__device__ __forceinline__ void invertDiagonal(float *m, int thread)
{
    const int first = thread / 16 * 16, column = thread % 16;
    float *block = m + first * PITCH + first;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float even = i == column ? 1.0f : 0.0f, odd = 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(block + i * PITCH + k);
            even -= row.x * x[k];
            if (k + 1 < i)
                odd -= row.y * x[k + 1];
            if (k + 2 < i)
                even -= row.z * x[k + 2];
            if (k + 3 < i)
                odd -= row.w * x[k + 3];
        }
        x[i] = even + odd;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        block[i * PITCH + column] = x[i];
}

// [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1]: 16 x 16 of the new B, whose blocks have H rows; C and A are inverted already.
template <int H>
__device__ __forceinline__ void mergeBlocks(float (&result)[2][4], const float *m, int first, int row0, int col0, int lane)
{
    const int g = lane / 4, c = lane % 4;
    const float *cInverse = m + (first + H + row0 + g) * PITCH + first + H + c;
    const float *b = m + (first + H + c) * PITCH + first + g;
    const float *aInverse = m + (first + 2 * c) * PITCH + first + col0 + g;
    unsigned left[H / 8][4];
#pragma unroll
    for (int k = 0; k < H / 8; ++k)
        if (8 * k < row0 + 16) {
            left[k][0] = tf32(cInverse[8 * k]);
            left[k][1] = tf32(cInverse[8 * PITCH + 8 * k]);
            left[k][2] = tf32(cInverse[8 * k + 4]);
            left[k][3] = tf32(cInverse[8 * PITCH + 8 * k + 4]);
        } else {
            left[k][0] = left[k][1] = left[k][2] = left[k][3] = 0;
        }
#pragma unroll
    for (int j = 0; j < H / 8; ++j)
        if (8 * j >= col0) {
            float d[4] = {};
#pragma unroll
            for (int k = 0; k < H / 8; ++k)
                if (8 * k < row0 + 16)
                    multiplyTf32(d, left[k], tf32(b[8 * k * PITCH + 8 * j]), tf32(b[(8 * k + 4) * PITCH + 8 * j]));
            const unsigned a[4] = {tf32(-d[0]), tf32(-d[2]), tf32(-d[1]), tf32(-d[3])};
#pragma unroll
            for (int n = 0; n < 2; ++n)
                multiplyTf32(result[n], a, tf32(aInverse[8 * j * PITCH + 8 * n]), tf32(aInverse[(8 * j + 1) * PITCH + 8 * n]));
        }
}

__device__ __forceinline__ void storeBlock(float *m, const float (&result)[2][4], int row, int column, int lane)
{
    float *to = m + (row + lane / 4) * PITCH + column + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < 2; ++n) {
        *reinterpret_cast<float2 *>(to + 8 * n) = make_float2(result[n][0], result[n][1]);
        *reinterpret_cast<float2 *>(to + 8 * PITCH + 8 * n) = make_float2(result[n][2], result[n][3]);
    }
}

// A warp a member: sums of log2 of the gates, and beta, to shared memory; the factors to memory.
__device__ __forceinline__ void prepareFactors(float *sums, float *betas, float *factors, const float *g, const float *beta,
                                               size_t row, int left, int HV, int head, int lane)
{
    const size_t at = (row + 2 * lane) * HV + head;
    float g0 = 0.0f, g1 = 0.0f, b0 = 0.0f, b1 = 0.0f;
    if (2 * lane < left) {
        g0 = g[at];
        b0 = beta[at];
    }
    if (2 * lane + 1 < left) {
        g1 = g[at + HV];
        b1 = beta[at + HV];
    }
    g0 *= 1.4426950408889634f;
    g1 = g0 + g1 * 1.4426950408889634f;
    float sum = g1;
#pragma unroll
    for (int o = 1; o < 32; o *= 2) {
        const float up = __shfl_up_sync(~0u, sum, o);
        if (lane >= o)
            sum += up;
    }
    float before = __shfl_up_sync(~0u, sum, 1);
    if (lane == 0)
        before = 0.0f;
    const float last = __shfl_sync(~0u, sum, 31);
    const float sum0 = before + g0;
    *reinterpret_cast<float2 *>(sums + 2 * lane) = make_float2(sum0, sum);
    *reinterpret_cast<float2 *>(betas + 2 * lane) = make_float2(b0, b1);
    *reinterpret_cast<float2 *>(factors + 2 * lane) = make_float2(exp2Fast(sum0), exp2Fast(sum));
    *reinterpret_cast<float2 *>(factors + 64 + 2 * lane) = make_float2(exp2Fast(last - sum0), exp2Fast(last - sum));
}

extern "C" __global__ void __launch_bounds__(128, 4)
prepare_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const float *g, const float *beta,
               unsigned char *solution, unsigned char *scores, float *factors, int T, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int gr = lane / 4, c = lane % 4;
    const int group = blockIdx.x, chunk = blockIdx.y, batch = blockIdx.z, chunks = gridDim.y;
    const int ratio = HV / static_cast<int>(gridDim.x);
    const int left = T - chunk * 64;
    const size_t row0 = static_cast<size_t>(batch) * T + static_cast<size_t>(chunk) * 64;

    const unsigned dynamic = sharedAddress(dynamicShared);
    const unsigned ks = (dynamic + 1023) & ~1023u, qs = ks + 16384;
    unsigned char *staged = dynamicShared + (ks - dynamic);
    float *m = reinterpret_cast<float *>(staged + 32768);        // 64 x PITCH: 17408 bytes
    float *sums = reinterpret_cast<float *>(staged + 50176);     // 4 x 64
    float *betas = reinterpret_cast<float *>(staged + 51200);    // 4 x 64
    const unsigned barrier = ks + 52224;

    if (thread == 0) {
        initBarrier(barrier, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        expectBytes(barrier, 32768);
        copyBox(ks, mapK, 0, group, chunk * 64, batch, barrier);
        copyBox(qs, mapQ, 0, group, chunk * 64, batch, barrier);
        copyBox(ks + 8192, mapK, 64, group, chunk * 64, batch, barrier);
        copyBox(qs + 8192, mapQ, 64, group, chunk * 64, batch, barrier);
    }
    __syncthreads();

    if (warp < ratio) {
        const int head = group * ratio + warp;
        const size_t tile = (static_cast<size_t>(batch) * HV + head) * chunks + chunk;
        prepareFactors(sums + warp * 64, betas + warp * 64, factors + tile * 128, g, beta, row0, left, HV, head, lane);
    }
    waitPhase(barrier, 0);

    // Row warp of the blocks of K K^T, and row 3 - warp of those of Q K^T, up to the diagonal.
    float blocks[5][2][4] = {};
#pragma unroll 2
    for (int step = 0; step < 8; ++step) {
        unsigned a[4], other[4], right[4];
        loadMatrices(a, ks + place(warp * 16 + lane % 16, 2 * step + lane / 16));
        loadMatrices(other, qs + place((3 - warp) * 16 + lane % 16, 2 * step + lane / 16));
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const int n = b <= warp ? b : b - warp - 1;
            loadMatrices(right, ks + place(n * 16 + lane / 16 * 8 + lane % 8, 2 * step + lane / 8 % 2));
            if (b <= warp) {
                multiply(blocks[b][0], a, right[0], right[1]);
                multiply(blocks[b][1], a, right[2], right[3]);
            } else {
                multiply(blocks[b][0], other, right[0], right[1]);
                multiply(blocks[b][1], other, right[2], right[3]);
            }
        }
    }
    __syncthreads();                                             // the tiles become room for the scores

    for (int i = 0; i < ratio; ++i) {
        if (i > 0 && i % 4 == 0) {
            if (i + warp < ratio) {
                const int head = group * ratio + i + warp;
                const size_t tile = (static_cast<size_t>(batch) * HV + head) * chunks + chunk;
                prepareFactors(sums + warp * 64, betas + warp * 64, factors + tile * 128, g, beta, row0, left, HV, head, lane);
            }
            __syncthreads();
        }
        const float *sum = sums + i % 4 * 64, *bet = betas + i % 4 * 64;
        const size_t tile = (static_cast<size_t>(batch) * HV + group * ratio + i) * chunks + chunk;

        const int rowL = warp * 16 + gr, rowS = (3 - warp) * 16 + gr;
        const float sumL0 = sum[rowL], sumL1 = sum[rowL + 8], sumS0 = sum[rowS], sumS1 = sum[rowS + 8];
        const float betaL0 = bet[rowL], betaL1 = bet[rowL + 8];
#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const bool system = b <= warp;
            const int n = system ? b : b - warp - 1, row = system ? rowL : rowS, end = system ? rowL : rowS + 1;
            const float r0 = system ? sumL0 : sumS0, r1 = system ? sumL1 : sumS1;
            const float f0 = system ? betaL0 : scale, f1 = system ? betaL1 : scale;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int column = n * 16 + j * 8 + 2 * c;
                const float2 s = *reinterpret_cast<const float2 *>(sum + column);
                const float v0 = column < end ? f0 * exp2Fast(r0 - s.x) * blocks[b][j][0] : 0.0f;
                const float v1 = column + 1 < end ? f0 * exp2Fast(r0 - s.y) * blocks[b][j][1] : 0.0f;
                const float v2 = column < end + 8 ? f1 * exp2Fast(r1 - s.x) * blocks[b][j][2] : 0.0f;
                const float v3 = column + 1 < end + 8 ? f1 * exp2Fast(r1 - s.y) * blocks[b][j][3] : 0.0f;
                if (system) {
                    *reinterpret_cast<float2 *>(m + row * PITCH + column) = make_float2(v0, v1);
                    *reinterpret_cast<float2 *>(m + (row + 8) * PITCH + column) = make_float2(v2, v3);
                } else {
                    const unsigned to = ks + row * 128 + ((2 * n + j) ^ (row % 8)) * 16 + c * 4;
                    storeShared(to, pack(v0, v1));
                    storeShared(to + 1024, pack(v2, v3));
                }
            }
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(m, thread);
            __syncwarp();
            float block[2][4] = {};
            mergeBlocks<16>(block, m, warp * 32, 0, 0, lane);
            __syncwarp();
            storeBlock(m, block, warp * 32 + 16, warp * 32, lane);
        } else {
            unsigned char *to = scores + tile * 8192;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int at = thread - 64 + 64 * j, row = at / 8, part = (at % 8) ^ (row % 8);
                uint4 value = make_uint4(0, 0, 0, 0);
                if (part / 2 <= row / 16)
                    value = *reinterpret_cast<const uint4 *>(staged + at * 16);
                *reinterpret_cast<uint4 *>(to + at * 16) = value;
            }
        }
        __syncthreads();

        float block[2][4] = {};
        mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16, lane);
        __syncthreads();
        storeBlock(m, block, 32 + warp / 2 * 16, warp % 2 * 16, lane);
        __syncthreads();

        unsigned char *to = solution + tile * 8192;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int at = thread + 128 * j, row = at / 8, part = at % 8;
            uint4 value = make_uint4(0, 0, 0, 0);
            if (part / 2 <= row / 16) {
                const float4 x = *reinterpret_cast<const float4 *>(m + row * PITCH + part * 8);
                const float4 y = *reinterpret_cast<const float4 *>(m + row * PITCH + part * 8 + 4);
                const float4 p = *reinterpret_cast<const float4 *>(bet + part * 8);
                const float4 q = *reinterpret_cast<const float4 *>(bet + part * 8 + 4);
                value.x = pack(x.x * p.x, x.y * p.y);
                value.y = pack(x.z * p.z, x.w * p.w);
                value.z = pack(y.x * q.x, y.y * q.y);
                value.w = pack(y.z * q.z, y.w * q.w);
            }
            *reinterpret_cast<uint4 *>(to + row * 128 + (part ^ (row % 8)) * 16) = value;
        }
        __syncthreads();                                         // the next member takes the room
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// What touches the state.

template <int N>
__device__ __forceinline__ void hold(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(x[i]) :: "memory");
}

template <int N>
__device__ __forceinline__ void hold(unsigned (&x)[N][4])
{
#pragma unroll
    for (int i = 0; i < N; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
            asm volatile("" : "+r"(x[i][j]) :: "memory");
}

__device__ __forceinline__ void fenceProducts()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ __forceinline__ void commitProducts()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int N>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(N) : "memory");
}

#define SUMS8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(d, i) SUMS8(d, i), SUMS8(d, i + 8), SUMS8(d, i + 16), SUMS8(d, i + 24)

// d (64 x 64) = or += a (64 x 16) b^T: the rows of b are the columns of d.
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
        "}, {%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate)
        : "memory");
}

// d (64 x 128) += a (64 x 16) b: the rows of b are summed over.
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(d, 0), SUMS32(d, 32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1)
        : "memory");
}

// A warp's 16 columns of 64 tokens: to its box, transposed, without bank conflicts, and from there to memory.
__device__ __forceinline__ void storeOutput(const float (&out)[32], const unsigned (&at)[2][2], bool odd, const TensorMap &map, unsigned box,
                                            int column, int head, int token, int batch, bool issue)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    __syncwarp();
#pragma unroll
    for (int n = 0; n < 8; ++n)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float x = out[4 * n + 2 * h], y = out[4 * n + 2 * h + 1];
            storeShared(at[0][h] + n * 512, odd ? y : x);
            storeShared(at[1][h] + n * 512, odd ? x : y);
        }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (issue)
        storeBox(map, box, column, head, token, batch);
}

extern "C" __global__ void __launch_bounds__(160, 1)
walk_chunks(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK, const __grid_constant__ TensorMap mapV,
            const __grid_constant__ TensorMap mapOut, const unsigned char *solution, const unsigned char *scores, const float *factors,
            const float *initialState, float *finalState, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ alignas(8) unsigned long long barriers[2 * STAGES];

    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int columns = blockIdx.x * 64, head = blockIdx.y, batch = blockIdx.z;
    const int chunks = (T + 63) / 64;

    const unsigned dynamic = sharedAddress(dynamicShared);
    const unsigned ring = (dynamic + 1023) & ~1023u;
    const unsigned char *ringPointer = dynamicShared + (ring - dynamic);
    const unsigned full = sharedAddress(barriers), empty = full + 8 * STAGES;

    if (thread == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            initBarrier(full + 8 * stage, 1);
            initBarrier(empty + 8 * stage, 4);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp == 4) {
        if (lane == 0) {
            const int headQ = head / (HV / HQ);
            const size_t firstTile = (static_cast<size_t>(batch) * HV + head) * chunks;
            const auto copyInputs = [&](int chunk, unsigned to, unsigned barrier) {
                copyBox(to + K_AT, mapK, 0, headQ, chunk * 64, batch, barrier);
                copyBox(to + K_AT + 8192, mapK, 64, headQ, chunk * 64, batch, barrier);
                copyBox(to + Q_AT, mapQ, 0, headQ, chunk * 64, batch, barrier);
                copyBox(to + Q_AT + 8192, mapQ, 64, headQ, chunk * 64, batch, barrier);
                copyBox(to + V_AT, mapV, columns, head, chunk * 64, batch, barrier);
            };
            const auto copyPrepared = [&](int chunk, unsigned to, unsigned barrier) {
                const size_t tile = firstTile + chunk;
                copyBytes(to + FACTORS_AT, factors + tile * 128, 512, barrier);
                copyBytes(to + SOLUTION_AT, solution + tile * 8192, 8192, barrier);
                copyBytes(to + SCORES_AT, scores + tile * 8192, 8192, barrier);
            };
            const int ahead = chunks < STAGES ? chunks : STAGES;
            for (int chunk = 0; chunk < ahead; ++chunk) {
                expectBytes(full + 8 * chunk, STAGE_FILLED);
                copyInputs(chunk, ring + chunk * STAGE_BYTES, full + 8 * chunk);
            }
            asm volatile("griddepcontrol.wait;" ::: "memory");   // what the first launch wrote is visible from here on
            asm volatile("fence.proxy.async;" ::: "memory");
            for (int chunk = 0; chunk < ahead; ++chunk)
                copyPrepared(chunk, ring + chunk * STAGE_BYTES, full + 8 * chunk);
            int stage = 0;
            unsigned parity = 0;
            for (int chunk = STAGES; chunk < chunks; ++chunk) {
                waitPhase(empty + 8 * stage, parity);
                expectBytes(full + 8 * stage, STAGE_FILLED);
                copyInputs(chunk, ring + stage * STAGE_BYTES, full + 8 * stage);
                copyPrepared(chunk, ring + stage * STAGE_BYTES, full + 8 * stage);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    // The warpgroup: number i of a thread's state is at column lane / 4 + i % 4 / 2 * 8 of its warp's 16, key i / 4 * 8 + lane % 4 * 2 + i % 2.
    const int gr = lane / 4, c = lane % 4;
    const size_t stateAt = ((static_cast<size_t>(batch) * HV + head) * 128 + 2 * c) * 128 + columns + warp * 16 + gr;
    float state[64];
    {
        const float *from = initialState + stateAt;
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] = from[(i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8];
    }

    const unsigned box = ring + STAGES * STAGE_BYTES + warp * 4096;
    unsigned at[2][2];
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int h = 0; h < 2; ++h)
            at[i][h] = box + (2 * c + (i ^ (c & 1))) * 64 + (((2 * h + lane / 16) ^ c) * 16) + gr % 4 * 4;
    const bool odd = c & 1;
    const unsigned valuesAt = V_AT + (lane / 16 * 8 + lane % 8) * 128 + (((2 * warp + lane / 8 % 2) ^ (lane % 8)) * 16);

    unsigned left[8][4], rest[4][4], update[4][4];
    float next[32], out[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        next[i] = 0.0f;
        out[i] = 0.0f;
    }

    int stage = 0;
    unsigned parity = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned base = ring + stage * STAGE_BYTES;
        const float *gates = reinterpret_cast<const float *>(ringPointer + stage * STAGE_BYTES + FACTORS_AT) + 2 * c;
        const unsigned tiles = __shfl_sync(~0u, (base & 0x3ffff) >> 4, 0);
        waitPhase(full + 8 * stage, parity);

        // next = S^T K^T
        hold(left);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(next, left[step], ALONG + (tiles + (K_AT + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // The outputs of the chunk before, in the shadow.
        storeOutput(out, at, odd, mapOut, box, columns + warp * 16, head, (chunk - 1) * 64, batch, lane == 0 && chunk > 0);

        // out = S^T Q^T
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (Q_AT + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
        float2 decay[8];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadTransposed(values[n], base + valuesAt + n * 2048);
#pragma unroll
        for (int n = 0; n < 8; ++n)
            decay[n] = *reinterpret_cast<const float2 *>(gates + 8 * n);

        waitProducts<1>();
        hold(next);
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 e = decay[2 * n + j / 2];
                const float low = __uint_as_float(values[n][j] << 16), high = __uint_as_float(values[n][j] & 0xffff0000u);
                rest[n][j] = pack(low - e.x * next[8 * n + 2 * j], high - e.y * next[8 * n + 2 * j + 1]);
            }

        // next = rest solution^T: the updates
        hold(rest);
        hold(next);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(next, rest[step], ALONG + (tiles + (SOLUTION_AT + step * 32) / 16), step > 0);
        commitProducts();

        const float whole = gates[63 - 2 * c];
        float2 remaining[8];
#pragma unroll
        for (int n = 0; n < 8; ++n)
            remaining[n] = *reinterpret_cast<const float2 *>(gates + 64 + 8 * n);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= whole;

        waitProducts<0>();
        hold(left);
        hold(out);
        hold(next);
        hold(rest);

        // state = exp(G[63]) state + decayed updates K
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 e = remaining[2 * n + j / 2];
                update[n][j] = pack(e.x * next[8 * n + 2 * j], e.y * next[8 * n + 2 * j + 1]);
            }
        hold(update);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, update[step], ACROSS + (tiles + (K_AT + step * 2048) / 16));
        commitProducts();

        // out = scale exp(G) out + updates scores^T, in the shadow
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float2 e = decay[2 * n + j / 2];
                rest[n][j] = pack(next[8 * n + 2 * j], next[8 * n + 2 * j + 1]);
                out[8 * n + 2 * j] *= e.x * scale;
                out[8 * n + 2 * j + 1] *= e.y * scale;
            }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES_AT + step * 32) / 16), 1);
        commitProducts();

        waitProducts<1>();
        hold(state);
        hold(update);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);
        waitProducts<0>();
        hold(out);
        hold(rest);

        __syncwarp();
        if (lane == 0)
            arrive(empty + 8 * stage);
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }

    storeOutput(out, at, odd, mapOut, box, columns + warp * 16, head, (chunks - 1) * 64, batch, lane == 0);
    {
        float *to = finalState + stateAt;
#pragma unroll
        for (int i = 0; i < 64; ++i)
            to[(i / 4 * 8 + i % 2) * 128 + i % 4 / 2 * 8] = state[i];
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");    // shared memory goes away with the block
}
