// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::kernel {

/// Element types of tensors and workspaces. Names in files: f64 f32 tf32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16
/// i8 u32 u8. tf32 is stored as f32; it only declares the precision a kernel may use.
enum class DType { F64, F32, TF32, F16, BF16, F8E4M3, F8E5M2, I64, I32, I16, I8, U32, U8 };

[[nodiscard]] std::size_t sizeOf(DType dtype); ///< bytes of one element
[[nodiscard]] const char *toString(DType dtype);
[[nodiscard]] std::optional<DType> dtypeFromString(std::string_view name);
[[nodiscard]] bool isFloat(DType dtype);
[[nodiscard]] std::vector<std::string> dtypeNames(); ///< all of them, for messages

/// IEEE conversions, round to nearest even. Bits are the stored representation.
[[nodiscard]] float f16ToFloat(std::uint16_t bits);
[[nodiscard]] float bf16ToFloat(std::uint16_t bits);
[[nodiscard]] std::uint16_t floatToBf16(float value);

/// The element at index of a packed array, as double, and back (rounded to the dtype).
[[nodiscard]] double loadElement(const std::byte *data, DType dtype, std::size_t index);
void storeElement(std::byte *data, DType dtype, std::size_t index, double value);

} // namespace klineage::kernel
