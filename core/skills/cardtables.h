// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"
#include "core/skills/card.h"

namespace klineage::skills {

// The tables that a card.toml and an author's proposal of one have in common.

[[nodiscard]] Claim readClaim(const files::TomlTable &table);
/// [key], which must be there.
[[nodiscard]] Claim readSingleClaim(const files::TomlTable &root, const char *key);
/// [[key]]; may be left out.
[[nodiscard]] std::vector<Claim> readClaims(const files::TomlTable &root, const char *key);
[[nodiscard]] std::vector<Feature> readFeatures(const files::TomlTable &root, const char *key);

} // namespace klineage::skills
