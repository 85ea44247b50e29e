/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/

// One work-item computes one row, sixteen columns at a time, in four passes: maximum, exponentials, their sum,
// division. The last C % 16 columns are taken one by one.
__kernel void softmax(__global const float *restrict x, __global float *restrict y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;

    const int vecs = C / 16;   // whole vectors of the row
    const int tail = vecs * 16; // first column past them

    float16 top_a = (float16)(-INFINITY);
    float16 top_b = (float16)(-INFINITY);
    int v = 0;
    for (; v + 1 < vecs; v += 2) {
        top_a = max(top_a, vload16(v, x));
        top_b = max(top_b, vload16(v + 1, x));
    }
    if (v < vecs)
        top_a = max(top_a, vload16(v, x));
    top_a = max(top_a, top_b);
    float8 top8 = max(top_a.lo, top_a.hi);
    float4 top4 = max(top8.lo, top8.hi);
    float2 top2 = max(top4.lo, top4.hi);
    float top = max(top2.x, top2.y);
    for (int c = tail; c < C; ++c)
        top = max(top, x[c]);

    const float16 tops = (float16)(top);
    for (v = 0; v < vecs; ++v)
        vstore16(exp(vload16(v, x) - tops), v, y);
    for (int c = tail; c < C; ++c)
        y[c] = exp(x[c] - top);

    float16 sum_a = (float16)(0.0f);
    float16 sum_b = (float16)(0.0f);
    for (v = 0; v + 1 < vecs; v += 2) {
        sum_a += vload16(v, y);
        sum_b += vload16(v + 1, y);
    }
    if (v < vecs)
        sum_a += vload16(v, y);
    sum_a += sum_b;
    float8 sum8 = sum_a.lo + sum_a.hi;
    float4 sum4 = sum8.lo + sum8.hi;
    float2 sum2 = sum4.lo + sum4.hi;
    float sum = sum2.x + sum2.y;
    for (int c = tail; c < C; ++c)
        sum += y[c];

    const float16 sums = (float16)(sum);
    for (v = 0; v < vecs; ++v)
        vstore16(vload16(v, y) / sums, v, y);
    for (int c = tail; c < C; ++c)
        y[c] = y[c] / sum;
}
