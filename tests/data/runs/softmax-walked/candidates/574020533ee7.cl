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

    const int vecs = C / 16;    // whole vectors of the row
    const int tail = vecs * 16; // first column past them

    float16 top_a = (float16)(-INFINITY);
    float16 top_b = top_a, top_c = top_a, top_d = top_a;
    int v = 0;
    for (; v + 3 < vecs; v += 4) {
        top_a = max(top_a, vload16(v, x));
        top_b = max(top_b, vload16(v + 1, x));
        top_c = max(top_c, vload16(v + 2, x));
        top_d = max(top_d, vload16(v + 3, x));
    }
    for (; v < vecs; ++v)
        top_a = max(top_a, vload16(v, x));
    top_a = max(max(top_a, top_b), max(top_c, top_d));
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
    float16 sum_b = sum_a, sum_c = sum_a, sum_d = sum_a;
    for (v = 0; v + 3 < vecs; v += 4) {
        sum_a += vload16(v, y);
        sum_b += vload16(v + 1, y);
        sum_c += vload16(v + 2, y);
        sum_d += vload16(v + 3, y);
    }
    for (; v < vecs; ++v)
        sum_a += vload16(v, y);
    sum_a = (sum_a + sum_b) + (sum_c + sum_d);
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
