// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace klineage::kernel {

namespace {

struct Description {
    DType dtype;
    const char *name;
    std::size_t bytes;
    bool isFloat;
};

constexpr std::array<Description, 13> descriptions = {{
    {DType::F64, "f64", 8, true},
    {DType::F32, "f32", 4, true},
    {DType::TF32, "tf32", 4, true},
    {DType::F16, "f16", 2, true},
    {DType::BF16, "bf16", 2, true},
    {DType::F8E4M3, "f8e4m3", 1, true},
    {DType::F8E5M2, "f8e5m2", 1, true},
    {DType::I64, "i64", 8, false},
    {DType::I32, "i32", 4, false},
    {DType::I16, "i16", 2, false},
    {DType::I8, "i8", 1, false},
    {DType::U32, "u32", 4, false},
    {DType::U8, "u8", 1, false},
}};

const Description &describe(DType dtype)
{
    return descriptions[static_cast<std::size_t>(dtype)];
}

/// A small IEEE-like format: sign, exponentBits, mantissaBits.
template <int exponentBits, int mantissaBits>
struct SmallFloat {
    static constexpr int bias = (1 << (exponentBits - 1)) - 1;
    static constexpr unsigned exponentMask = (1u << exponentBits) - 1;
    static constexpr unsigned mantissaMask = (1u << mantissaBits) - 1;
    static constexpr unsigned infinity = exponentMask << mantissaBits;
    static constexpr unsigned quietNan = infinity | (1u << (mantissaBits - 1));

    /// Rounds a double once, to nearest even; overflow gives the exponent of infinity (or above it).
    /// The magnitude only: no sign, no infinity, no NaN.
    static unsigned encodeMagnitude(double magnitude)
    {
        if (magnitude == 0)
            return 0;
        const int smallest = 1 - bias - mantissaBits; // exponent of the smallest subnormal
        if (magnitude < std::ldexp(1.0, 1 - bias))
            return static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, -smallest)));
        constexpr int dropped = 52 - mantissaBits;
        std::uint64_t bits = std::bit_cast<std::uint64_t>(magnitude);
        // A carry out of the mantissa walks into the exponent, which is what rounding up to a power of two
        // means.
        bits += (std::uint64_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
        bits >>= dropped;
        bits -= static_cast<std::uint64_t>(1023 - bias) << mantissaBits;
        return bits > infinity ? infinity : static_cast<unsigned>(bits);
    }

    static unsigned encode(double value)
    {
        const unsigned sign = std::signbit(value) ? 1u << (exponentBits + mantissaBits) : 0;
        if (std::isnan(value))
            return sign | quietNan;
        if (std::isinf(value))
            return sign | infinity;
        return sign | encodeMagnitude(std::fabs(value));
    }

    static double decode(unsigned bits)
    {
        const unsigned exponent = bits >> mantissaBits & exponentMask;
        const unsigned mantissa = bits & mantissaMask;
        double magnitude = 0;
        if (exponent == exponentMask)
            magnitude =
                mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
        else if (exponent == 0)
            magnitude = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissaBits);
        else
            magnitude = std::ldexp(static_cast<double>(mantissa | (mantissaMask + 1)),
                                   static_cast<int>(exponent) - bias - mantissaBits);
        return std::copysign(magnitude, bits >> (exponentBits + mantissaBits) & 1 ? -1.0 : 1.0);
    }
};

using Half = SmallFloat<5, 10>;
using Brain = SmallFloat<8, 7>;
using E5M2 = SmallFloat<5, 2>;

/// OCP e4m3 ("fn"): no infinity, one NaN a sign (all ones), largest 448. Finite overflow saturates, infinity
/// becomes NaN.
struct E4M3 {
    using Base = SmallFloat<4, 3>;
    static constexpr unsigned nan = 0x7f;
    static constexpr unsigned largest = 0x7e;

    static unsigned encode(double value)
    {
        const unsigned sign = std::signbit(value) ? 0x80u : 0u;
        if (!std::isfinite(value))
            return sign | nan;
        // Halfway between 448 and the 480 that is NaN's place; ties go to even, which is 448.
        if (std::fabs(value) >= 448)
            return sign | largest;
        return sign | roundBelowLargest(std::fabs(value));
    }

    static unsigned roundBelowLargest(double magnitude)
    {
        // From 256 on the exponent is all ones, which Base takes for infinity: halve, then put the exponent
        // back.
        if (magnitude < 128)
            return Base::encodeMagnitude(magnitude);
        return Base::encodeMagnitude(magnitude / 4) + (2u << 3);
    }

