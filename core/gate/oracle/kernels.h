// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/dtype.h"

#include <cstdint>

namespace klineage::gate::oracle {

/// The files of kernels/, as they lie there. elements.cu goes before the source of the others, which are candidate files.
extern const char *const elementsCu;
extern const char *const matmulCu;
extern const char *const attentionCu;
extern const char *const compareCu; ///< of the judge, like those after it
extern const char *const sameCu;
extern const char *const poisonCu;

/// As elements.cu numbers the types of elements; -1: it knows no such type.
constexpr std::int64_t elementType(kernel::DType dtype)
{
    switch (dtype) {
    case kernel::DType::F32:
    case kernel::DType::TF32:
        return 0;
    case kernel::DType::F16:
        return 1;
    case kernel::DType::BF16:
        return 2;
    case kernel::DType::F8E4M3:
        return 3;
    case kernel::DType::F8E5M2:
        return 4;
    default:
        return -1;
    }
}

} // namespace klineage::gate::oracle
