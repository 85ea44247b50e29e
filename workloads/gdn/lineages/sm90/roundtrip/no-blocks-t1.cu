/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["B * HV * ceil_div(T, 64) * 4224"]
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
name = "tm_output"
tensor = "output"
box = [1, 64, 1, 32]
swizzle = "128B"

[[launch]]
kernel = "prepare"
grid = ["HQ", "ceil_div(T, 64)", "B"]
block = ["128"]
args = ["q", "k", "g", "beta", "parts", "int T", "int HQ", "int HV", "float rsqrt(D)"]

[[launch]]
kernel = "recur"
grid = ["2", "HV", "B"]
block = ["160"]
shared = "208896"
pdl = true
args = ["tm_q", "tm_k", "tm_v", "tm_output", "parts", "initial_state", "final_state", "int T", "int HQ", "int HV", "float rsqrt(D)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gated delta rule in chunks of 64 tokens. The first launch prepares what needs no state: for each chunk and value
// head the solution (I + L)^-1 diag(beta), the masked scores and the gate factors. The second walks from chunk to chunk
// with S^T in registers.

struct alignas(64) TensorMap { unsigned long long opaque[16]; };

constexpr int C = 64;                       // tokens a chunk
constexpr int PITCH = 68;                   // floats a row of the triangular system
constexpr int PART_BYTES = 16896;           // solution 8192, scores 8192, exp(G) 256, exp(Gend - G) 256

constexpr int STAGES = 3;
constexpr int K_AT = 0;
constexpr int Q_AT = 16384;
constexpr int V_AT = 32768;
constexpr int SOLUTION_AT = 40960;
constexpr int SCORES_AT = 49152;
constexpr int FACTORS_AT = 57344;
constexpr int STAGE_BYTES = 58368;          // a multiple of 1024
constexpr int LOADED_BYTES = 16384 + 16384 + 8192 + PART_BYTES;

// ---------------------------------------------------------------------------------------------------------------------
// Helpers

__device__ __forceinline__ unsigned sharedAddress(const void *p)
{
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
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

__device__ __forceinline__ void loadMatricesTransposed(unsigned (&r)[4], unsigned address)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void multiply(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void multiplyTf32(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// ---------------------------------------------------------------------------------------------------------------------
// The inverse of a lower triangular matrix with ones on its diagonal, in place

// The 16 x 16 blocks 2 * warp and 2 * warp + 1 of the diagonal, a lane a column.
__device__ __forceinline__ void invertDiagonal(float *m, int warp, int lane)
{
    const int first = warp * 32 + lane / 16 * 16, column = lane % 16;
    float *d = m + first * PITCH + first;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        float sum = i == column ? 1.0f : 0.0f;
#pragma unroll
        for (int k = 0; k < i; k += 4) {
            const float4 row = *reinterpret_cast<const float4 *>(d + i * PITCH + k);
            sum -= row.x * x[k];
            if (k + 1 < i)
                sum -= row.y * x[k + 1 < 16 ? k + 1 : 0];
            if (k + 2 < i)
                sum -= row.z * x[k + 2 < 16 ? k + 2 : 0];
            if (k + 3 < i)
                sum -= row.w * x[k + 3 < 16 ? k + 3 : 0];
        }
        x[i] = sum;
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 16; ++i)
        d[i * PITCH + column] = x[i];
    __syncwarp();
}

// block = 16 x 16 elements at (row, column) of -C^-1 B A^-1, where A, B and C are SIZE x SIZE and A begins at first.
template <int SIZE>
__device__ __forceinline__ void mergeBlocks(float (&block)[2][4], const float *m, int first, int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
    const float *lower = m + (first + SIZE + row + g) * PITCH + first + SIZE + c;
    const float *between = m + (first + SIZE + c) * PITCH + first + g;
    const float *upper = m + (first + 2 * c) * PITCH + first + column + g;
    float product[SIZE / 8][4] = {};
#pragma unroll
    for (int k = 0; k < SIZE; k += 8) {
        if (k < row + 16) {
            const unsigned a[4] = {tf32(lower[k]), tf32(lower[8 * PITCH + k]), tf32(lower[k + 4]),
                                   tf32(lower[8 * PITCH + k + 4])};
#pragma unroll
            for (int n = 0; n < SIZE / 8; ++n)
                if (n * 8 >= column)
                    multiplyTf32(product[n], a, tf32(between[k * PITCH + n * 8]), tf32(between[(k + 4) * PITCH + n * 8]));
        }
    }
#pragma unroll
    for (int n = 0; n < SIZE / 8; ++n) {
        if (n * 8 >= column) {
            const unsigned a[4] = {tf32(-product[n][0]), tf32(-product[n][2]), tf32(-product[n][1]), tf32(-product[n][3])};
#pragma unroll
            for (int h = 0; h < 2; ++h)
                multiplyTf32(block[h], a, tf32(upper[n * 8 * PITCH + h * 8]), tf32(upper[(n * 8 + 1) * PITCH + h * 8]));
        }
    }
}

__device__ __forceinline__ void storeBlock(float *m, const float (&block)[2][4], int row, int column, int lane)
{
    const int g = lane / 4, c = lane % 4;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float *to = m + (row + g) * PITCH + column + h * 8 + 2 * c;
        *reinterpret_cast<float2 *>(to) = make_float2(block[h][0], block[h][1]);
        *reinterpret_cast<float2 *>(to + 8 * PITCH) = make_float2(block[h][2], block[h][3]);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Launch 1: a block per query head and chunk; it serves all value heads of the query head.

extern "C" __global__ void __launch_bounds__(128, 4)
prepare(const unsigned short *q, const unsigned short *k, const float *gates, const float *beta, unsigned char *parts,
        int T, int HQ, int HV, float scale)
{
    __shared__ __align__(128) unsigned char room[32768];   // K and Q at first; then the system and the staged scores
    __shared__ __align__(16) float sums[4][C];             // sums of the log gates, in units of log 2
    __shared__ __align__(16) float betas[4][C];

    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");

    const int group = blockIdx.x, chunk = blockIdx.y, batch = blockIdx.z, chunks = gridDim.y;
    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int g = lane / 4, c = lane % 4;
    const int ratio = HV / HQ, first = chunk * C;

    const unsigned ks = sharedAddress(room), qs = ks + 16384;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int j = thread + i * 128, row = j / 16, part = j % 16;
        const bool valid = first + row < T;
        const long long token = (long long)batch * T + (valid ? first + row : first);
        const long long from = (token * HQ + group) * 128 + part * 8;
        const unsigned to = row * 256 + (part ^ (row % 8)) * 16;
        const int bytes = valid ? 16 : 0;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(ks + to), "l"(k + from), "r"(bytes) : "memory");
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(qs + to), "l"(q + from), "r"(bytes) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");

    // The gates of four members at a time, a warp each.
    const auto prepareFactors = [&](int i) {
        if (i + warp < ratio) {
            const int member = group * ratio + i + warp;
            float gate[2], b[2];
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int token = first + 2 * lane + e;
                const bool valid = token < T;
                const long long at = ((long long)batch * T + (valid ? token : first)) * HV + member;
                gate[e] = valid ? gates[at] : 0.0f;
                b[e] = valid ? beta[at] : 0.0f;
            }
            float sum = gate[0] + gate[1];
#pragma unroll
            for (int step = 1; step < 32; step *= 2) {
                const float before = __shfl_up_sync(~0u, sum, step);
                if (lane >= step)
                    sum += before;
            }
            float before = __shfl_up_sync(~0u, sum, 1);
            if (lane == 0)
                before = 0.0f;
            const float log2e = 1.4426950408889634f;
            const float s0 = (before + gate[0]) * log2e, s1 = (before + gate[0] + gate[1]) * log2e;
            const float end = __shfl_sync(~0u, s1, 31);
            *reinterpret_cast<float2 *>(&sums[warp][2 * lane]) = make_float2(s0, s1);
            *reinterpret_cast<float2 *>(&betas[warp][2 * lane]) = make_float2(b[0], b[1]);
            float *factors = reinterpret_cast<float *>(
                parts + (((long long)batch * HV + member) * chunks + chunk) * PART_BYTES + 16384);
            *reinterpret_cast<float2 *>(factors + 2 * lane) = make_float2(exp2Fast(s0), exp2Fast(s1));
            *reinterpret_cast<float2 *>(factors + C + 2 * lane) = make_float2(exp2Fast(end - s0), exp2Fast(end - s1));
        }
    };
    prepareFactors(0);
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();

    // Row `warp` of the blocks of K K^T, and row 3 - warp of those of Q K^T, up to the diagonal.
    float blocks[5][2][4] = {};
    {
        const unsigned leftRow = ks + (warp * 16 + lane % 16) * 256;
        const unsigned otherRow = qs + ((3 - warp) * 16 + lane % 16) * 256;
        const unsigned rightRow = ks + (lane / 16 * 8 + lane % 8) * 256;
#pragma unroll 2
        for (int step = 0; step < 8; ++step) {
            unsigned left[4], other[4], right[4];
            const unsigned leftPart = ((2 * step + lane / 16) ^ (lane % 8)) * 16;
            const unsigned rightPart = ((2 * step + lane / 8 % 2) ^ (lane % 8)) * 16;
            loadMatrices(left, leftRow + leftPart);
            loadMatrices(other, otherRow + leftPart);
#pragma unroll
            for (int b = 0; b < 5; ++b) {
                const int n = b <= warp ? b : b - warp - 1;
                loadMatrices(right, rightRow + n * 4096 + rightPart);
                if (b <= warp) {
                    multiply(blocks[b][0], left, right[0], right[1]);
                    multiply(blocks[b][1], left, right[2], right[3]);
                } else {
                    multiply(blocks[b][0], other, right[0], right[1]);
                    multiply(blocks[b][1], other, right[2], right[3]);
                }
            }
        }
    }
    __syncthreads();

    // The tiles become room for the results. What lies above the diagonal stays zero for all members.
    float *system = reinterpret_cast<float *>(room);
    unsigned char *staged = room + C * PITCH * 4;
    for (int j = thread; j < (C * PITCH * 4 + 8192) / 16; j += 128)
        reinterpret_cast<uint4 *>(room)[j] = make_uint4(0, 0, 0, 0);
    __syncthreads();

#pragma unroll 1
    for (int i = 0; i < ratio; ++i) {
        if (i > 0 && i % 4 == 0) {
            prepareFactors(i);
            __syncthreads();
        }
        const int member = group * ratio + i;
        const float *sum = sums[i % 4], *b4 = betas[i % 4];
        unsigned char *to = parts + (((long long)batch * HV + member) * chunks + chunk) * PART_BYTES;

#pragma unroll
        for (int b = 0; b < 5; ++b) {
            const bool ofFirst = b <= warp;
            const int n = ofFirst ? b : b - warp - 1;
            const int top = (ofFirst ? warp : 3 - warp) * 16 + g;
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                const int column = n * 16 + j * 8 + 2 * c;
                const float2 there = *reinterpret_cast<const float2 *>(sum + column);
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const int row = top + 8 * r;
                    const float here = sum[row];
                    const int end = ofFirst ? row : row + 1;
                    const float x = column < end ? exp2Fast(here - there.x) * blocks[b][j][2 * r] : 0.0f;
                    const float y = column + 1 < end ? exp2Fast(here - there.y) * blocks[b][j][2 * r + 1] : 0.0f;
                    if (ofFirst) {
                        const float factor = b4[row];
                        *reinterpret_cast<float2 *>(system + row * PITCH + column) = make_float2(factor * x, factor * y);
                    } else {
                        *reinterpret_cast<unsigned *>(staged + row * 128 + ((2 * n + j) ^ g) * 16 + 4 * c) =
                            pack(scale * x, scale * y);
                    }
                }
            }
        }
        __syncthreads();

        if (warp < 2) {
            invertDiagonal(system, warp, lane);
            float block[2][4] = {};
            mergeBlocks<16>(block, system, warp * 32, 0, 0, lane);
            __syncwarp();
            storeBlock(system, block, warp * 32 + 16, warp * 32, lane);
        } else {
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const int at = thread - 64 + j * 64;
                reinterpret_cast<uint4 *>(to + 8192)[at] = reinterpret_cast<const uint4 *>(staged)[at];
            }
        }
        __syncthreads();

        {
            float block[2][4] = {};
            mergeBlocks<32>(block, system, 0, warp / 2 * 16, warp % 2 * 16, lane);
            __syncthreads();
            storeBlock(system, block, 32 + warp / 2 * 16, warp % 2 * 16, lane);
        }
        __syncthreads();

        // solution = inverse * diag(beta), in the layout of the 128-byte swizzle
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int at = thread + j * 128, row = at / 8, part = at % 8;
            const float4 *from = reinterpret_cast<const float4 *>(system + row * PITCH + part * 8);
            const float4 *by = reinterpret_cast<const float4 *>(b4 + part * 8);
            const float4 m0 = from[0], m1 = from[1], f0 = by[0], f1 = by[1];
            const uint4 packed = make_uint4(pack(m0.x * f0.x, m0.y * f0.y), pack(m0.z * f0.z, m0.w * f0.w),
                                            pack(m1.x * f1.x, m1.y * f1.y), pack(m1.z * f1.z, m1.w * f1.w));
            *reinterpret_cast<uint4 *>(to + row * 128 + (part ^ (row % 8)) * 16) = packed;
        }
        __syncthreads();
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Barriers, copies and wgmma

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

