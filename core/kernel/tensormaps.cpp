// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/tensormaps.h"

#include <fmt/core.h>

namespace klineage::kernel {

namespace {

constexpr std::int64_t maxExtent = (std::int64_t{1} << 32) - 1;
constexpr std::int64_t maxStrideBytes = (std::int64_t{1} << 40) - 1;
constexpr std::int64_t maxBoxExtent = 256;
constexpr std::int64_t unitBytes = 16; ///< what the TMA moves at least

tl::unexpected<Error> refuse(const TensorMap &map, const std::string &what)
{
    return fail(ErrorCode::InvalidInput, "tensor map '" + map.name + "': " + what);
}

Result<std::vector<std::int64_t>> evaluateAll(const TensorMap &map, const char *key,
                                              const std::vector<Expression> &expressions,
                                              const Bindings &bindings)
{
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < expressions.size(); ++i) {
        const Result<std::int64_t> value = expressions[i].evaluateInteger(bindings);
        if (!value)
            return refuse(map, fmt::format("{}[{}], {}", key, i, value.error().message));
        values.push_back(*value);
    }
    return values;
}

std::int64_t spanBytes(Swizzle swizzle)
{
    switch (swizzle) {
    case Swizzle::None:
        return 0; // no limit
    case Swizzle::B32:
        return 32;
    case Swizzle::B64:
        return 64;
    case Swizzle::B128:
        return 128;
    }
    return 0;
}

Status checkBox(const TensorMap &map, const std::vector<std::int64_t> &box, std::int64_t elementBytes)
{
    for (const std::int64_t extent : box) {
        if (extent < 1 || extent > maxBoxExtent)
            return refuse(map, "a box extent is " + std::to_string(extent) + "; expected 1 to 256.");
    }
    const std::int64_t innerBytes = box.back() * elementBytes;
    if (innerBytes % unitBytes != 0)
        return refuse(map, "the innermost box extent is " + std::to_string(innerBytes)
                               + " bytes; expected a multiple of 16.");
    const std::int64_t span = spanBytes(map.swizzle);
    if (span > 0 && innerBytes > span)
        return refuse(map, fmt::format("the innermost box extent is {} bytes; the swizzle allows at most {}.",
                                       innerBytes, span));
    return {};
}

} // namespace

Result<ResolvedTensorMap> resolveTensorMap(const TensorMap &map, const ResolvedBuffer &buffer,
                                           const Bindings &bindings)
{
    ResolvedTensorMap resolved{map.name, buffer.name, buffer.dtype,    {},      {},
                               {},       map.swizzle, map.l2Promotion, map.fill};
    Result<std::vector<std::int64_t>> dims = evaluateAll(map, "dims", map.dims, bindings);
    Result<std::vector<std::int64_t>> strides = evaluateAll(map, "strides", map.strides, bindings);
    Result<std::vector<std::int64_t>> box = evaluateAll(map, "box", map.box, bindings);
    for (const auto *list : {&dims, &strides, &box}) {
        if (!*list)
            return tl::unexpected(list->error());
    }
    resolved.dims = map.dims.empty() ? buffer.shape : std::move(*dims);
    resolved.box = std::move(*box);
    const std::size_t rank = resolved.dims.size();
    if (rank < 1 || rank > 5 || resolved.box.size() != rank)
        return refuse(map,
                      fmt::format("the box has {} extents and '{}' {}; expected the same number, 1 to 5.",
                                  resolved.box.size(), buffer.name, rank));
    for (const std::int64_t extent : resolved.dims) {
        if (extent < 1 || extent > maxExtent)
            return refuse(map, "an extent is " + std::to_string(extent) + "; expected 1 to 2^32 - 1.");
    }
    const auto elementBytes = static_cast<std::int64_t>(sizeOf(buffer.dtype));
    if (Status sound = checkBox(map, resolved.box, elementBytes); !sound)
        return tl::unexpected(sound.error());

    resolved.strideBytes.resize(rank - 1);
    std::int64_t rowMajor = elementBytes;
    for (std::size_t i = rank - 1; i-- > 0;) {
        const bool overflow = __builtin_mul_overflow(rowMajor, resolved.dims[i + 1], &rowMajor);
        std::int64_t bytes = rowMajor;
        const bool given = !map.strides.empty();
        const bool givenOverflow = given && __builtin_mul_overflow((*strides)[i], elementBytes, &bytes);
        if ((given ? givenOverflow : overflow) || bytes < 1 || bytes > maxStrideBytes
            || bytes % unitBytes != 0)
            return refuse(
                map,
                fmt::format(
                    "stride {} is {} bytes; expected a multiple of 16 below 2^40. Guard the launch with 'when', and give other shapes a launch without tensor maps.",
                    i, bytes));
        if (overflow)
            rowMajor = elementBytes; // given strides do not depend on it
        resolved.strideBytes[i] = bytes;
    }
    return resolved;
}

} // namespace klineage::kernel
