// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/skills/card.h"

#include <functional>

namespace klineage::skills {

// What format 2 adds to card.toml. Schema: core/skills/README.md.

/// How the figures of an effect or of a tried value are read: as they stand there, or from the trial that a proposal names.
using ReadFigures = std::function<Measured(const files::TomlTable &)>;
[[nodiscard]] Measured readMeasured(const files::TomlTable &table);

/// Everything but the claims that format 1 has too; fills in what belongs to these (conditions, figures, ids) in readClaims2().
void readFormat2(const files::TomlTable &root, Card &card);
/// Of those what a proposal has too: capability, the anchor's words, triggers, parameters.
void readProposal2(const files::TomlTable &root, Card &card, const ReadFigures &figures = readMeasured);
enum class ClaimKind { Condition, Effect, Risk };
[[nodiscard]] std::vector<Claim> readClaims2(const files::TomlTable &root, const char *key, ClaimKind kind,
                                             const ReadFigures &figures = readMeasured);

void writeCapability(files::TomlWriter &out, const Capability &capability);
void writeClaims2(files::TomlWriter &out, const char *key, const std::vector<Claim> &claims);
void writeParameters(files::TomlWriter &out, const std::vector<Parameter> &parameters);
void writeProbes(files::TomlWriter &out, const std::vector<Probe> &probes);

} // namespace klineage::skills
