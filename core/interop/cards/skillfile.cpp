// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/foreigncard.h"
#include "core/interop/cards/frontmatter.h"
#include "core/skills/descriptionwords.h"

#include <algorithm>
#include <optional>

namespace klineage::interop {

using nlohmann::json;

namespace {

struct CodeBlock {
    std::string heading;  ///< "Code Change Snippet / Before"
    std::string language; ///< after the fence's marks
    std::string code;
};

std::string_view nextBodyLine(std::string_view &text)
{
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

std::string trimmedHeading(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(" \t#");
    if (begin == std::string_view::npos)
        return {};
    return std::string(text.substr(begin, text.find_last_not_of(" \t#") - begin + 1));
}

struct BodyFence {
    char mark = 0;
    std::size_t length = 0;
    std::string rest;
};

std::optional<BodyFence> bodyFenceOf(std::string_view line)
{
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    if (indent == line.size() || indent > 3 || (line[indent] != '`' && line[indent] != '~'))
        return std::nullopt;
    const std::size_t end = std::min(line.find_first_not_of(line[indent], indent), line.size());
    if (end - indent < 3)
        return std::nullopt;
    return BodyFence{line[indent], end - indent, trimmedHeading(line.substr(end))};
}

/// The fenced blocks of a body with the headings that they stand under. One that is not closed ends with the body.
std::vector<CodeBlock> codeBlocks(std::string_view body)
{
    std::vector<CodeBlock> blocks;
    std::vector<std::string> headings;
    std::optional<BodyFence> inside;
    while (!body.empty()) {
        const std::string_view line = nextBodyLine(body);
        const std::optional<BodyFence> fence = bodyFenceOf(line);
        if (inside) {
            if (fence && fence->mark == inside->mark && fence->length >= inside->length
                && fence->rest.empty())
                inside.reset();
            else
                blocks.back().code.append(line) += '\n';
            continue;
        }
        if (fence) {
            inside = fence;
            CodeBlock block;
            for (std::size_t i = headings.size() > 1 ? 1 : 0; i < headings.size(); ++i)
                block.heading += (block.heading.empty() || headings[i].empty() ? "" : " / ") + headings[i];
            block.language = fence->rest.substr(0, fence->rest.find_first_of(" \t{,"));
            blocks.push_back(std::move(block));
            continue;
        }
        const std::size_t level = line.find_first_not_of('#');
        if (level != std::string_view::npos && level > 0 && level <= 6 && line[level] == ' ') {
            headings.resize(level - 1);
            headings.push_back(trimmedHeading(line));
        }
    }
    return blocks;
}

/// Python is what Triton and TileLang are written in: of which of them, the card's scope has to say.
bool isIn(const CodeBlock &block, const kernel::Language &language, const skills::Scope &scope)
{
    const std::string word = languageFrom(block.language);
    const bool isNamed =
        std::find(scope.languages.begin(), scope.languages.end(), language.word) != scope.languages.end();
    return word == language.word || (isNamed && !word.empty() && word == language.fence);
}

/// The language that most blocks are written in, of those that cards can be about; what is in none ("text", "sh") is left out.
std::optional<kernel::Language> commonLanguage(const std::vector<CodeBlock> &blocks,
                                               const skills::Scope &scope)
{
    std::optional<kernel::Language> best;
    std::ptrdiff_t most = 0;
    for (const kernel::Language &language : kernel::allLanguages()) {
        const auto count = std::count_if(blocks.begin(), blocks.end(), [&](const CodeBlock &block) {
            return isIn(block, language, scope);
        });
        if (count > most) {
            most = count;
            best = language;
        }
    }
    return best;
}

std::string carrierOf(const std::vector<CodeBlock> &blocks, const kernel::Language &language,
                      const skills::Scope &scope)
{
    const std::string comment = std::string_view(language.extension) == ".py" ? "# " : "// ";
    std::string carrier;
    for (const CodeBlock &block : blocks) {
        const bool isPlain = block.language.empty() || block.language == "c" || block.language == "diff";
        if (!isPlain && !isIn(block, language, scope))
            continue;
        carrier += carrier.empty() ? "" : "\n";
        if (!block.heading.empty())
            carrier += comment + block.heading + '\n';
        carrier += block.code;
    }
    return carrier;
}

void addFrontClaims(std::vector<skills::Claim> &claims, const json &values, const char *key)
{
    const auto found = values.find(key);
    if (found == values.end())
        return;
    for (const std::string &text : textsIn(*found))
        claims.push_back({text, {}});
}

/// The Agent Skills standard: what it is, and in the same text when to use it. Of ours the words that the program put in are left out.
void readDescription(std::string description, skills::Card &card)
{
    if (description.ends_with(skills::hypothesisWords))
        description.resize(description.size() - skills::hypothesisWords.size());
    if (const std::size_t at = description.find(skills::useWhenWords); at != std::string::npos && at > 0) {
        card.intent.text = description.substr(0, at);
        card.preconditions.push_back({description.substr(at + skills::useWhenWords.size()), {}});
        return;
    }
    const std::size_t at = description.find("Use when");
    card.intent.text = description.substr(0, at == 0 ? std::string::npos : at);
    card.intent.text.erase(card.intent.text.find_last_not_of(" \n") + 1);
    if (at != std::string::npos && at > 0)
        card.preconditions.push_back({description.substr(at), {}});
}

} // namespace

Result<ForeignCard> readSkillFile(std::string_view text, const std::string &folder,
                                  const ForeignLibrary &library)
{
    const Result<FrontMatter> front = parseFrontMatter(text);
    if (!front)
        return tl::unexpected(front.error());
    const json &values = front->values;
    const bool isFlat = values.contains("skill_id");
    if (!isFlat && !values.contains("description"))
        return fail(ErrorCode::InvalidInput,
                    "Its front matter has neither skill_id (KLineage) nor description (Agent Skills).");
    ForeignCard foreign;
    skills::Card &card = foreign.card;
    std::string name = textOf(values, isFlat ? "skill_id" : "name");
    if (name.empty())
        name = folder;
    card.format = 2;
    card.name = cardNameFrom(name);
    if (isFlat) {
        card.intent.text = textOf(values, "intent");
        addFrontClaims(card.preconditions, values, "preconditions");
        card.scope = scopeFrom(values.value("scope", json::object()));
    } else {
        readDescription(textOf(values, "description"), card);
    }
    if (card.intent.text.empty())
        return fail(ErrorCode::InvalidInput, isFlat ? "Its intent is empty." : "Its description is empty.");
    const json metadata = values.value("metadata", json::object());
    card.category = textOf(metadata, "category");
    card.locus = textOf(metadata, "locus");
    card.anchor.text = "Not said where it came from.";
    const std::vector<CodeBlock> blocks = codeBlocks(front->body);
    const std::optional<kernel::Language> language = commonLanguage(blocks, card.scope);
    if (card.scope.languages.empty() && language)
        card.scope.languages = {language->word};
    setCarrier(foreign, language ? carrierOf(blocks, *language, card.scope) : std::string());
    skills::Imported &imported = card.imported.emplace();
    imported.form = isFlat ? "klineage-skill" : "agent-skill";
    imported.origin = library.origin;
    imported.name = name;
    imported.license = textOf(values, "license");
    if (imported.license.empty())
        imported.license = library.license;
    return foreign;
}

} // namespace klineage::interop
