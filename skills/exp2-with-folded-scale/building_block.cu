// SPDX-License-Identifier: GPL-3.0-or-later
// From softmax/sm90/K04.

constexpr float LOG2E = 1.44269504f;

// 2^v in one instruction, relative error 2^-22; 0 for -infinity and wherever the result were subnormal.
__device__ float exp2Fast(float v)
{
    float e;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(v));
    return e;
}
