/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 32
values = [16, 32, 64]

[[tunable]]
name = "AHEAD"
default = 384
values = [256, 384, 512]

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, ROWS)"]
block = ["1"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// The sum of the 16 lanes, by halves.
float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// One work-item computes ROWS consecutive rows. While it writes a row, it sums the squares of the next one.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_group_id(0) * ROWS;
    int end = min(row + ROWS, R);
    if (row >= end)
        return;
    x += row * C;
    y += row * C;
    int full = C / 16 * 16;

    float16 sums = (float16)(0.0f);
    for (int c = 0; c < full; c += 16) {
        float16 v = vload16(0, x + c);
        sums += v * v;
    }
    float squares = sumOf(sums);
    for (int c = full; c < C; ++c)
        squares += x[c] * x[c];

    for (; row < end; ++row) {
        // The divisor is at least sqrt(1e-5): its reciprocal is finite.
        float scale = 1.0f / sqrt(squares / C + 1e-5f);
        // The last row has no next one: it stands in for it, and the sum is not used.
        __global const float *next = row + 1 < end ? x + C : x;
        // Elements from next to the last one of this work-item's rows: nothing is prefetched beyond it.
        int room = (row + 1 < end ? end - row - 1 : 1) * C - 1;
        sums = (float16)(0.0f);

        if (((size_t)y & 63) == 0) {
            // Whole cache lines, written past the caches: no read for ownership.
            for (int c = 0; c < full; c += 16) {
                __global const float *ahead = next + min(c + AHEAD, room);
                __asm__ volatile("prefetcht0 (%0)" : : "r"(ahead));
                float16 n = vload16(0, next + c);
                float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
                sums += n * n;
                __builtin_nontemporal_store(v, (__global float16 *)(y + c));
            }
        } else {
            for (int c = 0; c < full; c += 16) {
                float16 n = vload16(0, next + c);
                float16 v = vload16(0, x + c) * scale * vload16(0, gamma + c);
                sums += n * n;
                vstore16(v, 0, y + c);
            }
        }
        squares = sumOf(sums);
        for (int c = full; c < C; ++c) {
            squares += next[c] * next[c];
            y[c] = x[c] * scale * gamma[c];
        }
        x = next;
        y += C;
    }
}
