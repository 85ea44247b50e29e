/*klineage
surface = "opencl"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "y", "int R", "int C"]
*/

float16 loadTail(__global const float *p, int n)
{
    float lanes[16];
    for (int i = 0; i < 16; ++i)
        lanes[i] = 0.0f;
    for (int i = 0; i < n; ++i)
        lanes[i] = p[i];
    return vload16(0, lanes);
}

float sumOf(float16 v)
{
    float8 a = v.lo + v.hi;
    float4 b = a.lo + a.hi;
    float2 c = b.lo + b.hi;
    return c.x + c.y;
}

// One work-item computes one row in two passes, 16 columns at a time: mean square, result.
__kernel void rmsnorm(__global const float *x, __global const float *gamma, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    int full = C / 16 * 16;
    float16 tail = loadTail(x + full, C - full);

    float16 squares = tail * tail;
    for (int c = 0; c < full; c += 16) {
        float16 v = vload16(0, x + c);
        squares += v * v;
    }

    float root = sqrt(sumOf(squares) / C + 1e-5f);

    for (int c = 0; c < full; c += 16)
        vstore16(vload16(0, x + c) / root * vload16(0, gamma + c), 0, y + c);
    for (int c = full; c < C; ++c)
        y[c] = x[c] / root * gamma[c];
}
