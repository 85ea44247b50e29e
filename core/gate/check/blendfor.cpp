// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/blendfor.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr std::size_t longestPiece = 1024;
constexpr std::size_t piecesAtLeast = 16; ///< of a tensor that has so many elements

} // namespace

std::optional<Blend> blendFor(const HostTensor &tensor, const workload::Distribution &distribution)
{
    using workload::DistributionKind;
    // Whole numbers that are drawn one by one have no order of their own.
    const bool isDrawn =
        distribution.kind == DistributionKind::Integers || distribution.kind == DistributionKind::Bits;
    if (tensor.role != workload::Role::Input || (!kernel::isFloat(tensor.dtype) && !isDrawn))
        return std::nullopt;
    Blend blend;
    blend.dtype = tensor.dtype;
    blend.piece = std::clamp<std::size_t>(tensor.elements() / piecesAtLeast, 1, longestPiece);
    const bool large = distribution.kind == DistributionKind::Large;
    switch (distribution.kind) {
    case DistributionKind::Normal:
    case DistributionKind::Large:
        blend.mean = distribution.factor * distribution.mean * (large ? distribution.scale : 1.0);
        if (std::abs(distribution.mean) > distribution.stddev)
            blend.kind = Blend::Kind::FarMix;
        if (tensor.dtype == kernel::DType::F64 || kernel::sizeOf(tensor.dtype) < 2)
            blend.kind =
                Blend::Kind::Pieces; // double would be rounded, and a byte's few values come again anyway
        break;
    case DistributionKind::UnitRows: // what a row's elements have in common stays with them
    case DistributionKind::NegInfinity:
    case DistributionKind::Mixed:
        blend.kind = distribution.kind == DistributionKind::UnitRows || tensor.dtype == kernel::DType::F64
                             || kernel::sizeOf(tensor.dtype) < 2
                         ? Blend::Kind::Turned // their length is to stay; as above
                         : Blend::Kind::Varied;
        blend.piece = blend.unit = tensor.rowLength();
        break;
    case DistributionKind::LogGates: // columns are of two kinds
        blend.kind = Blend::Kind::Pieces;
        blend.piece = blend.unit = tensor.rowLength();
        break;
    case DistributionKind::Offsets:
        return std::nullopt;
    case DistributionKind::Uniform:
    case DistributionKind::Bits:
    case DistributionKind::Integers:
    case DistributionKind::Sigmoid:
        blend.kind = Blend::Kind::Pieces;
        break;
    }
    if (distribution.lastHead != 1 || distribution.lift != 0)
        blend.piece = blend.unit =
            tensor.rowLength(); // a head stays where it is, and a row is lifted as a whole
    return blend;
}

} // namespace klineage::gate
