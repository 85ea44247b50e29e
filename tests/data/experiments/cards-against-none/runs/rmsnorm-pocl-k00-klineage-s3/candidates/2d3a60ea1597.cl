/*klineage
surface = "opencl"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-item computes one row in two passes: mean square, result. Both take 16 columns at a time, the tail one.
float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
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

    float root = sqrt(squares / C + 1e-5f);
    if (((size_t)y & 63) == 0) {
        // whole, aligned lines: written past the caches, without reading them first
        for (int c = 0; c < full; c += 16) {
            float16 v = vload16(0, x + c) / root * vload16(0, gamma + c);
            __builtin_nontemporal_store(v, (__global float16 *)(y + c));
        }
    } else {
        for (int c = 0; c < full; c += 16)
            vstore16(vload16(0, x + c) / root * vload16(0, gamma + c), 0, y + c);
    }
    for (int c = full; c < C; ++c)
        y[c] = x[c] / root * gamma[c];
}
