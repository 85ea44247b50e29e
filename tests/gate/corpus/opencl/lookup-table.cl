/*klineage
surface = "opencl"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 16)"]
block = ["16"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Computes exp from a table of constants and a short polynomial, to the last bits.

// 2^(i / 32)
__constant float powers[32] = {
    1.000000000e+00f, 1.021897149e+00f, 1.044273782e+00f, 1.067140401e+00f,
    1.090507733e+00f, 1.114386743e+00f, 1.138788635e+00f, 1.163724859e+00f,
    1.189207115e+00f, 1.215247360e+00f, 1.241857812e+00f, 1.269050957e+00f,
    1.296839555e+00f, 1.325236643e+00f, 1.354255547e+00f, 1.383909882e+00f,
    1.414213562e+00f, 1.445180807e+00f, 1.476826146e+00f, 1.509164428e+00f,
    1.542210825e+00f, 1.575980845e+00f, 1.610490332e+00f, 1.645755478e+00f,
    1.681792831e+00f, 1.718619298e+00f, 1.756252160e+00f, 1.794709075e+00f,
    1.834008086e+00f, 1.874167634e+00f, 1.915206561e+00f, 1.957144124e+00f,
};

// v = (32 n + i) ln2 / 32 + r: exp(v) = 2^n * powers[i] * exp(r), with |r| < ln2 / 64.
float tableExp(float v)
{
    if (v < -87.0f)
        return exp(v); // subnormal or zero
    float steps = rint(v * 46.1662413f);
    int step = (int)steps;
    float r = fma(steps, -0x1.62e4p-6f, v);
    r = fma(steps, -4.4643964e-8f, r);
    float p = 1.0f + r * (1.0f + r * (0.5f + r * (0.16666667f + r * 0.041666667f)));
    return ldexp(powers[step & 31] * p, step >> 5);
}

__kernel void softmax(__global const float *x, __global float *y, int R, int C)
{
    int row = get_global_id(0);
    if (row >= R)
        return;
    x += row * C;
    y += row * C;
    float top = x[0];
    for (int i = 1; i < C; ++i)
        top = fmax(top, x[i]);
    float sum = 0.0f;
    for (int i = 0; i < C; ++i)
        sum += tableExp(x[i] - top);
    for (int i = 0; i < C; ++i)
        y[i] = tableExp(x[i] - top) / sum;
}