__device__ __forceinline__ void copyBox(unsigned to, const TensorMap *map, int x, int y, int z, int w, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :: "r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier) : "memory");
}

__device__ __forceinline__ void copyBulk(unsigned to, const void *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}

__device__ __forceinline__ void storeBox(const TensorMap *map, int x, int y, int z, int w, unsigned from)
{
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];"
                 :: "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(from) : "memory");
}

__device__ __forceinline__ float2 loadPair(unsigned address)
{
    float2 r;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(r.x), "=f"(r.y) : "r"(address) : "memory");
    return r;
}

__device__ __forceinline__ float loadOne(unsigned address)
{
    float r;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(r) : "r"(address) : "memory");
    return r;
}

__device__ __forceinline__ void fenceProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commitProducts() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void waitProducts()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}

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

#define SUMS8(d, i) \
    "+f"((d)[(i)]), "+f"((d)[(i) + 1]), "+f"((d)[(i) + 2]), "+f"((d)[(i) + 3]), \
    "+f"((d)[(i) + 4]), "+f"((d)[(i) + 5]), "+f"((d)[(i) + 6]), "+f"((d)[(i) + 7])
#define SUMS32(d, i) SUMS8(d, (i)), SUMS8(d, (i) + 8), SUMS8(d, (i) + 16), SUMS8(d, (i) + 24)

