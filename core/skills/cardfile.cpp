// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/suggest.h"
#include "core/files/tomlreader.h"
#include "core/files/tomlwriter.h"
#include "core/skills/card.h"
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

void checkNames(const TomlTable &root, const Card &card)
{
    if (root.has("name") && !isCardName(card.name))
        root.fail("name", "'" + card.name + "' is no card name; expected 1 to 64 of a-z, 0-9 and '-'.");
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
    card.preconditions = readClaims(root, "precondition");
    card.effects = readClaims(root, "effect");
    card.risks = readClaims(root, "risk");
    card.scope = readScope(root);
    card.provides = readFeatures(root, "provides");
    card.requirements = readFeatures(root, "requires");
    card.conflicts = readFeatures(root, "conflicts");
    if (Status read = document->finish(); !read)
        return tl::unexpected(read.error());
    return card;
}

std::string writeCard(const Card &card)
{
    files::TomlWriter out;
    out.string("name", card.name);
    out.integer("revision", card.revision);
    out.string("category", card.category);
    out.string("locus", card.locus);
    out.optionalString("carrier", card.carrierFile);
    out.optionalStrings("evidence", card.evidence);
    if (card.retired)
        out.boolean("retired", true);
    out.beginTable("intent");
    writeClaim(out, card.intent);
    out.beginTable("anchor");
    writeClaim(out, card.anchor);
    writeClaims(out, "precondition", card.preconditions);
    writeClaims(out, "effect", card.effects);
    writeClaims(out, "risk", card.risks);
    out.beginTable("scope");
    out.strings("cases", card.scope.cases);
    out.strings("languages", card.scope.languages);
    out.strings("platforms", card.scope.platforms);
    out.strings("prior_actions", card.scope.priorActions);
    writeFeatures(out, "provides", card.provides);
    writeFeatures(out, "requires", card.requirements);
    writeFeatures(out, "conflicts", card.conflicts);
    return out.text();
}

} // namespace klineage::skills
