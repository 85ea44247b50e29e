/*klineage
surface = "opencl"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

// One work-item computes one row in two passes: mean square, result. Both take 16 neighbouring columns at a time as one
// vector, and the columns that are left over one by one.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    int full = C / 16 * 16;

    // 16 partial sums, one a lane, folded by halves.
    float16 s16 = (float16)(0.0f);
    for (int c = 0; c < full; c += 16) {
        float16 v = vload16(0, x + c);
        s16 += v * v;
    }
    float8 s8 = s16.lo + s16.hi;
    float4 s4 = s8.lo + s8.hi;
    float2 s2 = s4.lo + s4.hi;
    float squares = s2.x + s2.y;
    for (int c = full; c < C; ++c)
        squares += x[c] * x[c];

    float root = sqrt(squares / C + 1e-5f);

    for (int c = 0; c < full; c += 16)
        vstore16(vload16(0, x + c) / root * vload16(0, gamma + c), 0, y + c);
    for (int c = full; c < C; ++c)
        y[c] = x[c] / root * gamma[c];
}
