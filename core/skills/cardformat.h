// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/skills/card.h"

namespace klineage::skills {

// What format 2 adds to card.toml. Schema: core/skills/README.md.

/// Everything but the claims that format 1 has too; fills in what belongs to these (conditions, figures, ids) in readClaims2().
void readFormat2(const files::TomlTable &root, Card &card);
enum class ClaimKind { Condition, Effect, Risk };
[[nodiscard]] std::vector<Claim> readClaims2(const files::TomlTable &root, const char *key, ClaimKind kind);

void writeCapability(files::TomlWriter &out, const Capability &capability);
void writeClaims2(files::TomlWriter &out, const char *key, const std::vector<Claim> &claims);
void writeParameters(files::TomlWriter &out, const std::vector<Parameter> &parameters);
void writeProbes(files::TomlWriter &out, const std::vector<Probe> &probes);

} // namespace klineage::skills
