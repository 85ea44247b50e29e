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

/// An oracle is words with '_' between them: "softmax_rows", "gated_delta_rule".
std::set<std::string> wordsOf(const std::vector<std::string> &names)
{
    std::set<std::string> words;
    for (const std::string &name : names) {
        const std::string text = normalized(name);
        words.insert(text);
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find('_', begin), text.size());
            words.insert(text.substr(begin, end - begin));
            begin = end + 1;
        }
    }
    return words;
}

bool haveOne(const std::set<std::string> &words, const std::set<std::string> &wanted)
{
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const std::string &word) { return words.count(word) > 0; });
}

/// As whole words, between which '_' is a space too: " tma slabs ".
std::string spaced(std::string_view text)
{
    std::string out = ' ' + normalized(text) + ' ';
    std::replace(out.begin(), out.end(), '_', ' ');
    return out;
}

bool hasPhrase(const std::string &spacedText, const std::vector<std::string> &phrases)
{
    return std::any_of(phrases.begin(), phrases.end(), [&](const std::string &phrase) {
        return spacedText.find(spaced(phrase)) != std::string::npos;
    });
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
    for (const files::TomlTable &table : root.tables("part")) {
        const std::vector<std::string> oracles = table.strings("oracles");
        const std::vector<std::string> without = table.strings("without");
        m_parts[table.string("name")] = {table.strings("phrases"), std::set(oracles.begin(), oracles.end()),
                                         std::set(without.begin(), without.end())};
    }
    for (const files::TomlTable &table : root.tables("implied"))
        m_implied[table.string("feature")] = table.strings("phrases");
    for (const files::TomlTable &table : root.tables("sign"))
        m_signs[table.string("feature")] = table.strings("code");
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
    const std::set<std::string> parts = wordsOf(words);
    std::vector<std::string> families;
    for (const auto &[name, oracles] : m_families) {
        if (haveOne(parts, oracles))
            families.push_back(name);
    }
    std::sort(families.begin(), families.end());
    return families;
}

std::vector<std::string> Vocabulary::capabilitiesIn(std::string_view feature) const
{
    const std::string text = spaced(feature);
    std::set<std::string> found;
    for (const auto &[word, name] : m_words.find(Kind::Capability)->second) {
        if (text.find(spaced(word)) != std::string::npos)
            found.insert(name);
    }
    return {found.begin(), found.end()};
}

std::vector<std::string> Vocabulary::partsIn(std::string_view featureAtLocus) const
{
    const std::string text = spaced(featureAtLocus);
    std::vector<std::string> found;
    for (const auto &[name, part] : m_parts) {
        if (hasPhrase(text, part.phrases))
            found.push_back(name);
    }
    return found;
}

std::vector<std::string> Vocabulary::impliedBy(std::string_view featureAtLocus) const
{
    const std::string text = spaced(featureAtLocus);
    std::vector<std::string> found;
    for (const auto &[feature, phrases] : m_implied) {
        if (hasPhrase(text, phrases))
            found.push_back(feature);
    }
    return found;
}

bool Vocabulary::hasPart(const std::vector<std::string> &words, std::string_view part) const
{
    const auto found = m_parts.find(part);
    if (found == m_parts.end())
        return false;
    const std::set<std::string> all = wordsOf(words);
    return haveOne(all, found->second.oracles) && !haveOne(all, found->second.without);
}

bool Vocabulary::showsFeature(std::string_view code, std::string_view feature) const
{
    const auto found = m_signs.find(feature);
    return found != m_signs.end()
           && std::any_of(found->second.begin(), found->second.end(),
                          [&](const std::string &sign) { return code.find(sign) != std::string_view::npos; });
}

} // namespace klineage::skills
