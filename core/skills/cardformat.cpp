// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/cardformat.h"

#include "core/base/suggest.h"
#include "core/kernel/expression.h"
#include "core/skills/cardtables.h"

#include <algorithm>

namespace klineage::skills {

namespace {

using files::TomlTable;
using files::TomlWriter;

void checkTrial(const TomlTable &table, const char *key, const std::string &id)
{
    if (table.has(key) && !isCitation("trial:" + id))
        table.fail(key, "'" + id + "' is no trial; expected 16 hex digits.");
}

void writeMeasured(TomlWriter &out, const Measured &measured)
{
    out.string("trial", measured.trial);
    out.string("against", measured.against);
    out.number("factor", measured.factor);
    out.number("low", measured.low);
    out.number("high", measured.high);
}

/// Of the key: a whole number that a double holds.
double exactly(const TomlTable &table, const char *key, std::int64_t value)
{
    constexpr std::int64_t most = std::int64_t{1} << 53;
    if (value < -most || value > most)
        table.fail(key, std::to_string(value) + " is out of range; at most 2^53 either way.");
    return static_cast<double>(value);
}

std::vector<double> readNumbers(const TomlTable &table, const char *key)
{
    std::vector<double> values;
    for (const std::int64_t value : table.integers(key))
        values.push_back(exactly(table, key, value));
    return values;
}

Parameter readParameter(const TomlTable &table, const ReadFigures &figures)
{
    Parameter parameter;
    parameter.name = table.string("name");
    parameter.text = table.string("text");
    parameter.values = readNumbers(table, "values");
    parameter.preset = exactly(table, "default", table.integer("default"));
    for (const TomlTable &tried : table.tables("tried"))
        parameter.tried.push_back({exactly(tried, "value", tried.integer("value")), figures(tried)});
    const auto isKnown = [&](double value) {
        return std::find(parameter.values.begin(), parameter.values.end(), value) != parameter.values.end();
    };
    if (table.has("default") && !isKnown(parameter.preset))
        table.fail("default", "it is none of the values.");
    return parameter;
}

Probe readProbe(const TomlTable &table)
{
    Probe probe;
    probe.risk = table.string("risk");
    probe.text = table.string("text");
    probe.trial = table.string("trial");
    probe.verdict = table.string("verdict");
    probe.refutes = table.boolean("refutes", false);
    checkTrial(table, "trial", probe.trial);
    return probe;
}

void checkBuildingBlock(const TomlTable &root, const Card &card)
{
    std::vector<std::string> known;
    for (const kernel::Language &language : kernel::allLanguages())
        known.push_back(buildingBlockName(language));
    if (!card.buildingBlockFile.empty()
        && std::find(known.begin(), known.end(), card.buildingBlockFile) == known.end())
        root.fail("building_block", "'" + card.buildingBlockFile + "' is no building block; expected "
                                        + quotedList(known) + '.');
}

std::string wholeNumber(double value)
{
    return std::to_string(static_cast<std::int64_t>(value));
}

} // namespace

Measured readMeasured(const TomlTable &table)
{
    Measured measured;
    measured.trial = table.string("trial");
    measured.against = table.string("against", "parent");
    measured.factor = table.number("factor");
    measured.low = table.number("low");
    measured.high = table.number("high");
    checkTrial(table, "trial", measured.trial);
    const bool ordered =
        0 < measured.low && measured.low <= measured.factor && measured.factor <= measured.high;
    if (table.has("factor") && table.has("low") && table.has("high") && !ordered)
        table.fail("factor", "expected 0 < low <= factor <= high.");
    return measured;
}

void readProposal2(const TomlTable &root, Card &card, const ReadFigures &figures)
{
    if (const std::optional<TomlTable> table = root.table("capability")) {
        card.capability.features = table->strings("features");
        card.capability.dtypes = table->strings("dtypes");
        card.capability.families = table->strings("families");
        card.capability.toolchain = table->string("toolchain", "");
    }
    if (const std::optional<TomlTable> anchor = root.table("anchor"))
        card.anchorWords = anchor->strings("words");
    card.triggers = readClaims2(root, "trigger", ClaimKind::Condition);
    for (const TomlTable &table : root.tables("parameter"))
        card.parameters.push_back(readParameter(table, figures));
}

void readFormat2(const TomlTable &root, Card &card)
{
    readProposal2(root, card);
    card.buildingBlockFile = root.string("building_block", "");
    checkBuildingBlock(root, card);
    for (const TomlTable &table : root.tables("probe"))
        card.probes.push_back(readProbe(table));
}

std::vector<Claim> readClaims2(const TomlTable &root, const char *key, ClaimKind kind,
                               const ReadFigures &figures)
{
    std::vector<Claim> claims;
    for (const TomlTable &table : root.tables(key)) {
        Claim claim = readClaim(table);
        if (kind == ClaimKind::Effect && (table.has("trial") || table.has("factor")))
            claim.measured = figures(table);
        if (kind == ClaimKind::Risk)
            claim.id = table.string("id", "");
        if (kind == ClaimKind::Condition) {
            claim.when = table.string("when", "");
            const Result<kernel::Expression> condition =
                claim.when.empty() ? Result<kernel::Expression>() : kernel::Expression::parse(claim.when);
            if (!condition)
                table.fail("when", condition.error().message);
        }
        claims.push_back(std::move(claim));
    }
    return claims;
}

void writeCapability(TomlWriter &out, const Capability &capability)
{
    if (capability == Capability())
        return;
    out.beginTable("capability");
    out.optionalStrings("features", capability.features);
    out.optionalStrings("dtypes", capability.dtypes);
    out.optionalStrings("families", capability.families);
    out.optionalString("toolchain", capability.toolchain);
}

void writeClaims2(TomlWriter &out, const char *key, const std::vector<Claim> &claims)
{
    for (const Claim &claim : claims) {
        out.beginArrayTable(key);
        out.optionalString("id", claim.id);
        out.string("text", claim.text);
        out.optionalString("when", claim.when);
        out.strings("evidence", claim.evidence);
        if (claim.measured)
            writeMeasured(out, *claim.measured);
    }
}

void writeParameters(TomlWriter &out, const std::vector<Parameter> &parameters)
{
    for (const Parameter &parameter : parameters) {
        out.beginArrayTable("parameter");
        out.string("name", parameter.name);
        out.string("text", parameter.text);
        std::vector<std::int64_t> values;
        for (const double value : parameter.values)
            values.push_back(static_cast<std::int64_t>(value));
        out.integers("values", values);
        out.written("default", wholeNumber(parameter.preset));
        for (const TriedValue &tried : parameter.tried) {
            out.beginArrayTable("parameter.tried");
            out.written("value", wholeNumber(tried.value));
            writeMeasured(out, tried.measured);
        }
    }
}

void writeProbes(TomlWriter &out, const std::vector<Probe> &probes)
{
    for (const Probe &probe : probes) {
        out.beginArrayTable("probe");
        out.string("risk", probe.risk);
        out.string("text", probe.text);
        out.string("trial", probe.trial);
        out.string("verdict", probe.verdict);
        if (probe.refutes)
            out.boolean("refutes", true);
    }
}

} // namespace klineage::skills