// Rows of the right operand are the columns of d (K-major), 128-byte swizzle.
constexpr unsigned long long ALONG = 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
// Rows of the right operand are summed over, 64 columns a row of 128 bytes, the next 64 columns 8192 bytes further.
constexpr unsigned long long ACROSS = (8192ull >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;

// d (64 x 64) = or += a (64 x 16) * b^T
__device__ __forceinline__ void multiplyAlong(float (&d)[32], const unsigned (&a)[4], unsigned long long b, int accumulate)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"
        "}"
        : SUMS32(d, 0)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

// d (64 x 128) += a (64 x 16) * b (16 x 128)
__device__ __forceinline__ void multiplyAcross(float (&d)[64], const unsigned (&a)[4], unsigned long long b)
{
    asm volatile(
        "{\n"
        ".reg .pred accumulate;\n"
        "setp.ne.b32 accumulate, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        " %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        " %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;\n"
        "}"
        : SUMS32(d, 0), SUMS32(d, 32)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));
}

// ---------------------------------------------------------------------------------------------------------------------
// Launch 2: a block per 64 columns of the state of a value head. Warps 0 to 3 compute, warp 4 asks for copies.

extern "C" __global__ void __launch_bounds__(160, 1)
recur(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
      const __grid_constant__ TensorMap mapV, const __grid_constant__ TensorMap mapOutput, const unsigned char *parts,
      const float *initialState, float *finalState, int T, int HQ, int HV, float scale)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];

    const int half = blockIdx.x, head = blockIdx.y, batch = blockIdx.z;
    const int thread = threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0);
    const int chunks = (T + C - 1) / C;

    const unsigned ring = (sharedAddress(dynamicShared) + 1023) & ~1023u;
    const unsigned boxes = ring + STAGES * STAGE_BYTES;
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
            const int query = head / (HV / HQ);
            const unsigned char *from = parts + ((long long)batch * HV + head) * chunks * PART_BYTES;
            int stage = 0;
            unsigned parity = 1;
            for (int chunk = 0; chunk < chunks; ++chunk) {
                const unsigned to = ring + stage * STAGE_BYTES, barrier = full + 8 * stage;
                waitPhase(empty + 8 * stage, parity);
                expectBytes(barrier, LOADED_BYTES);
                copyBox(to + K_AT, &mapK, 0, query, chunk * C, batch, barrier);
                copyBox(to + K_AT + 8192, &mapK, 64, query, chunk * C, batch, barrier);
                copyBox(to + V_AT, &mapV, half * 64, head, chunk * C, batch, barrier);
                copyBox(to + Q_AT, &mapQ, 0, query, chunk * C, batch, barrier);
                copyBox(to + Q_AT + 8192, &mapQ, 64, query, chunk * C, batch, barrier);
                if (chunk == 0) {
                    asm volatile("griddepcontrol.wait;" ::: "memory");   // the first launch has ended
                    asm volatile("fence.proxy.async;" ::: "memory");
                }
                copyBulk(to + SOLUTION_AT, from + (long long)chunk * PART_BYTES, PART_BYTES, barrier);
                if (++stage == STAGES) {
                    stage = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }

    const int g = lane / 4, c = lane % 4;
    // Number i of a fragment: row (a column of values) g + i % 4 / 2 * 8 of the warp's 16, column i / 4 * 8 + 2 * c + i % 2.
    const long long origin = ((long long)batch * HV + head) * 128 * 128 + half * 64 + warp * 16 + g;
    float state[64];                                       // S^T: 64 columns of values by 128 keys
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        const float *from = initialState + origin + (8 * j + 2 * c) * 128;
        state[4 * j] = from[0];
        state[4 * j + 1] = from[128];
        state[4 * j + 2] = from[8];
        state[4 * j + 3] = from[128 + 8];
    }
    unsigned left[8][4];
