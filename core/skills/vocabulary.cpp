// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/vocabulary.h"

#include "core/files/tomlreader.h"
#include "core/skills/retrieval/similarity.h"

#include <algorithm>
#include <cassert>

namespace klineage::skills {

namespace {

constexpr std::string_view vocabularyText =
#include "vocabularytext.inc"
    ;

/// "sm" is a platform's kind, "sm90" one platform of it.
bool isOfKind(std::string_view platform, std::string_view kind)
{
    if (platform == kind)
        return true;
    return kind == "sm"
               ? platform.size() > 2 && platform.starts_with("sm") && platform[2] >= '0' && platform[2] <= '9'
               : kind == "pocl" && platform.starts_with("pocl");
}

} // namespace

const Vocabulary &Vocabulary::instance()
{
    static const Vocabulary vocabulary;
    return vocabulary;
}

Vocabulary::Vocabulary()
{
    const Result<files::TomlDocument> document =
        files::TomlDocument::parse(vocabularyText, "vocabulary.toml");
    assert(document);
    const files::TomlTable root = document->root();
    const auto read = [&](const char *key, Kind kind, const auto &more) {
        for (const files::TomlTable &table : root.tables(key)) {
            const std::string name = table.string("name");
            m_words[kind].emplace(name, name);
            for (const std::string &alias : table.strings("aliases"))
                m_words[kind].emplace(alias, name);
            more(table, name);
        }
    };
    const auto nothing = [](const files::TomlTable &, const std::string &) {};
    read("category", Kind::Category, nothing);
    read("locus", Kind::Locus, nothing);
    read("capability", Kind::Capability, [&](const files::TomlTable &table, const std::string &name) {
        m_abilities[name] = {table.strings("platforms"), table.strings("lacking")};
    });
    read("family", Kind::Family, [&](const files::TomlTable &table, const std::string &name) {
        const std::vector<std::string> oracles = table.strings("oracles");
        m_families.emplace_back(name, std::set(oracles.begin(), oracles.end()));
    });
    [[maybe_unused]] const Status finished = document->finish();
    assert(finished);
}

std::string Vocabulary::canonical(Kind kind, std::string_view word) const
{
    std::string text = normalized(word);
    const auto words = m_words.find(kind);
    const auto found = words->second.find(text);
    return found == words->second.end() ? std::move(text) : found->second;
}

bool Vocabulary::isKnown(Kind kind, std::string_view word) const
{
    return m_words.find(kind)->second.count(normalized(word)) > 0;
}

std::vector<std::string> Vocabulary::names(Kind kind) const
{
    std::vector<std::string> names;
    for (const auto &[word, name] : m_words.find(kind)->second) {
        if (word == name)
            names.push_back(name);
    }
    return names;
}

Vocabulary::Ability Vocabulary::ability(std::string_view platform, std::string_view capability) const
{
    const auto found = m_abilities.find(canonical(Kind::Capability, capability));
    if (found == m_abilities.end())
        return Ability::Unknown;
    const auto names = [&](const std::vector<std::string> &kinds, bool exact) {
        return std::any_of(kinds.begin(), kinds.end(), [&](const std::string &kind) {
            return exact && kind != "sm" && kind != "pocl" ? platform == kind : isOfKind(platform, kind);
        });
    };
    if (names(found->second.having, true))
        return Ability::Has;
    return names(found->second.lacking, false) ? Ability::Lacks : Ability::Unknown;
}

std::vector<std::string> Vocabulary::familiesOf(const std::vector<std::string> &words) const
{
    // An oracle is words with '_' between them: "softmax_rows", "gated_delta_rule".
    std::set<std::string> parts;
    for (const std::string &word : words) {
        const std::string text = normalized(word);
        parts.insert(text);
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('_', begin), text.size());
            parts.insert(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    std::vector<std::string> families;
    for (const auto &[name, oracles] : m_families) {
        const bool any = std::any_of(oracles.begin(), oracles.end(),
                                     [&](const std::string &oracle) { return parts.count(oracle) > 0; });
        if (any)
            families.push_back(name);
    }
    std::sort(families.begin(), families.end());
    return families;
}

} // namespace klineage::skills
