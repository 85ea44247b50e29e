// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

/// Compiles a function for wider vector units too, and takes the widest that the processor has. For functions of their own (not
/// templates, not inlined) that do all their arithmetic themselves.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define KLINEAGE_VECTOR_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KLINEAGE_VECTOR_CLONES
#endif
