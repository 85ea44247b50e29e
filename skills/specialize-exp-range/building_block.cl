// SPDX-License-Identifier: GPL-3.0-or-later
// From softmax/pocl/K03.

// e^x for x <= 0, and 0 below -88: 2^n * 2^f with x * log2(e) = n + f and |f| <= 0.5. The polynomial for
// 2^f is the minimax one of degree 5 through 1 at 0; its relative error is below 1e-7.
float16 expOf(float16 x)
{
    const float log2e = 1.44269504f;
    const float shift = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer, in the low bits
    x = max(x, -88.0f);
    float16 shifted = x * log2e + shift;
    float16 f = x * log2e - (shifted - shift);
    float16 p = 0.00132647273f;
    p = p * f + 0.00967151299f;
    p = p * f + 0.0555073358f;
    p = p * f + 0.240222424f;
    p = p * f + 0.693147004f;
    p = p * f + 1.0f;
    int16 exponent = (as_int16(shifted) + 127) << 23;
    return p * as_float16(exponent);
}
