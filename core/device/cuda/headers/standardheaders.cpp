// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/headers/standardheaders.h"

#include "core/device/cuda/headers/headertexts.h"

namespace klineage::gate::cuda {

namespace {

const char *const empty = "#pragma once\n";

// Larger parts of the library are libcu++'s, under the names that nvcc's users know. They take most of a second to compile.
#define KLINEAGE_FROM_LIBCUXX(NAME) \
    { \
        NAME, \
            "#pragma once\n#include <cuda/std/" NAME \
            ">\nnamespace std {\nusing namespace ::cuda::std;\n}\n", \
            "", false \
    }

const StandardHeader table[] = {
    {"stdint.h", texts::stdintH,
     "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t INT32_MAX INT32_MIN UINT32_MAX INT64_MAX "
     "INT64_MIN UINT64_MAX INT16_MAX UINT16_MAX INT8_MIN INT8_MAX UINT8_MAX SIZE_MAX",
     false},
    {"stddef.h", texts::stddefH, "NULL offsetof", false},
    {"limits.h", texts::limitsH,
     "CHAR_BIT INT_MIN INT_MAX UINT_MAX LONG_MIN LONG_MAX ULONG_MAX LLONG_MIN LLONG_MAX ULLONG_MAX SHRT_MAX UCHAR_MAX",
     false},
    {"float.h", texts::floatH, "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON FLT_DIG FLT_MANT_DIG",
     false},
    {"math.h", texts::mathH,
     "INFINITY NAN HUGE_VAL HUGE_VALF M_PI M_PI_2 M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 M_E M_LOG2E M_LOG10E M_LN2 M_LN10",
     false},
    {"string.h", texts::stringH, "", false},
    {"stdio.h", empty, "", false},
    {"stdlib.h", empty, "", false},
    {"assert.h", empty, "", false}, // NVRTC has assert()
    {"inttypes.h", texts::cstdint, "", false},
    {"cuda.h", texts::cudaH, "CUtensorMap", false},
    {"cuda_runtime.h", empty, "", true},
    {"cuda_runtime_api.h", empty, "", true},
    {"device_launch_parameters.h", empty, "", true},
    {"cstdint", texts::cstdint,
     "std::int32_t std::int64_t std::uint32_t std::uint64_t std::uint8_t std::int8_t std::uintptr_t", false},
    {"cstddef", texts::cstddef, "std::size_t std::ptrdiff_t std::nullptr_t std::byte", false},
    {"climits", texts::limitsH, "", false},
    {"cfloat", texts::floatH, "", false},
    {"cassert", empty, "", false},
    {"cinttypes", texts::cstdint, "", false},
    {"cmath", texts::cmath,
     "std::abs std::ceil std::cos std::cosh std::erf std::exp std::exp2 std::fabs std::floor std::fma std::fmax std::fmin std::fmod "
     "std::isfinite std::isinf std::isnan std::log std::log10 std::log1p std::log2 std::pow std::rint std::round std::sin std::sqrt "
     "std::tan std::tanh std::trunc",
     false},
    {"cstring", texts::cstring, "std::memcpy std::memset", false},
    {"cstdio", texts::cstdio, "std::printf", false},
    {"cstdlib", texts::cstdlib, "std::malloc std::free", false},
    {"limits", texts::limits, "std::numeric_limits", false},
    {"type_traits", texts::typeTraits,
     "std::is_same std::is_same_v std::conditional std::conditional_t std::enable_if std::enable_if_t std::integral_constant std::true_type "
     "std::false_type std::is_integral std::is_integral_v std::is_floating_point std::is_floating_point_v std::decay_t "
     "std::remove_reference_t std::remove_cv_t",
     false},
    {"utility", texts::utility,
     "std::swap std::exchange std::pair std::make_pair std::declval std::index_sequence "
     "std::make_index_sequence std::integer_sequence",
     false},
    {"algorithm", texts::algorithm,
     "std::min std::max std::clamp std::fill std::lower_bound std::upper_bound", false},
    {"initializer_list", empty, "", false}, // it is NVRTC's own
    KLINEAGE_FROM_LIBCUXX("array"),
    KLINEAGE_FROM_LIBCUXX("bit"),
    KLINEAGE_FROM_LIBCUXX("complex"),
    KLINEAGE_FROM_LIBCUXX("functional"),
    KLINEAGE_FROM_LIBCUXX("iterator"),
    KLINEAGE_FROM_LIBCUXX("numeric"),
    KLINEAGE_FROM_LIBCUXX("optional"),
    KLINEAGE_FROM_LIBCUXX("span"),
    KLINEAGE_FROM_LIBCUXX("tuple"),
};

#undef KLINEAGE_FROM_LIBCUXX

} // namespace

std::span<const StandardHeader> standardHeaders()
{
    return table;
}

} // namespace klineage::gate::cuda
