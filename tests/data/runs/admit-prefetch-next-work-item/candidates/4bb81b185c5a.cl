/*klineage
surface = "opencl"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/

// The sum of 16 lanes, by halves.
float sumOf(float16 v)
{
    float8 v8 = v.lo + v.hi;
    float4 v4 = v8.lo + v8.hi;
    float2 v2 = v4.lo + v4.hi;
    return v2.x + v2.y;
}

// One work-item computes one row in three passes: mean, variance, result, 16 columns at a time. The sums are 16 partial sums in
// single precision, short enough chains to keep the digits of the mean. The last C % 16 columns are done one by one.
// The second and third pass find their row in cache: meanwhile they prefetch the row of the next work-item, half a row each.
__kernel void layernorm(__global const float *x, __global const float *gamma, __global const float *beta,
                        __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    int full = C / 16 * 16;
    __global const float *next = x + min(row + 1, R - 1) * C;  // the last row points at itself, not past the buffer
    __global const float *nextHalf = next + (full >> 1);
    x += row * C;
    y += row * C;

    float16 sums = (float16)(0.0f);
    for (int c = 0; c < full; c += 16)
        sums += vload16(0, x + c);
    float rest = 0.0f;
    for (int c = full; c < C; ++c)
        rest += x[c];
    float mean = (sumOf(sums) + rest) / (float)C;

    float16 squares = (float16)(0.0f);
    for (int c = 0; c < full; c += 16) {
        __builtin_prefetch(next + (c >> 1));  // first half of the next row, 8 floats a step
        float16 d = vload16(0, x + c) - mean;
        squares += d * d;
    }
    rest = 0.0f;
    for (int c = full; c < C; ++c) {
        float d = x[c] - mean;
        rest += d * d;
    }
    float variance = (sumOf(squares) + rest) / (float)C;
    float deviation = sqrt(variance + 1e-5f);

    for (int c = 0; c < full; c += 16) {
        __builtin_prefetch(nextHalf + (c >> 1));  // second half of the next row
        float16 d = vload16(0, x + c) - mean;
        vstore16(d / deviation * vload16(0, gamma + c) + vload16(0, beta + c), 0, y + c);
    }
    for (int c = full; c < C; ++c)
        y[c] = (x[c] - mean) / deviation * gamma[c] + beta[c];
}