    static double decode(unsigned bits)
    {
        if ((bits & nan) == nan)
            return std::copysign(std::numeric_limits<double>::quiet_NaN(), bits & 0x80 ? -1.0 : 1.0);
        if ((bits & 0x78) == 0x78) {
            const double magnitude = 256.0 * (1.0 + (bits & 7) / 8.0);
            return bits & 0x80 ? -magnitude : magnitude;
        }
        return Base::decode(bits);
    }
};

template <typename T>
T loadAs(const std::byte *data, std::size_t index)
{
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
void storeAs(std::byte *data, std::size_t index, T value)
{
    std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

/// Nearest even, saturating; NaN becomes 0.
template <typename T>
T toInteger(double value)
{
    if (std::isnan(value))
        return 0;
    const double rounded = std::nearbyint(value);
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double high =
        static_cast<double>(std::numeric_limits<T>::max()); // 2^63 for int64: not itself in range
    if (rounded <= low)
        return std::numeric_limits<T>::min();
    if (rounded >= high)
        return std::numeric_limits<T>::max();
    return static_cast<T>(rounded);
}

} // namespace

std::size_t sizeOf(DType dtype)
{
    return describe(dtype).bytes;
}

const char *toString(DType dtype)
{
    return describe(dtype).name;
}

std::optional<DType> dtypeFromString(std::string_view name)
{
    for (const Description &description : descriptions) {
        if (name == description.name)
            return description.dtype;
    }
    return std::nullopt;
}

bool isFloat(DType dtype)
{
    return describe(dtype).isFloat;
}

std::vector<std::string> dtypeNames()
{
    std::vector<std::string> names;
    for (const Description &description : descriptions)
        names.emplace_back(description.name);
    return names;
}

float bf16ToFloat(std::uint16_t bits)
{
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

std::uint16_t floatToBf16(float value)
{
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value))
        return static_cast<std::uint16_t>(bits >> 16
                                          | 0x40); // quiet, payload kept, never rounded up to infinity
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float f16ToFloat(std::uint16_t bits)
{
    const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
    const std::uint32_t magnitude = std::uint32_t{bits & 0x7fffu} << 13;
    if (magnitude >= 0x0f800000u) // infinity, or a NaN with its payload
        return std::bit_cast<float>(sign | 0x7f800000u | magnitude);
    return std::bit_cast<float>(sign | magnitude) * 0x1p112f; // exact, subnormals too
}

double loadElement(const std::byte *data, DType dtype, std::size_t index)
{
    switch (dtype) {
    case DType::F64:
        return loadAs<double>(data, index);
    case DType::F32:
    case DType::TF32:
        return loadAs<float>(data, index);
    case DType::F16:
        return f16ToFloat(loadAs<std::uint16_t>(data, index));
    case DType::BF16:
        return bf16ToFloat(loadAs<std::uint16_t>(data, index));
    case DType::F8E4M3:
        return E4M3::decode(loadAs<std::uint8_t>(data, index));
    case DType::F8E5M2:
        return E5M2::decode(loadAs<std::uint8_t>(data, index));
    case DType::I64:
        return static_cast<double>(loadAs<std::int64_t>(data, index));
    case DType::I32:
        return loadAs<std::int32_t>(data, index);
    case DType::I16:
        return loadAs<std::int16_t>(data, index);
    case DType::I8:
        return loadAs<std::int8_t>(data, index);
    case DType::U32:
        return loadAs<std::uint32_t>(data, index);
    case DType::U8:
        return loadAs<std::uint8_t>(data, index);
    }
    return 0;
}

void storeElement(std::byte *data, DType dtype, std::size_t index, double value)
{
    switch (dtype) {
    case DType::F64:
        return storeAs(data, index, value);
    case DType::F32:
    case DType::TF32:
        return storeAs(data, index, static_cast<float>(value));
    case DType::F16:
        return storeAs(data, index, static_cast<std::uint16_t>(Half::encode(value)));
    case DType::BF16:
        return storeAs(data, index, static_cast<std::uint16_t>(Brain::encode(value)));
    case DType::F8E4M3:
        return storeAs(data, index, static_cast<std::uint8_t>(E4M3::encode(value)));
    case DType::F8E5M2:
        return storeAs(data, index, static_cast<std::uint8_t>(E5M2::encode(value)));
    case DType::I64:
        return storeAs(data, index, toInteger<std::int64_t>(value));
    case DType::I32:
        return storeAs(data, index, toInteger<std::int32_t>(value));
    case DType::I16:
        return storeAs(data, index, toInteger<std::int16_t>(value));
    case DType::I8:
        return storeAs(data, index, toInteger<std::int8_t>(value));
    case DType::U32:
        return storeAs(data, index, toInteger<std::uint32_t>(value));
    case DType::U8:
        return storeAs(data, index, toInteger<std::uint8_t>(value));
    }
}

} // namespace klineage::kernel
