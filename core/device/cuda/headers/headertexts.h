// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// Internal to standardHeaders(): the texts. Types have the widths of NVRTC's own (libcu++'s, cuda_stdint.h's): 64 bits are a long long.
namespace klineage::gate::cuda::texts {

// C's
extern const char *const stdintH;
extern const char *const stddefH;
extern const char *const limitsH;
extern const char *const floatH;
extern const char *const mathH;
extern const char *const stringH;
extern const char *const cudaH;
// C++'s
extern const char *const cstdint;
extern const char *const cstddef;
extern const char *const cmath;
extern const char *const cstring;
extern const char *const cstdio;
extern const char *const cstdlib;
extern const char *const limits;
extern const char *const typeTraits;
extern const char *const utility;
extern const char *const algorithm;

} // namespace klineage::gate::cuda::texts
