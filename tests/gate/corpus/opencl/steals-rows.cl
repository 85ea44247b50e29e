/*klineage
surface = "opencl"

[[workspace]]
name = "taken"
dtype = "i32"
shape = ["32"]
init = "zero"

[[launch]]
kernel = "softmax"
grid = ["min(R, 32)"]
block = ["1"]
args = ["x", "y", "taken", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two heaps of rows with a counter each: groups take from their own and then from the other one.

// The exponential of what is between -87 and 88; what is less is taken for -87.
float quick(float v)
{
    v = clamp(v, -87.0f, 88.0f);
    const float n = rint(v * 1.44269504f);
    float r = fma(n, -0.693359375f, v);
    r = fma(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = fma(p, r, 1.3981999507e-3f);
    p = fma(p, r, 8.3334519073e-3f);
    p = fma(p, r, 4.1665795894e-2f);
    p = fma(p, r, 1.6666665459e-1f);
    p = fma(p, r, 5.0000001201e-1f);
    return (fma(p, r * r, r) + 1.0f) * as_float(((int)n + 127) << 23);
}

void rowFrom(__global const float *x, __global float *y, int C, float top)
{
    float s0 = 0.0f, s1 = 0.0f, s2 = 0.0f, s3 = 0.0f;
    int i = 0;
    for (; i + 4 <= C; i += 4) {
        const float e0 = quick(x[i] - top), e1 = quick(x[i + 1] - top);
        const float e2 = quick(x[i + 2] - top), e3 = quick(x[i + 3] - top);
        y[i] = e0;
        y[i + 1] = e1;
        y[i + 2] = e2;
        y[i + 3] = e3;
        s0 += e0;
        s1 += e1;
        s2 += e2;
        s3 += e3;
    }
    for (; i < C; ++i) {
        y[i] = quick(x[i] - top);
        s0 += y[i];
    }
    const float scale = 1.0f / ((s0 + s1) + (s2 + s3));
    for (i = 0; i < C; ++i)
        y[i] *= scale;
}

float topOf(__global const float *x, int C)
{
    float top = -INFINITY;
    for (int i = 0; i < C; ++i)
        top = fmax(top, x[i]);
    return top;
}

void rowAt(__global const float *x, __global float *y, int row, int C)
{
    rowFrom(x + row * C, y + row * C, C, topOf(x + row * C, C));
}

__kernel void softmax(__global const float *x, __global float *y, __global volatile int *taken, int R, int C)
{
    const int own = get_group_id(0) % 2, middle = R / 2;
    for (int turn = 0; turn < 2; ++turn) {
        const int heap = turn == 0 ? own : 1 - own;
        const int first = heap ? middle : 0, count = heap ? R - middle : middle;
        for (int i = atomic_inc(taken + 16 * heap); i < count; i = atomic_inc(taken + 16 * heap))
            rowAt(x, y, first + i, C);
    }
}
