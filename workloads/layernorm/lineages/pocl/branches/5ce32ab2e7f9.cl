/*klineage
surface = "opencl"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/

// One work-item computes one row in three passes: mean, variance, result, 16 neighbouring columns at a time. Each lane keeps a partial
// sum of its own, so that the chains are short enough for single precision.

float sumOf(float16 v)
{
    float8 s8 = v.lo + v.hi;
    float4 s4 = s8.lo + s8.hi;
    float2 s2 = s4.lo + s4.hi;
    return s2.x + s2.y;
}

// The last, incomplete vector of a row: n of 16 elements, padded with 0.
float16 loadTail(__global const float *p, int n)
{
    float lane[16];
    for (int i = 0; i < 16; ++i)
        lane[i] = i < n ? p[i] : 0.0f;
    return vload16(0, lane);
}

// Stores the n valid elements of the last vector, and nothing else.
void storeTail(float16 v, __global float *p, int n)
{
    float lane[16];
    vstore16(v, 0, lane);
    for (int i = 0; i < 16; ++i)
        if (i < n)
            p[i] = lane[i];
}

__kernel void layernorm(__global const float *x, __global const float *gamma, __global const float *beta,
                        __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    int full = C / 16 * 16;
    int rest = C - full;

    float16 tail = (float16)(0.0f);
    if (rest > 0)
        tail = loadTail(x + full, rest);

    // Padding is 0: neutral for the sum.
    float16 sums = tail;
    for (int c = 0; c < full; c += 16)
        sums += vload16(0, x + c);
    float mean = (float)((double)sumOf(sums) / (double)C);

    // The padded lanes would hold -mean now: mask them.
    int16 lanes = (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    int16 valid = lanes < (int16)(rest);
    tail = select((float16)(0.0f), tail - mean, valid);

    float16 squares = tail * tail;
    for (int c = 0; c < full; c += 16) {
        float16 d = vload16(0, x + c) - mean;
        squares += d * d;
    }
    double variance = (double)sumOf(squares) / (double)C;
    float scale = (float)(1.0 / sqrt(variance + 1e-5));

    for (int c = 0; c < full; c += 16) {
        float16 d = vload16(0, x + c) - mean;
        vstore16(d * scale * vload16(0, gamma + c) + vload16(0, beta + c), 0, y + c);
    }
    if (rest > 0)
        storeTail(tail * scale * loadTail(gamma + full, rest) + loadTail(beta + full, rest), y + full, rest);
}
