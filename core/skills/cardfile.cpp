// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/suggest.h"
#include "core/files/formatnumber.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/skills/card.h"
#include "core/skills/cardformat.h"
#include "core/skills/cardtables.h"

#include <algorithm>
#include <limits>

namespace klineage::skills {

namespace {

using files::TomlTable;

Scope readScope(const TomlTable &root)
{
    Scope scope;
    root.require("scope");
    if (const std::optional<TomlTable> table = root.table("scope")) {
        scope.cases = table->strings("cases");
        scope.languages = table->strings("languages");
        scope.platforms = table->strings("platforms");
        scope.priorActions = table->strings("prior_actions");
    }
    return scope;
}

const std::vector<std::string> importForms{"klineage-skill", "klineage-json", "agent-skill"};

std::optional<Imported> readImported(const TomlTable &root)
{
    const std::optional<TomlTable> table = root.table("imported");
    if (!table)
        return std::nullopt;
    Imported imported;
    imported.form = table->string("form");
    imported.origin = table->string("origin");
    imported.name = table->string("name");
    imported.license = table->string("license");
    imported.sha256 = table->string("sha256");
    const bool isForm = std::find(importForms.begin(), importForms.end(), imported.form) != importForms.end();
    if (table->has("form") && !isForm)
        table->fail("form",
                    "'" + imported.form + "' is no form of cards; expected " + quotedList(importForms) + '.');
    return imported;
}

void writeImported(files::TomlWriter &out, const Imported &imported)
{
    out.beginTable("imported");
    out.string("form", imported.form);
    out.string("origin", imported.origin);
    out.string("name", imported.name);
    out.string("license", imported.license);
    out.string("sha256", imported.sha256);
}

int readFormat(const TomlTable &root)
{
    const std::optional<files::TomlText> written = root.optionalText("format");
    if (!written)
        return 1;
    const std::optional<files::FormatNumber> format = files::parseFormatNumber(written->text);
    if (const std::string problem = files::formatProblem(format, written->text, 2); !problem.empty()) {
        root.fail("format", problem);
        return 1;
    }
    return static_cast<int>(format->major);
}

void checkNames(const TomlTable &root, const Card &card)
{
    if (root.has("name") && !isCardName(card.name))
        root.fail("name", "'" + card.name + "' is no card name; expected " + cardNameRule + '.');
    std::vector<std::string> carriers;
    for (const kernel::Language &language : kernel::allLanguages()) {
        if (const std::string name = carrierName(language);
            std::find(carriers.begin(), carriers.end(), name) == carriers.end())
            carriers.push_back(name);
    }
    if (!card.carrierFile.empty()
        && std::find(carriers.begin(), carriers.end(), card.carrierFile) == carriers.end())
        root.fail("carrier",
                  "'" + card.carrierFile + "' is no carrier; expected " + quotedList(carriers) + '.');
}

void writeClaim(files::TomlWriter &out, const Claim &claim)
{
    out.string("text", claim.text);
    out.strings("evidence", claim.evidence);
}

void writeClaims(files::TomlWriter &out, std::string_view key, const std::vector<Claim> &claims)
{
    for (const Claim &claim : claims) {
        out.beginArrayTable(key);
        writeClaim(out, claim);
    }
}

void writeFeatures(files::TomlWriter &out, std::string_view key, const std::vector<Feature> &features)
{
    for (const Feature &feature : features) {
        out.beginArrayTable(key);
        out.string("locus", feature.locus);
        out.string("name", feature.name);
    }
}

} // namespace

std::string carrierName(const kernel::Language &language)
{
    return std::string("carrier") + language.extension;
}

std::string buildingBlockName(const kernel::Language &language)
{
    return std::string("building_block") + language.extension;
}

Claim readClaim(const TomlTable &table)
{
    Claim claim;
    claim.text = table.string("text");
    claim.evidence = table.strings("evidence");
    return claim;
}

Claim readSingleClaim(const TomlTable &root, const char *key)
{
    root.require(key);
    const std::optional<TomlTable> table = root.table(key);
    return table ? readClaim(*table) : Claim{};
}

std::vector<Claim> readClaims(const TomlTable &root, const char *key)
{
    std::vector<Claim> claims;
    for (const TomlTable &table : root.tables(key))
        claims.push_back(readClaim(table));
    return claims;
}

std::vector<Feature> readFeatures(const TomlTable &root, const char *key)
{
    std::vector<Feature> features;
    for (const TomlTable &table : root.tables(key)) {
        Feature feature;
        feature.locus = table.string("locus");
        feature.name = table.string("name");
        features.push_back(std::move(feature));
    }
    return features;
}

Result<Card> parseCard(std::string_view text, const std::string &fileName)
{
    Result<files::TomlDocument> document = files::TomlDocument::parse(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const TomlTable root = document->root();
    Card card;
    card.format = readFormat(root);
    card.name = root.string("name");
    const std::int64_t revision = root.integer("revision", 1);
    if (revision < 1 || revision > std::numeric_limits<int>::max())
        root.fail("revision",
                  "the revision is " + std::to_string(revision) + "; expected a whole number from 1.");
    else
        card.revision = static_cast<int>(revision);
    card.category = root.string("category");
    card.locus = root.string("locus");
    card.carrierFile = root.string("carrier", "");
    card.evidence = root.strings("evidence");
    card.retired = root.boolean("retired", false);
    checkNames(root, card);

    card.intent = readSingleClaim(root, "intent");
    card.anchor = readSingleClaim(root, "anchor");
    if (card.format == 2) {
        card.preconditions = readClaims2(root, "precondition", ClaimKind::Condition);
        card.effects = readClaims2(root, "effect", ClaimKind::Effect);
        card.risks = readClaims2(root, "risk", ClaimKind::Risk);
        readFormat2(root, card);
    } else {
        card.preconditions = readClaims(root, "precondition");
        card.effects = readClaims(root, "effect");
        card.risks = readClaims(root, "risk");
    }
    card.scope = readScope(root);
    card.provides = readFeatures(root, "provides");
    card.requirements = readFeatures(root, "requires");
    card.conflicts = readFeatures(root, "conflicts");
    card.imported = readImported(root);
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return card;
}

std::string writeCard(const Card &card)
{
    files::TomlWriter out;
    const bool second = card.format == 2;
    if (second)
        out.integer("format", 2);
    out.string("name", card.name);
    out.integer("revision", card.revision);
    out.string("category", card.category);
    out.string("locus", card.locus);
    out.optionalString("carrier", card.carrierFile);
    if (second)
        out.optionalString("building_block", card.buildingBlockFile);
    out.optionalStrings("evidence", card.evidence);
    if (card.retired)
        out.boolean("retired", true);
    out.beginTable("intent");
    writeClaim(out, card.intent);
    out.beginTable("anchor");
    writeClaim(out, card.anchor);
    if (second) {
        out.optionalStrings("words", card.anchorWords);
        writeCapability(out, card.capability);
        writeClaims2(out, "precondition", card.preconditions);
        writeClaims2(out, "trigger", card.triggers);
        writeClaims2(out, "effect", card.effects);
        writeParameters(out, card.parameters);
        writeClaims2(out, "risk", card.risks);
        writeProbes(out, card.probes);
    } else {
        writeClaims(out, "precondition", card.preconditions);
        writeClaims(out, "effect", card.effects);
        writeClaims(out, "risk", card.risks);
    }
    out.beginTable("scope");
    out.strings("cases", card.scope.cases);
    out.strings("languages", card.scope.languages);
    out.strings("platforms", card.scope.platforms);
    out.strings("prior_actions", card.scope.priorActions);
    writeFeatures(out, "provides", card.provides);
    writeFeatures(out, "requires", card.requirements);
    writeFeatures(out, "conflicts", card.conflicts);
    if (card.imported)
        writeImported(out, *card.imported);
    return out.text();
}

} // namespace klineage::skills
