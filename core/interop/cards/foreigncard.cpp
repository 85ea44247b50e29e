// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/foreigncard.h"

#include "core/interop/cards/frontmatter.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

namespace klineage::interop {

using nlohmann::json;

namespace {

constexpr std::size_t maxScopeEntries = 1000;

char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lowered(std::string_view text)
{
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

/// "sm90" in "nvidia-sm_90a-cuda13"; empty when there is none.
std::string computeCapability(const std::string &text)
{
    for (std::size_t at = text.find("sm"); at != std::string::npos; at = text.find("sm", at + 1)) {
        const bool startsWord = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
        std::size_t begin = at + 2;
        begin += begin < text.size() && (text[begin] == '_' || text[begin] == '-') ? 1 : 0;
        std::size_t end = begin;
        while (end < text.size() && end < begin + 3 && isDigit(text[end]))
            ++end;
        if (startsWord && end - begin >= 2)
            return "sm" + text.substr(begin, end - begin);
    }
    return {};
}

std::vector<std::string> mapped(const json &scope, const char *key, std::string (*map)(std::string_view))
{
    std::vector<std::string> out;
    const auto found = scope.find(key);
    if (found == scope.end())
        return out;
    for (const std::string &text : textsIn(*found)) {
        const std::string word = map ? map(text) : text;
        if (!word.empty() && out.size() < maxScopeEntries
            && std::find(out.begin(), out.end(), word) == out.end())
            out.push_back(word);
    }
    return out;
}

} // namespace

std::string cardNameFrom(std::string_view foreign)
{
    std::string name;
    for (const char raw : foreign) {
        const char c = lower(raw);
        const bool keeps = (c >= 'a' && c <= 'z') || isDigit(c);
        if (keeps)
            name += c;
        else if (!name.empty() && name.back() != '-')
            name += '-';
    }
    name = name.substr(0, 64);
    while (name.ends_with('-'))
        name.pop_back();
    return name.empty() ? "card" : name;
}

std::string platformFrom(std::string_view foreign)
{
    static const std::pair<const char *, const char *> known[] = {
        {"hopper", "sm90"}, {"h100", "sm90"}, {"h200", "sm90"},       {"h800", "sm90"}, {"h20", "sm90"},
        {"ampere", "sm80"}, {"a100", "sm80"}, {"blackwell", "sm100"}, {"b200", "sm100"}};
    std::string text = lowered(foreign);
    if (const std::string capability = computeCapability(text); !capability.empty())
        return capability;
    for (const auto &[word, platform] : known) {
        if (text.find(word) != std::string::npos)
            return platform;
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == ' ' || c == '/' || c == '.'; }, '-');
    return text;
}

std::string languageFrom(std::string_view foreign)
{
    const auto language = kernel::languageCalled(foreign);
    return language ? language->word : lowered(foreign);
}

skills::Scope scopeFrom(const json &scope)
{
    skills::Scope out;
    if (!scope.is_object())
        return out;
    out.cases = mapped(scope, "cases", nullptr);
    out.languages = mapped(scope, "languages", languageFrom);
    out.platforms = mapped(scope, "platforms", platformFrom);
    out.priorActions = mapped(scope, "prior_actions", nullptr);
    return out;
}

void setCarrier(ForeignCard &foreign, std::string code)
{
    if (code.find_first_not_of(" \t\r\n") == std::string::npos) {
        foreign.notes.emplace_back("it has no code, so the card has no carrier");
        return;
    }
    std::optional<kernel::Language> language;
    for (const std::string &word : foreign.card.scope.languages) {
        if (!language)
            language = kernel::languageCalled(word);
    }
    if (!language)
        language = kernel::surfaceOfCode(code).language();
    if (!code.ends_with('\n'))
        code += '\n';
    foreign.card.carrierFile = skills::carrierName(*language);
    foreign.carrier = std::move(code);
}

} // namespace klineage::interop