#pragma unroll
    for (int i = 0; i < 32; ++i)
        left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);

    float updates[32] = {};
    float out[32] = {};

    // Where this thread's outputs go in a pair of boxes of 64 tokens by 32 columns, 128-byte swizzle.
    unsigned place[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const int token = 2 * c + (e & 1);
        const int part = warp % 2 * 4 + (e >> 1) * 2 + g / 4;
        place[e] = boxes + warp / 2 * 8192 + token * 128 + (part ^ token) * 16 + g % 4 * 4;
    }
    const auto storeOutput = [&](int chunk) {
        const unsigned box = (chunk & 1) * 16384;
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const unsigned to = place[e] + box;
#pragma unroll
            for (int j = 0; j < 8; ++j)
                asm volatile("st.shared.f32 [%0], %1;" :: "r"(to + j * 1024), "f"(out[4 * j + e]) : "memory");
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        if (thread == 0)                                   // the other pair of boxes has been read: free for the next chunk
            asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        __syncwarp();
        asm volatile("bar.sync 1, 128;" ::: "memory");
        if (thread == 0) {
            storeBox(&mapOutput, half * 64, head, chunk * C, batch, boxes + box);
            storeBox(&mapOutput, half * 64 + 32, head, chunk * C, batch, boxes + box + 8192);
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
        __syncwarp();
    };

    const unsigned valuesAt = V_AT + (lane / 16 * 8 + lane % 8) * 128 + ((warp * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;

    int stage = 0;
    unsigned parity = 0;
    waitPhase(full, 0);
    __syncwarp();

#pragma unroll 1
    for (int chunk = 0; chunk < chunks; ++chunk) {
        const unsigned base = ring + stage * STAGE_BYTES;
        const unsigned tiles = __shfl_sync(~0u, (base & 0x3ffff) >> 4, 0);

        // updates = S^T K^T
        hold(left);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(updates, left[step], ALONG + (tiles + (K_AT + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        // in its shadow: the outputs of the chunk before leave
        if (chunk > 0)
            storeOutput(chunk - 1);

        // out = S^T Q^T
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 8; ++step)
            multiplyAlong(out, left[step], ALONG + (tiles + (Q_AT + step / 4 * 8192 + step % 4 * 32) / 16), step > 0);
        commitProducts();

        unsigned values[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
            loadMatricesTransposed(values[n], base + valuesAt + n * 2048);
        float2 factor[8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            factor[j] = loadPair(base + FACTORS_AT + (j * 8 + 2 * c) * 4);
        const float total = loadOne(base + FACTORS_AT + 63 * 4);

        waitProducts<1>();
        hold(updates);

        // V^T - exp(G) * updates
        unsigned rest[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int j = 2 * n + r / 2, i = 8 * n + 2 * r;
                const float low = __uint_as_float(values[n][r] << 16), high = __uint_as_float(values[n][r] & 0xffff0000u);
                rest[n][r] = pack(low - factor[j].x * updates[i], high - factor[j].y * updates[i + 1]);
            }

        // updates = that * solution^T
        hold(rest);
        hold(updates);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(updates, rest[step], ALONG + (tiles + (SOLUTION_AT + step * 32) / 16), step > 0);
        commitProducts();

        // in its shadow: the state decays
        float2 tail[8];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            tail[j] = loadPair(base + FACTORS_AT + 256 + (j * 8 + 2 * c) * 4);
#pragma unroll
        for (int i = 0; i < 64; ++i)
            state[i] *= total;

        waitProducts<0>();
        hold(left);
        hold(out);
        hold(updates);
        hold(rest);

        // state += (updates * exp(Gend - G)) * K
        unsigned decayed[4][4];
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int r = 0; r < 4; ++r) {
                const int j = 2 * n + r / 2, i = 8 * n + 2 * r;
                decayed[n][r] = pack(updates[i] * tail[j].x, updates[i + 1] * tail[j].y);
            }
        hold(decayed);
        hold(state);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAcross(state, decayed[step], ACROSS + (tiles + (K_AT + step * 2048) / 16));
        commitProducts();

        // out = scale * exp(G) * out + updates * scores^T
#pragma unroll
        for (int n = 0; n < 4; ++n)
#pragma unroll
            for (int r = 0; r < 4; ++r)
                rest[n][r] = pack(updates[8 * n + 2 * r], updates[8 * n + 2 * r + 1]);
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const float x = scale * factor[j].x, y = scale * factor[j].y;
            out[4 * j] *= x;
            out[4 * j + 1] *= y;
            out[4 * j + 2] *= x;
            out[4 * j + 3] *= y;
        }
        hold(rest);
        hold(out);
        fenceProducts();
#pragma unroll
        for (int step = 0; step < 4; ++step)
            multiplyAlong(out, rest[step], ALONG + (tiles + (SCORES_AT + step * 32) / 16), 1);
        commitProducts();

        // the next chunk's tiles, before its products are due
        const unsigned done = empty + 8 * stage;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
        if (chunk + 1 < chunks)
            waitPhase(full + 8 * stage, parity);
        __syncwarp();

        waitProducts<1>();
        hold(state);
        hold(decayed);
#pragma unroll
        for (int i = 0; i < 32; ++i)
            left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);

        waitProducts<0>();
        hold(out);
        hold(rest);
        __syncwarp();
        if (lane == 0)
            arrive(done);                                  // this warp has read all of the stage
        __syncwarp();
    }

    storeOutput(chunks - 1);
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        float *to = finalState + origin + (8 * j + 2 * c) * 128;
        to[0] = state[4 * j];
        to[128] = state[4 * j + 1];
        to[8] = state[4 * j + 2];
        to[128 + 8] = state[4 * j + 3];
    }
    if (thread == 0)
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
