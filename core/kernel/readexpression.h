// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"
#include "core/kernel/dtype.h"
#include "core/kernel/expression.h"

#include <optional>
#include <vector>

namespace klineage::kernel {

/// Expressions in TOML files: strings, or integers written bare. A failure is reported to the table's
/// document and gives the constant 0.
[[nodiscard]] Expression parseExpressionAt(const files::TomlTable &table, const files::TomlText &text);
[[nodiscard]] Expression readExpression(const files::TomlTable &table, const char *key);
[[nodiscard]] std::optional<Expression> readOptionalExpression(const files::TomlTable &table,
                                                               const char *key);
/// fewest and most bound the length; an absent list is empty, and an error only when fewest > 0.
[[nodiscard]] std::vector<Expression> readExpressions(const files::TomlTable &table, const char *key,
                                                      std::size_t fewest, std::size_t most);

/// An element type by its name.
[[nodiscard]] DType readDType(const files::TomlTable &table, const char *key);

} // namespace klineage::kernel
