/*klineage
surface = "opencl"

[[tunable]]
name = "ROWS"
default = 32
values = [16, 32, 64]

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

// One work-item computes ROWS consecutive rows, two at a time. While it writes two rows, it sums the squares of the next two.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_group_id(0) * ROWS;
    int end = min(row + ROWS, R);
    if (row >= end)
        return;
    int last = end - 1;
    int full = C / 16 * 16;

    __global const float *xa = x + row * C;
    __global const float *xb = x + min(row + 1, last) * C;
    float16 sumsA = (float16)(0.0f);
    float16 sumsB = (float16)(0.0f);
    for (int c = 0; c < full; c += 16) {
        float16 a = vload16(0, xa + c);
        float16 b = vload16(0, xb + c);
        sumsA += a * a;
        sumsB += b * b;
    }
    float squaresA = sumOf(sumsA);
    float squaresB = sumOf(sumsB);
    for (int c = full; c < C; ++c) {
        squaresA += xa[c] * xa[c];
        squaresB += xb[c] * xb[c];
    }

    for (; row < end; row += 2) {
        // An odd last row stands in for its missing neighbour and is written twice with the same values.
        __global float *ya = y + row * C;
        __global float *yb = y + min(row + 1, last) * C;
        // Past the end the last row stands in for the next ones, and the sums are not used.
        __global const float *na = x + min(row + 2, last) * C;
        __global const float *nb = x + min(row + 3, last) * C;
        // The divisor is at least sqrt(1e-5): its reciprocal is finite.
        float scaleA = 1.0f / sqrt(squaresA / C + 1e-5f);
        float scaleB = 1.0f / sqrt(squaresB / C + 1e-5f);
        sumsA = (float16)(0.0f);
        sumsB = (float16)(0.0f);

        if ((((size_t)ya | (size_t)yb) & 63) == 0) {
            // Whole cache lines, written past the caches: no read for ownership.
            for (int c = 0; c < full; c += 16) {
                float16 a = vload16(0, na + c);
                float16 b = vload16(0, nb + c);
                float16 g = vload16(0, gamma + c);
                sumsA += a * a;
                sumsB += b * b;
                __builtin_nontemporal_store(vload16(0, xa + c) * scaleA * g, (__global float16 *)(ya + c));
                __builtin_nontemporal_store(vload16(0, xb + c) * scaleB * g, (__global float16 *)(yb + c));
            }
        } else {
            for (int c = 0; c < full; c += 16) {
                float16 a = vload16(0, na + c);
                float16 b = vload16(0, nb + c);
                float16 g = vload16(0, gamma + c);
                sumsA += a * a;
                sumsB += b * b;
                vstore16(vload16(0, xa + c) * scaleA * g, 0, ya + c);
                vstore16(vload16(0, xb + c) * scaleB * g, 0, yb + c);
            }
        }
        squaresA = sumOf(sumsA);
        squaresB = sumOf(sumsB);
        for (int c = full; c < C; ++c) {
            squaresA += na[c] * na[c];
            squaresB += nb[c] * nb[c];
            ya[c] = xa[c] * scaleA * gamma[c];
            yb[c] = xb[c] * scaleB * gamma[c];
        }
        xa = na;
        xb = nb;
    }
}
