// SPDX-License-Identifier: GPL-3.0-or-later
//
// Every tensor and workspace lies in a buffer of its own between two red zones of at least 4096 bytes. The zones of float inputs and
// workspaces are NaNs with random payloads, so that an out-of-bounds read spoils the result; those of outputs are random bytes.
// All of it follows from a key that only the supervisor knows and that is new for each image.
#pragma once

#include "core/base/rawbytes.h"
#include "core/kernel/dtype.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate {

enum class BufferKind { Input, Output, Workspace };

/// What an output or a workspace holds before a launch. Two launches with different fills must give the same result.
enum class Fill {
    Nan,     ///< NaNs (integers: random bytes)
    Garbage, ///< large finite values of both signs (integers: random bytes)
    Word,    ///< one fillWord() throughout, as timed launches find it
};

/// A word that is a NaN in every floating-point type, and never the same twice in a row.
[[nodiscard]] std::uint32_t fillWord(std::uint64_t key);

inline constexpr std::size_t redZoneBytes = 4096;

/// Where a tensor lies in its buffer.
struct BufferLayout {
    std::string name;
    BufferKind kind = BufferKind::Input;
    kernel::DType dtype = kernel::DType::F32;
    std::size_t bytes = 0; ///< of the tensor

    [[nodiscard]] std::size_t offset() const { return redZoneBytes; }
    /// Of the buffer: a multiple of 4096, so that the zone after the tensor is 4096 to 8191 bytes.
    [[nodiscard]] std::size_t total() const
    {
        return (redZoneBytes + bytes + 2 * redZoneBytes - 1) / redZoneBytes * redZoneBytes;
    }
};

/// Writes red zones and `content` into image (layout.total() bytes).
void composeImage(const BufferLayout &layout, std::uint64_t key, std::span<const std::byte> content,
                  std::span<std::byte> image);
/// The word of Fill::Word.
[[nodiscard]] std::uint32_t poisonWord(std::uint64_t key);
/// The content an output or workspace is poisoned with.
[[nodiscard]] RawBytes poison(const BufferLayout &layout, std::uint64_t key, Fill fill);

/// A changed byte in a red zone.
struct RedZoneHit {
    bool before = false; ///< in the zone before the tensor
    std::size_t distance =
        0; ///< bytes from the tensor's edge to the nearest changed byte: 0 is the byte next to it
    std::size_t changed = 0; ///< changed bytes in that zone
};
[[nodiscard]] std::optional<RedZoneHit> findRedZoneHit(const BufferLayout &layout, std::uint64_t key,
                                                       std::span<const std::byte> image);

/// The red zones of an image alone, the one before and then the one after; and what findRedZoneHit() says of them.
[[nodiscard]] std::vector<std::byte> composeZones(const BufferLayout &layout, std::uint64_t key);
[[nodiscard]] std::optional<RedZoneHit> findZoneHit(const BufferLayout &layout, std::uint64_t key,
                                                    std::span<const std::byte> zones);

/// The tensor's own bytes in an image.
[[nodiscard]] inline std::span<const std::byte> contentOf(const BufferLayout &layout,
                                                          std::span<const std::byte> image)
{
    return image.subspan(layout.offset(), layout.bytes);
}

} // namespace klineage::gate
