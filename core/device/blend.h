// SPDX-License-Identifier: GPL-3.0-or-later
//
// New content for an input, made from two contents of its kind that are on the device already, for about the price of a copy. The tensor is
// cut into pieces, and each comes from places of its own in the two: of normal elements c·x + s·y with c² + s² = 1, which are normal
// again, with an angle of the piece's own; of others as they are there. So no piece comes twice, nor do the rows that it is part of, and
// what is known of the two says nothing of what is made of them. It follows from the key alone: the gate makes the same bytes.
#pragma once

#include "core/kernel/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace klineage::gate {

/// How content is made of two others.
struct Blend {
    enum class Kind {
        Mix,    ///< of normal elements in f32, f16 or bf16
        Pieces, ///< each from one of the two
        Turned, ///< the same, and each piece is turned by a random number of elements: rows whose elements are of one kind
        FarMix, ///< Mix of elements that lie farther from zero than from each other
        Varied, ///< Turned, and each element is off by up to a quarter, so that no row comes again; in f32, f16 or bf16
    };
    Kind kind = Kind::Mix;
    kernel::DType dtype = kernel::DType::F32;
    std::uint64_t key = 0;
    double mean = 0;       ///< of the elements that are mixed
    std::size_t piece = 1; ///< elements of a piece; the last one may be shorter
    std::size_t unit = 1;  ///< where a piece begins in its sources is a multiple of it
};

[[nodiscard]] constexpr bool isMix(Blend::Kind kind)
{
    return kind == Blend::Kind::Mix || kind == Blend::Kind::FarMix;
}

/// Elements are computed, not copied.
[[nodiscard]] constexpr bool isComputed(Blend::Kind kind)
{
    return isMix(kind) || kind == Blend::Kind::Varied;
}

/// Where a piece comes from.
struct PieceSource {
    std::size_t first = 0;  ///< element of the first content
    std::size_t second = 0; ///< mixed: element of the second content
    std::size_t turn = 0;   ///< Turned, Varied
    bool ofSecond = false;  ///< Pieces, Turned, Varied: from the second content, at `first`
    float c =
        1; ///< mixed: out = (c · x + s · y + shift) · offOf(), each operation rounded to single precision
    float s = 0;
    float shift = 0;
    std::uint32_t salt = 0;
    float step = 0; ///< of offOf(): 2^-17; FarMix: 0, no element is near zero; Varied: 2^-9
};

/// What the i-th element of a piece is multiplied by, 1 ± 2^-10 where it is mixed: else those near zero would lie on the steps of `shift`, by which such content
/// could be told from any other.
[[nodiscard]] inline float offOf(std::uint32_t salt, float step, std::uint32_t i)
{
    constexpr std::uint32_t odd = 167; // takes every residue once
    return 1.0f + (static_cast<float>(static_cast<std::int32_t>(((i + salt) * odd) & 0xff)) - 127.5f) * step;
}

/// Of the index-th piece of a tensor with so many elements. As klineage_blend has it (core/device/cuda/helperkernels.cpp).
[[nodiscard]] PieceSource sourceOf(const Blend &blend, std::size_t elements, std::size_t index);

[[nodiscard]] inline std::size_t pieceCount(const Blend &blend, std::size_t elements)
{
    return (elements + blend.piece - 1) / blend.piece;
}

/// The key of a blend whose own one is `key` when its set holds this content.
[[nodiscard]] std::uint64_t contentKey(std::uint64_t content, std::uint64_t key);

/// Makes pieces [begin, end) of `out`. All three are whole tensors of the same size, and `out` is none of the others.
void blendPieces(const Blend &blend, std::span<const std::byte> first, std::span<const std::byte> second,
                 std::span<std::byte> out, std::size_t begin, std::size_t end);

} // namespace klineage::gate
