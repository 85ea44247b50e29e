/*klineage
surface = "cuda"

[[tunable]]
name = "TYPE"
default = 0
values = [0, 1, 2, 3]

[[launch]]
kernel = "multiply"
grid = ["GROUPS"]
block = ["256"]
args = ["b", "int ROUNDS", "int RANDOM"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tensor cores through mma.sync, from registers alone. TYPE 0 bf16, 1 tf32, 2 f64, 3 e4m3. RANDOM 0 multiplies zeros, which
// draws the least power. 8 products a warp and round.
typedef unsigned u32;

__device__ u32 mix(u32 x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ (x >> 16);
}

/// Bits that are numbers of both signs around one, of several magnitudes.
__device__ u32 operand(u32 key)
{
    const u32 bits = mix(key);
#if TYPE == 0
    const u32 low = (0x7eu - (bits >> 30)) << 7, high = (0x7eu - ((bits >> 28) & 3u)) << 23;
    return (bits & 0x807f807fu) | low | high;
#elif TYPE == 1
    return (bits & 0x807fe000u) | ((0x7eu - (bits & 3u)) << 23);
#else
    return (bits & 0x87878787u) | 0x30303030u;
#endif
}

#if TYPE == 2
extern "C" __global__ void __launch_bounds__(256) multiply(double *b, int rounds, int random)
{
    const u32 key = blockIdx.x * 256 + threadIdx.x;
    double a[8], w[4], sum[4][4];
    for (int i = 0; i < 8; ++i)
        a[i] = random ? 1e-9 * mix(key + 77u * i) - 2.0 : 0.0;
    for (int i = 0; i < 4; ++i)
        w[i] = random ? 1e-9 * mix(key + 99u * i + 7u) - 2.0 : 0.0;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            sum[i][j] = 0;
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
#if __CUDA_ARCH__ >= 900
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, "
                         "{%12,%13,%14,%15}, {%0,%1,%2,%3};"
                         : "+d"(sum[i % 4][0]), "+d"(sum[i % 4][1]), "+d"(sum[i % 4][2]), "+d"(sum[i % 4][3])
                         : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
                           "d"(w[0]), "d"(w[1]), "d"(w[2]), "d"(w[3]));
#else
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                         : "+d"(sum[i % 4][i & 2]), "+d"(sum[i % 4][(i & 2) + 1])
                         : "d"(a[i]), "d"(w[i % 4]));
#endif
    }
    double total = 0;
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j)
            total += sum[i][j];
    if (total == 0.12345) // hardly ever
        b[threadIdx.x] = total;
}
#else
#if TYPE == 0
#define SHAPE "m16n8k16.row.col.f32.bf16.bf16.f32"
#elif TYPE == 1
#define SHAPE "m16n8k8.row.col.f32.tf32.tf32.f32"
#else
#define SHAPE "m16n8k32.row.col.f32.e4m3.e4m3.f32"
#endif
extern "C" __global__ void __launch_bounds__(256) multiply(float *b, int rounds, int random)
{
    const u32 key = blockIdx.x * 256 + threadIdx.x;
    u32 a[4], w[2];
    for (int i = 0; i < 4; ++i)
        a[i] = random ? operand(key * 16 + i) : 0;
    for (int i = 0; i < 2; ++i)
        w[i] = random ? operand(key * 16 + 8 + i) : 0;
    float sum[8][4] = {};
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            asm volatile("mma.sync.aligned." SHAPE " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(sum[i][0]), "+f"(sum[i][1]), "+f"(sum[i][2]), "+f"(sum[i][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(w[0]), "r"(w[1]));
    }
    float total = 0;
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 4; ++j)
            total += sum[i][j];
    if (total == 0.12345f) // hardly ever
        b[threadIdx.x] = total;
}
#endif
